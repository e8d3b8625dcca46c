"""Changes between definitions, operator by operator, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosschip.ir.text import legible
from crosschip.opdef.definitions import OpDefCollection
from crosschip.opdef.differences import Difference, differences

_LONGEST = 60


def changes(old: OpDefCollection, new: OpDefCollection) -> dict[str, list[str]]:
    """Return the changes to the definition of each operator that both have; none if it is the same."""
    return {
        op_def.name: differences
        for op_def in new.definitions.op_defs
        if op_def.name in old.op_defs and (differences := list(_changes(old, new, op_def.name)))
    }


def package_changes(old: OpDefCollection, new: OpDefCollection) -> list[str]:
    """Return the changes to what is said of the package as a whole."""
    attributes = [d for d in differences(old, new) if "/" not in d.path and " " not in d.path]
    return [_sentence(difference) for difference in attributes]


def _changes(old: OpDefCollection, new: OpDefCollection, name: str) -> Iterator[str]:
    for difference in differences(old.op_defs[name], new.op_defs[name]):
        yield _sentence(difference)
    before = {s.backend: s for s in old.supplements}
    after = {s.backend: s for s in new.supplements}
    for backend in dict.fromkeys((*before, *after)):
        both = [
            [own for own in supplements[backend].op_defs if own.name == name]
            for supplements in (before, after)
            if backend in supplements
        ]
        first, second = (both[0] if backend in before else []), both[-1] if backend in after else []
        if first and second:
            for difference in differences(first[0], second[0]):
                yield f"for {legible(backend)}, {_sentence(difference)}"
        elif first or second:
            yield f"its supplement for {legible(backend)} is {'new' if second else 'gone'}"


def _sentence(difference: Difference) -> str:
    where, before, after = legible(difference.path), difference.before, difference.after
    match difference.how:
        case "added":
            return f"{_valued(where, after)} is new"
        case "removed":
            return f"{_valued(where, before)} is gone"
        case "reordered":
            return f"the order of {where} is another: {_brief(after)}"
    return f"{where} is {_brief(after)}, and was {_brief(before)}"


def _valued(where: str, value: object) -> str:
    """Return a place, and what stands there if that is a word."""
    return where if isinstance(value, dict | list) or value is None else f"{where} {_brief(value)}"


def _brief(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_brief, value))
    text = legible(" ".join(str(value).split())) if not isinstance(value, dict) else "another"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
