"""Ordering coloured tasks so that the colour changes as seldom as possible.

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


def fewest_runs(colours: Sequence[str], readers: Sequence[Sequence[int]]) -> list[list[int]]:
    """Tasks in runs of one colour each, every task after those that it waits for.

    With one or two colours there are never more runs than necessary. With more, finding the fewest
    is as hard as the shortest common supersequence of many strings; the order is still the best
    one wherever the greedy order meets the lower bound (as on chains and trees), or the exact
    search ends within its budget of task visits.

    Args:
        colours: of each task; the tasks are numbered in an order in which they can run.
        readers: of each task, those that wait for it; each once.
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
    """The tasks, who waits for whom, and how many changes of colour lie ahead of each."""

    def __init__(self, colours: Sequence[str], readers: Sequence[Sequence[int]]) -> None:
        self.colours = colours
        self.readers = readers
        self.waiting = [0] * len(colours)
        for tasks in readers:
            for task in tasks:
                self.waiting[task] += 1
        self.sources = [task for task, count in enumerate(self.waiting) if count == 0]
        self.changes_ahead = [0] * len(colours)
        for task in reversed(range(len(colours))):
            for reader in readers[task]:
                ahead = self.changes_ahead[reader] + (colours[reader] != colours[task])
                self.changes_ahead[task] = max(self.changes_ahead[task], ahead)

    def greedy(self, first: str) -> list[list[int]]:
        """Runs from one of colour `first` on, then always towards the most changes ahead."""
        order = _Order(self)
        colour: str | None = first
        while colour is not None:
            order.run(colour)
            colour = min(order.choices(), key=lambda name: order.ready[name][0], default=None)
        return order.runs

    def search(self, known: int) -> list[list[int]] | None:
        """An order of fewer than `known` runs, the fewest; `None` if none is found in budget."""
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
    """The beginning of an order, and what can come next.

    Attributes:
        runs: those so far.
        waiting: for each task, how many of those that it waits for are to be done, or `_DONE`.
        ready: for each colour, a heap of the tasks that can be done, by the changes ahead of them.
    """

    def __init__(self, graph: _Graph) -> None:
        self.graph = graph
        self.runs: list[list[int]] = []
        self.waiting = list(graph.waiting)
        self.ready: dict[str, list[tuple[int, int]]] = {c: [] for c in sorted(set(graph.colours))}
        for task in graph.sources:
            self._offer(task)

    def choices(self) -> list[str]:
        """The colours of tasks that can be done."""
        return [colour for colour, tasks in self.ready.items() if tasks]

    def run(self, colour: str) -> None:
        """Do all that can be done in one colour."""
        tasks: list[int] = []
        while self.ready[colour]:
            _, task = heappop(self.ready[colour])
            self.waiting[task] = _DONE
            tasks.append(task)
            for reader in self.graph.readers[task]:
                self.waiting[reader] -= 1
                if self.waiting[reader] == 0:
                    self._offer(reader)
        self.runs.append(sorted(tasks))

    def bound(self) -> int:
        """The least number of runs in an order that begins like this."""
        ahead = [-tasks[0][0] for tasks in self.ready.values() if tasks]
        return len(self.runs) + (1 + max(ahead) if ahead else 0)

    def copy(self) -> _Order:
        """Another beginning that is the same so far."""
        other = copy(self)
        other.runs = list(self.runs)
        other.waiting = list(self.waiting)
        other.ready = {colour: list(tasks) for colour, tasks in self.ready.items()}
        return other

    def _offer(self, task: int) -> None:
        entry = (-self.graph.changes_ahead[task], task)
        heappush(self.ready[self.graph.colours[task]], entry)
