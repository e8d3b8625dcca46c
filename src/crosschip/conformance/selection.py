"""Selection of cases by a command line."""

from __future__ import annotations

from fnmatch import fnmatchcase

from crosschip.conformance.cases import Case, all_cases, case_of, has_type, random_cases
from crosschip.ir import InputError


def chosen_cases(
    operator: str | None = None,
    element_type: str | None = None,
    case: str | None = None,
    random: int | None = None,
    seed: int = 0,
    *,
    quick: bool = False,
) -> list[Case]:
    """The cases that meet all of what is given.

    Args:
        operator: whose cases.
        element_type: of the first tensor; `int8` is plain or quantized, `quantized int8` only that.
        case: an id, or a pattern of ids with `*`, `?` and `[...]`.
        random: this many random cases in the place of the others.
        seed: what random cases are drawn from.
        quick: only a few of each operator.

    Raises:
        InputError: there is none; the message says what there is.
    """
    if case and not _is_pattern(case):
        return [_named(case)]
    if random is not None:
        drawn = list(random_cases(random, seed, operator))
        found = [case_of(each.id) for each in drawn] if element_type else drawn
    else:
        first = case.partition("/")[0] if case else "*"
        owner = operator or (None if _is_pattern(first) else first)
        found = list(all_cases(owner, quick=quick))
    if not found:
        name = operator or case
        raise InputError(f"there is no such case, {name!r}; `crosschip ops` lists the operators")
    typed = [each for each in found if has_type(each, element_type)]
    if not typed:
        types = ", ".join(sorted({each.element_type for each in found if not each.invalid} - {""}))
        raise InputError(f"{operator or 'the kit'} has no case of {element_type!r}, but of {types}")
    matching = [each for each in typed if case is None or fnmatchcase(each.id, case)]
    if not matching:
        raise InputError(f"there is no case {case!r}; --list prints the ids of all")
    return matching


def _is_pattern(text: str) -> bool:
    return any(wildcard in text for wildcard in "*?[")


def _named(id: str) -> Case:
    try:
        return case_of(id)
    except KeyError:
        raise InputError(f"there is no case {id!r}; --list prints the ids of all") from None
