"""Topological order that keeps groups of tasks together."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def grouped(readers: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return tasks in an executable order, with each group as one task.

    A group is split if another task reads from a member and another member reads from that task. If
    only several groups together prevent an order, the largest is split.

    Args:
        readers: for each task, the tasks that wait for it.
        groups: disjoint sets of tasks.
    """
    left = [sorted(group) for group in groups if len(group) > 1]
    while True:
        order, stuck = _in_order(readers, left)
        if not stuck:
            return order
        left.remove(max((group for group in left if stuck.issuperset(group)), key=len))


def _in_order(
    readers: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]
) -> tuple[list[list[int]], set[int]]:
    """Return an order of single tasks and groups, and the tasks that are part of a cycle."""
    unit_of: list[list[int]] = [[task] for task in range(len(readers))]
    for group in groups:
        for task in group:
            unit_of[task] = list(group)
    waiting = {unit[0]: 0 for unit in unit_of}
    for task, others in enumerate(readers):
        for reader in others:
            if unit_of[reader][0] != unit_of[task][0]:
                waiting[unit_of[reader][0]] += 1
    ready = [first for first, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        unit = unit_of[heapq.heappop(ready)]
        order.append(unit)
        for task in unit:
            for reader in readers[task]:
                first = unit_of[reader][0]
                if first != unit[0]:
                    waiting[first] -= 1
                    if waiting[first] == 0:
                        heapq.heappush(ready, first)
    placed = {task for unit in order for task in unit}
    return order, set(range(len(readers))) - placed
