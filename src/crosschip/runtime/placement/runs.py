"""Ordering of coloured tasks with as few changes of colour as possible.

The tasks are operations and the colours are devices. Once a colour is chosen, running all
executable tasks of the colour never lengthens the remaining order. So an order is determined by its
sequence of colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from heapq import heappop, heappush

SEARCH_BUDGET = 500_000
"""The number of task visits after which the exact search ends, and the greedy order is used."""

_DONE = -1


def fewest_runs(
    colours: Sequence[str], readers: Sequence[Sequence[int]], budget: int = SEARCH_BUDGET
) -> Sequence[Sequence[int]]:
    """Return a topological order of tasks, as groups of consecutive tasks of one colour (runs).

    With one or two colours the number of runs is minimal. With more, the problem is as hard as the
    shortest common supersequence of many strings. The number of runs is still minimal if the greedy
    order meets the lower bound (as on chains and trees), or the exact search ends within its
    budget.

    Args:
        colours: the colour of each task; tasks are numbered in an executable order.
        readers: for each task, the tasks that wait for it, without duplicates.
        budget: the maximum number of task visits of the exact search.
    """
    graph = _Graph(colours, readers)
    firsts = sorted({colours[task] for task in graph.sources})
    if not firsts:
        return []
    greedy = min((graph.greedy(first) for first in firsts), key=len)
    if len(set(colours)) < 3 or len(greedy) == 1 + max(graph.changes_ahead):
        return greedy
    return graph.search(len(greedy), budget) or greedy


class _Graph:
    """The tasks, their readers, and the maximum number of colour changes on a path from each."""

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
            colour = colours[task]
            changes = [changes_ahead[r] + (colours[r] != colour) for r in readers[task]]
            changes_ahead[task] = max(changes, default=0)

    def greedy(self, first: str) -> list[tuple[int, ...]]:
        """Return runs that start with colour `first` and then follow the most remaining changes."""
        order = _Order(self)
        colour: str | None = first
        while colour is not None:
            order.run(colour)
            colour = order.farthest()
        return order.runs

    def search(self, most: int, budget: int) -> list[tuple[int, ...]] | None:
        """Return a minimal order of fewer than `most` runs; `None` if the budget ends first."""
        start = _Order(self)
        queue = [(start.bound(), 0, start)]
        reached: dict[tuple[int, ...], int] = {}
        serial = 0
        for _ in range(budget // len(self.colours)):
            bound, _, order = heappop(queue)
            if bound >= most:
                return None
            if not order.choices():
                return order.runs
            for colour in order.choices():
                further = order.copy()
                further.run(colour)
                state = tuple(further.waiting)
                if len(further.runs) < reached.get(state, most):
                    reached[state] = len(further.runs)
                    serial += 1
                    heappush(queue, (further.bound(), serial, further))
        return None


class _Order:
    """The beginning of an order, and the tasks that can follow.

    Attributes:
        runs: the runs so far.
        waiting: for each task, the number of unfinished tasks that it waits for, or `_DONE`.
        ready: for each colour, a heap of the executable tasks, ordered by `changes_ahead`.
    """

    def __init__(self, graph: _Graph) -> None:
        self.graph = graph
        self.runs: list[tuple[int, ...]] = []
        self.waiting = list(graph.waiting)
        self.ready: dict[str, list[tuple[int, int]]] = {c: [] for c in sorted(set(graph.colours))}
        for task in graph.sources:
            heappush(self.ready[graph.colours[task]], (-graph.changes_ahead[task], task))

    def farthest(self) -> str | None:
        """Return the colour of the task with the most `changes_ahead`; `None` if all are done."""
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
        """Return a lower bound on the runs of any order with this beginning."""
        ahead = [-tasks[0][0] for tasks in self.ready.values() if tasks]
        return len(self.runs) + (1 + max(ahead) if ahead else 0)

    def copy(self) -> _Order:
        """Return an independent copy."""
        other = copy(self)
        other.runs = list(self.runs)
        other.waiting = list(self.waiting)
        other.ready = {colour: list(tasks) for colour, tasks in self.ready.items()}
        return other
