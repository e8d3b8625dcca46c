"""Groups of operations that are tried in one precision together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Operation


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive operations.

    Attributes:
        operations: the names of the operations.
        share: their share of the model's multiply-adds, from 0 to 1.
    """

    operations: tuple[str, ...]
    share: float


def groups_of(operations: Sequence[Operation], count: int) -> list[Group]:
    """Divide operations into consecutive groups with about equal multiply-adds.

    Args:
        operations: the operations, in topological order.
        count: the maximum number of groups.
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


def combined_error(errors: Iterable[float]) -> float:
    """Return the error of independent roundings: the root of the sum of squares."""
    return math.hypot(*errors)


def best_run(groups: Sequence[Group], errors: Sequence[float], most: float) -> list[int]:
    """Return the consecutive groups with the most multiply-adds and a combined error in the bound.

    Args:
        groups: the groups, in order.
        errors: the error of each group if all others are exact.
        most: the bound.
    """
    best: list[int] = []
    largest = 0.0
    for first in range(len(groups)):
        for last in range(first, len(groups)):
            if combined_error(errors[first : last + 1]) > most:
                break
            share = sum(group.share for group in groups[first : last + 1])
            if share > largest:
                best, largest = list(range(first, last + 1)), share
    return best


def best_subset(groups: Sequence[Group], errors: Sequence[float], most: float) -> list[int]:
    """Return groups, not necessarily consecutive, with a combined error in the bound.

    Groups with the most error per multiply-add are left out first.

    Args:
        groups: the groups, in order.
        errors: the error of each group if all others are exact.
        most: the bound.
    """
    chosen = [index for index in range(len(groups)) if errors[index] <= most]
    chosen.sort(key=lambda i: errors[i] ** 2 / max(groups[i].share, 1e-9))
    while chosen and combined_error(errors[i] for i in chosen) > most:
        chosen.pop()
    return sorted(chosen)
