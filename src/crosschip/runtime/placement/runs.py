"""Ordering of coloured tasks with as few changes of colour as possible.

The tasks are operations and the colours devices, but nothing here depends on that. Once a colour is
chosen, doing all that can be done in it never makes the rest longer; so an order is fixed by its
sequence of colours, and the question is only which colour comes next.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from heapq import heappop, heappush

_SEARCH_BUDGET = 500_000
"""The task visits that the exact search may take before the greedy order is good enough."""

_DONE = -1


def fewest_runs(
    colours: Sequence[str], readers: Sequence[Sequence[int]]
) -> Sequence[Sequence[int]]:
    """Order tasks in runs of one colour each, every task after those that it waits for.

    With one or two colours the number of runs is minimal. With more, the problem is as hard as the
    shortest common supersequence of many strings; the order is still minimal wherever the greedy
    order
    meets the lower bound (as on chains and trees), or the exact search ends within its budget of
    task
    visits.

    Args:
        colours: the colour of each task; tasks are numbered in an executable order.
        readers: for each task, the tasks that wait for it, without duplicates.
    """
    graph = _Graph(colours, readers)
    firsts = sorted({colours[task] for task in graph.sources})
    if not firsts:
        return []
    greedy = min((graph.greedy(first) for first in firsts), key=len)
    if len(set(colours)) < 3 or len(greedy) == 1 + max(graph.changes_ahead):
        return greedy
    return graph.search(len(greedy)) or greedy


class _Graph:
    """The tasks, their readers, and the changes of colour on the longest path from each task."""

    def __init__(self, colours: Sequence[str], readers: Sequence[Sequence[int]]) -> None:
        self.colours = colours
        self.readers = readers
        self.waiting = [0] * len(colours)
        for tasks in readers:
            for task in tasks:
                self.waiting[task] += 1
        self.sources = [task for task, count in enumerate(self.waiting) if count == 0]
        self.changes_ahead = changes_ahead = [0] * len(colours)
        for task in reversed(range(len(colours))):
            own, most = colours[task], 0
            for reader in readers[task]:
                ahead = changes_ahead[reader] + (colours[reader] != own)
                if ahead > most:
                    most = ahead
            changes_ahead[task] = most

    def greedy(self, first: str) -> list[tuple[int, ...]]:
        """Return runs that start with colour `first` and then follow the most remaining changes."""
        order = _Order(self)
        colour: str | None = first
        while colour is not None:
            order.run(colour)
            colour = order.farthest()
        return order.runs

    def search(self, known: int) -> list[tuple[int, ...]] | None:
        """Return a minimal order of fewer than `known` runs; `None` if the budget finds none."""
        start = _Order(self)
        queue = [(start.bound(), 0, start)]
        reached: dict[tuple[int, ...], int] = {}
        serial = 0
        for _ in range(_SEARCH_BUDGET // len(self.colours)):
            bound, _, order = heappop(queue)
            if bound >= known:
                return None
            if not order.choices():
                return order.runs
            for colour in order.choices():
                further = order.copy()
                further.run(colour)
                state = tuple(further.waiting)
                if len(further.runs) < reached.get(state, known):
                    reached[state] = len(further.runs)
                    serial += 1
                    heappush(queue, (further.bound(), serial, further))
        return None


class _Order:
    """The beginning of an order, and the tasks that can follow.

    Attributes:
        runs: the runs so far.
        waiting: for each task, the number of unfinished tasks that it waits for, or `_DONE`.
        ready: for each colour, a heap of the executable tasks, by the changes after them.
    """

    def __init__(self, graph: _Graph) -> None:
        self.graph = graph
        self.runs: list[tuple[int, ...]] = []
        self.waiting = list(graph.waiting)
        self.ready: dict[str, list[tuple[int, int]]] = {c: [] for c in sorted(set(graph.colours))}
        for task in graph.sources:
            heappush(self.ready[graph.colours[task]], (-graph.changes_ahead[task], task))

    def farthest(self) -> str | None:
        """Return the colour of the task with the most changes after it; `None` if all are done."""
        best = None
        for colour, tasks in self.ready.items():
            if tasks and (best is None or tasks[0] < self.ready[best][0]):
                best = colour
        return best

    def choices(self) -> list[str]:
        """Return the colours of executable tasks."""
        return [colour for colour, tasks in self.ready.items() if tasks]

    def run(self, colour: str) -> None:
        """Append all tasks that are executable in one colour."""
        ready, waiting, graph = self.ready[colour], self.waiting, self.graph
        ahead, colours, readers = graph.changes_ahead, graph.colours, graph.readers
        tasks: list[int] = []
        while ready:
            _, task = heappop(ready)
            waiting[task] = _DONE
            tasks.append(task)
            for reader in readers[task]:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    heappush(self.ready[colours[reader]], (-ahead[reader], reader))
        tasks.sort()
        self.runs.append(tuple(tasks))

    def bound(self) -> int:
        """Return the least number of runs of any order with this beginning."""
        ahead = [-tasks[0][0] for tasks in self.ready.values() if tasks]
        return len(self.runs) + (1 + max(ahead) if ahead else 0)

    def copy(self) -> _Order:
        """Return an independent copy."""
        other = copy(self)
        other.runs = list(self.runs)
        other.waiting = list(self.waiting)
        other.ready = {colour: list(tasks) for colour, tasks in self.ready.items()}
        return other
