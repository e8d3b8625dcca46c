"""Selection of cases by a command line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from itertools import chain

from crosschip.conformance.cases import (
    DEVICE,
    Case,
    all_cases,
    case_of,
    has_type,
    names_of,
    random_cases,
)
from crosschip.ir import InputError
from crosschip.ops.packages import every_operator

_ROUNDS = 40
"""How many times as many random cases are tried, at most, until a device has taken enough."""


def cases_to_take(
    count: int, seed: int, operators: Collection[str] = (), element_type: str | None = None
) -> Iterator[Case]:
    """Random cases, of which a device that takes few will have taken so many in the end.

    Args:
        count: how many the device is to take.
        seed: what they are drawn from.
        operators: only those of these operators; empty for all.
        element_type: only those whose first tensor has this type.
    """
    for case in random_cases(count, seed, operators, rounds=_ROUNDS):
        if element_type is None or has_type(case_of(case.id), element_type):
            yield case


def chosen_cases(
    operators: str | Collection[str] = (),
    element_type: str | None = None,
    case: str | None = None,
    random: int | None = None,
    seed: int = 0,
    *,
    quick: bool = False,
) -> Iterator[Case]:
    """Select the cases that meet all conditions; they are generated as they are read.

    Args:
        operators: whose cases: of one, of several, or empty for all.
        element_type: of the first tensor; `int8` is plain or quantized, `quantized int8` only that.
        case: an id, or a pattern of ids with `*`, `?` and `[...]`.
        random: this many random cases in the place of the others.
        seed: what random cases are drawn from.
        quick: only a few of each operator.

    Raises:
        InputError: there is none; the message says what there is.
    """
    if case and not _is_pattern(case):
        return iter([_named(case)])
    named = names_of(operators)
    unknown = sorted(named - {DEVICE} - every_operator().keys())
    if unknown:
        raise InputError(
            f"there is no such case, {unknown[0]!r}; `crosschip ops` lists the operators"
        )
    if random is not None:
        drawn = list(random_cases(random, seed, named))
        candidates = iter([case_of(each.id) for each in drawn] if element_type else drawn)
    else:
        operators = named or _operators_matching(case or "*")
        candidates = all_cases(operators, quick=quick) if operators else iter(())
    types: set[str] = set()
    matching = _matching(candidates, element_type, case, types)
    first = next(matching, None)
    if first is not None:
        return chain([first], matching)
    plain_types = {each.removeprefix("quantized ") for each in types}
    if element_type and types and element_type not in types | plain_types:
        owner = ", ".join(sorted(named)) or "the kit"
        listed = ", ".join(sorted(types))
        raise InputError(f"{owner} has no case of {element_type!r}, but of {listed}")
    raise InputError(f"there is no case {case!r}; --list prints the ids of all")


def _matching(
    cases: Iterator[Case], element_type: str | None, pattern: str | None, types: set[str]
) -> Iterator[Case]:
    """Yield the cases of an element type whose ids match a pattern; note the types of all cases."""
    for case in cases:
        if case.element_type and not case.invalid:
            types.add(case.element_type)
        if has_type(case, element_type) and (pattern is None or fnmatchcase(case.id, pattern)):
            yield case


def _operators_matching(pattern: str) -> set[str]:
    """Return the operators, and `DEVICE`, of which an id may match a pattern."""
    length = next((i for i, letter in enumerate(pattern) if letter in "*?["), len(pattern))
    literal = pattern[:length]
    return {
        name
        for name in (*every_operator(), DEVICE)
        if f"{name}/".startswith(literal) or literal.startswith(f"{name}/")
    }


def _is_pattern(text: str) -> bool:
    return any(wildcard in text for wildcard in "*?[")


def _named(id: str) -> Case:
    try:
        return case_of(id)
    except KeyError:
        raise InputError(f"there is no case {id!r}; --list prints the ids of all") from None
