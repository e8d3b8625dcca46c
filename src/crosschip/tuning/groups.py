"""Groups of operations, which are tried in one precision together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Operation


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that come after each other.

    Attributes:
        operations: their names.
        share: how much of the model's arithmetic they do, from 0 to 1.
    """

    operations: tuple[str, ...]
    share: float


def groups_of(operations: Sequence[Operation], count: int) -> list[Group]:
    """The operations of a model in groups of about the same arithmetic, in their order.

    Args:
        operations: in an order in which they can run.
        count: how many groups at most.
    """
    work = [multiply_adds(operation) for operation in operations]
    if not any(work):
        work = [1] * len(work)
    total = sum(work)
    parts: list[list[int]] = [[]]
    done = 0
    for index, amount in enumerate(work):
        if parts[-1] and done * count >= total * len(parts) and len(parts) < count:
            parts.append([])
        parts[-1].append(index)
        done += amount
    return [
        Group(tuple([operations[i].name for i in part]), sum(work[i] for i in part) / total)
        for part in parts
    ]


def together(errors: Iterable[float]) -> float:
    """The error of several roundings that know nothing of each other: they add as squares do."""
    return math.hypot(*errors)


def run(groups: Sequence[Group], errors: Sequence[float], most: float) -> list[int]:
    """The groups in a row with the most arithmetic whose errors together stay below a bound.

    Args:
        groups: in their order.
        errors: of each, where all else is exact.
        most: the bound.
    """
    best: list[int] = []
    largest = 0.0
    for first in range(len(groups)):
        for last in range(first, len(groups)):
            if together(errors[first : last + 1]) > most:
                break
            share = sum(group.share for group in groups[first : last + 1])
            if share > largest:
                best, largest = list(range(first, last + 1)), share
    return best


def subset(groups: Sequence[Group], errors: Sequence[float], most: float) -> list[int]:
    """Groups anywhere whose errors together stay below a bound.

    What adds the most error for its arithmetic is left out first.

    Args:
        groups: in their order.
        errors: of each, where all else is exact.
        most: the bound.
    """
    chosen = [index for index in range(len(groups)) if errors[index] <= most]
    chosen.sort(key=lambda i: errors[i] ** 2 / max(groups[i].share, 1e-9))
    while chosen and together(errors[i] for i in chosen) > most:
        chosen.pop()
    return sorted(chosen)
