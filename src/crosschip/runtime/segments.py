"""Cutting a placed model into segments.

A segment is a set of operations of one device that can run without a break: in some order of all
operations in which each comes after those it reads from, a segment is a run of one device. Fewest
segments, then, is an order with the fewest changes of device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import heappop, heappush

from crosschip.ir import Model, Operand, Operation


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a model that one device runs.

    Attributes:
        device: the device's name.
        model: the part, as a model of its own.
        inputs: the operands of the whole model that it reads, in the order of its inputs.
        outputs: the operands that it makes and others read, in the order of its outputs.
    """

    device: str
    model: Model
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]


def segments_of(model: Model, owner: Mapping[Operation, str]) -> tuple[Segment, ...]:
    """The model's operations as segments, in an order in which they can run."""
    runs = cut(model, owner)
    made_in: dict[Operand, int] = {}
    shared = set(model.outputs.values())
    for index, run in enumerate(runs):
        for operation in run:
            shared.update(
                operand
                for operand in operation.inputs
                if operand is not None and made_in.get(operand, index) != index
            )
            made_in.update(dict.fromkeys(operation.outputs, index))
    return tuple(
        _segment(f"{model.name}.{index}", owner[run[0]], run, shared)
        for index, run in enumerate(runs)
    )


def cut(model: Model, owner: Mapping[Operation, str]) -> list[list[Operation]]:
    """The operations in an order with few changes of device, one list a run.

    With two devices no order has fewer. With more, finding the fewest is as hard as the shortest
    common supersequence of many strings; the choice of the next device by the longest chain of
    changes that still lies ahead is exact on chains and trees.
    """
    if len(set(owner.values())) <= 1:
        return [list(model.operations)] if model.operations else []
    graph = _Graph(model, owner)
    starts = {graph.device[node] for node in graph.sources}
    orders = [graph.runs(first) for first in sorted(starts)]
    fewest = min(orders, key=len)
    return [[model.operations[node] for node in sorted(run)] for run in fewest]


_Ready = tuple[int, int]
"""An operation that can run: minus the changes of device ahead of it, and its index."""


class _Graph:
    """Dependencies between operations, by their index in the model."""

    def __init__(self, model: Model, owner: Mapping[Operation, str]) -> None:
        index = {operation: i for i, operation in enumerate(model.operations)}
        self.device = [owner[operation] for operation in model.operations]
        self.readers: list[list[int]] = [[] for _ in self.device]
        self.waiting = [0] * len(self.device)
        for operation, node in index.items():
            sources = {
                index[producer]
                for operand in operation.inputs
                if operand is not None and (producer := model.producers.get(operand)) is not None
            }
            self.waiting[node] = len(sources)
            for source in sources:
                self.readers[source].append(node)
        self.sources = [node for node, count in enumerate(self.waiting) if count == 0]
        self.changes_ahead = self._changes_ahead()

    def runs(self, first: str) -> list[list[int]]:
        """Runs of one device each, the first on `first`, each as long as it can be."""
        waiting = list(self.waiting)
        ready: dict[str, list[_Ready]] = {device: [] for device in sorted(set(self.device))}
        for node in self.sources:
            heappush(ready[self.device[node]], (-self.changes_ahead[node], node))
        runs: list[list[int]] = []
        device: str | None = first
        while device is not None:
            run: list[int] = []
            while ready[device]:
                _, node = heappop(ready[device])
                run.append(node)
                for reader in self.readers[node]:
                    waiting[reader] -= 1
                    if waiting[reader] == 0:
                        entry = (-self.changes_ahead[reader], reader)
                        heappush(ready[self.device[reader]], entry)
            runs.append(run)
            device = min(filter(ready.get, ready), key=lambda name: ready[name][0], default=None)
        return runs

    def _changes_ahead(self) -> list[int]:
        """For each operation, the most changes of device on a path that starts at it."""
        ahead = [0] * len(self.device)
        for node in reversed(range(len(self.device))):
            ahead[node] = max(
                (
                    ahead[reader] + (self.device[reader] != self.device[node])
                    for reader in self.readers[node]
                ),
                default=0,
            )
        return ahead


def _segment(name: str, device: str, run: Sequence[Operation], shared: Set[Operand]) -> Segment:
    made = {operand for operation in run for operand in operation.outputs}
    read = dict.fromkeys(
        operand
        for operation in run
        for operand in operation.inputs
        if operand is not None and not operand.is_constant and operand not in made
    )
    outputs = [o for operation in run for o in operation.outputs if o in shared]
    model = Model(
        name,
        {f"input{i}": operand for i, operand in enumerate(read)},
        run,
        {f"output{i}": operand for i, operand in enumerate(outputs)},
    )
    return Segment(device, model, tuple(read), tuple(outputs))
