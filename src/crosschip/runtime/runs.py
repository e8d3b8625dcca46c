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


def fewest_runs(
    colours: Sequence[str], readers: Sequence[Sequence[int]]
) -> Sequence[Sequence[int]]:
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
        self.changes_ahead = changes_ahead = [0] * len(colours)
        for task in reversed(range(len(colours))):
            own, most = colours[task], 0
            for reader in readers[task]:
                ahead = changes_ahead[reader] + (colours[reader] != own)
                if ahead > most:
                    most = ahead
            changes_ahead[task] = most

    def greedy(self, first: str) -> list[tuple[int, ...]]:
        """Runs from one of colour `first` on, then always towards the most changes ahead."""
        order = _Order(self)
        colour: str | None = first
        while colour is not None:
            order.run(colour)
            colour = order.farthest()
        return order.runs

    def search(self, known: int) -> list[tuple[int, ...]] | None:
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
        self.runs: list[tuple[int, ...]] = []
        self.waiting = list(graph.waiting)
        self.ready: dict[str, list[tuple[int, int]]] = {c: [] for c in sorted(set(graph.colours))}
        for task in graph.sources:
            heappush(self.ready[graph.colours[task]], (-graph.changes_ahead[task], task))

    def farthest(self) -> str | None:
        """The colour of the task with the most changes ahead; `None` if all are done."""
        best = None
        for colour, tasks in self.ready.items():
            if tasks and (best is None or tasks[0] < self.ready[best][0]):
                best = colour
        return best

    def choices(self) -> list[str]:
        """The colours of tasks that can be done."""
        return [colour for colour, tasks in self.ready.items() if tasks]

    def run(self, colour: str) -> None:
        """Do all that can be done in one colour."""
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
