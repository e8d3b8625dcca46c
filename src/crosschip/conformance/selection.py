"""Selection of cases by a command line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

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
from crosschip.ops.packages import all_operators

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
) -> list[Case]:
    """The cases that meet all of what is given.

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
        return [_named(case)]
    named = names_of(operators)
    unknown = sorted(named - {DEVICE} - all_operators().keys())
    if unknown:
        raise InputError(
            f"there is no such case, {unknown[0]!r}; `crosschip ops` lists the operators"
        )
    if random is not None:
        drawn = list(random_cases(random, seed, named))
        found = [case_of(each.id) for each in drawn] if element_type else drawn
    else:
        first = case.partition("/")[0] if case else "*"
        owners = named or (() if _is_pattern(first) else {first})
        found = list(all_cases(owners, quick=quick))
    if not found:
        raise _unknown(case)
    typed = [each for each in found if has_type(each, element_type)]
    if not typed:
        types = ", ".join(sorted({each.element_type for each in found if not each.invalid} - {""}))
        owner = ", ".join(sorted(named)) or "the kit"
        raise InputError(f"{owner} has no case of {element_type!r}, but of {types}")
    matching = [each for each in typed if case is None or fnmatchcase(each.id, case)]
    if not matching:
        raise InputError(f"there is no case {case!r}; --list prints the ids of all")
    return matching


def _unknown(name: str | None) -> InputError:
    return InputError(f"there is no such case, {name!r}; `crosschip ops` lists the operators")


def _is_pattern(text: str) -> bool:
    return any(wildcard in text for wildcard in "*?[")


def _named(id: str) -> Case:
    try:
        return case_of(id)
    except KeyError:
        raise InputError(f"there is no case {id!r}; --list prints the ids of all") from None
