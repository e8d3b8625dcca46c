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
from crosschip.ops.packages import all_operators

_ROUNDS = 40
"""The maximum number of generated random cases per case that the device should support."""


def cases_to_take(
    count: int, seed: int, operators: Collection[str] = (), element_type: str | None = None
) -> Iterator[Case]:
    """Generate up to `_ROUNDS` times `count` random cases.

    Even a device that supports few of them then finds `count` supported cases.

    Args:
        count: the number of cases that the device should support.
        seed: the seed of the random cases.
        operators: the types of the operators; empty for all.
        element_type: the element type of the first tensor; `None` for any.
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
    """Generate the cases that meet all conditions.

    Args:
        operators: the type of an operator, or several types; empty for all.
        element_type: the element type of the first tensor; `int8` includes quantized tensors,
            `quantized int8` selects only these.
        case: an id, or a pattern of ids with `*`, `?` and `[...]`.
        random: the number of random cases, instead of all other cases; `None` for the other cases.
        seed: the seed of the random cases.
        quick: whether to generate only a few cases of each operator.

    Raises:
        InputError: no case meets the conditions; the message lists what exists.
    """
    if case and not _is_pattern(case):
        return iter([_find_case(case)])
    named = names_of(operators)
    unknown = sorted(named - {DEVICE} - all_operators().keys())
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
    """Yield the cases of an element type whose ids match a pattern; add all types to `types`."""
    for case in cases:
        if case.element_type and not case.invalid:
            types.add(case.element_type)
        if has_type(case, element_type) and (pattern is None or fnmatchcase(case.id, pattern)):
            yield case


def _operators_matching(pattern: str) -> set[str]:
    """Return the operators, and `DEVICE`, that may have a case whose id matches a pattern."""
    length = next((i for i, letter in enumerate(pattern) if letter in "*?["), len(pattern))
    literal = pattern[:length]
    return {
        name
        for name in (*all_operators(), DEVICE)
        if f"{name}/".startswith(literal) or literal.startswith(f"{name}/")
    }


def _is_pattern(text: str) -> bool:
    return any(wildcard in text for wildcard in "*?[")


def _find_case(id: str) -> Case:
    try:
        return case_of(id)
    except KeyError:
        raise InputError(f"there is no case {id!r}; --list prints the ids of all") from None
