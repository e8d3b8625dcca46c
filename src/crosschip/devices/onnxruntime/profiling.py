"""The time that ONNX Runtime's nodes take, and the operations that they stand for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import onnx
from onnx import GraphProto, NodeProto

from crosschip.devices.onnxruntime.failures import failure
from crosschip.hal import Profiler, Program, Step
from crosschip.hal.program import computes_data
from crosschip.ir import Array, ControlFlow, If, Model, Operation
from crosschip.ir.dataclass import dataclass

_VALUE = re.compile(r"value\d+|extension\d+")
"""The beginnings of our names of values, which ONNX Runtime's names of new nodes have in them."""
_CONVERSION = "Reorder"
"""The beginning of the types of nodes that bring values into another layout."""
_FAR = 10
"""The most nodes in a row that have names of ONNX Runtime's own."""
_KERNEL = "_kernel_time"
_WITH_GRAPHS = ("If", "Loop", "Scan", "SequenceMap")


class Nodes:
    """The operations that nodes stand for, those in graphs of nodes too.

    ONNX Runtime names a node after the values that it makes, or made before something was fused
    into it. Operations that no node is named after were fused: into the node behind them if that
    is of another type than its operation was written as, else into the one before them.

    Args:
        model: what was compiled.
        written: the ONNX model that it became.
        executed: the one that is executed, as far as it is known.
    """

    def __init__(self, model: Model, written: bytes, executed: bytes) -> None:
        self._model = model
        self._makers = dict(_makers(onnx.ModelProto.FromString(written).graph, model))
        nodes = onnx.ModelProto.FromString(executed).graph.node
        self._nodes = {node.name: node for node in nodes}
        self._before = {value: node.name for node in nodes for value in node.output}

    def operations(self, types: Mapping[str, str]) -> Mapping[str, tuple[Operation, ...]]:
        """The operations that executed nodes compute, by the nodes' names.

        Args:
            types: the type of each node, by its name.
        """
        fused = _Fused(dict(self._makers.values()), types)
        for name, type_ in types.items():
            maker = self._maker(name)
            fused.members[name] = []
            if maker is not None:
                fused.members[name].append(maker.operation)
                if not type_.startswith(_CONVERSION):
                    fused.place.setdefault(maker.operation, name)
                    if type_ != maker.type:
                        fused.last.add(maker.operation)
        fused.add(self._model)
        return {name: tuple(members) for name, members in fused.members.items()}

    def _maker(self, name: str) -> _Maker | None:
        """The maker of the values that a node is named after, or makes, or in the end reads."""
        for _ in range(_FAR):
            node = self._nodes.get(name, NodeProto())
            for value in (*_VALUE.findall(name)[-1:], *_VALUE.findall(" ".join(node.output))):
                if value in self._makers:
                    return self._makers[value]
            read = (self._before[value] for value in node.input if value in self._before)
            name = next(read, "")
        return None


class _Maker(NamedTuple):
    """The operation that made a value, and the type of the node as which that was written."""

    operation: Operation
    type: str


def _makers(graph: GraphProto, model: Model) -> Iterator[tuple[str, _Maker]]:
    """The beginnings of the names of values, with what made them."""
    labels = {_printable(operation.name): operation for operation in model.operations}
    for node in graph.node:
        value = next(filter(None, node.output))
        operation = labels.get(node.name.removesuffix(f".{value}"))
        if operation is None:
            continue
        yield from ((_start(n), _Maker(operation, node.op_type)) for n in node.output if n)
        if isinstance(operation, ControlFlow):
            yield from _makers_inside(node, operation)


def _makers_inside(node: NodeProto, operation: ControlFlow) -> Iterator[tuple[str, _Maker]]:
    names = ("then_branch", "else_branch") if isinstance(operation, If) else ("body",)
    graphs = {attribute.name: attribute.g for attribute in node.attribute}
    for name, body in zip(names, operation.bodies, strict=True):
        if name in graphs:
            yield from _makers(graphs[name], body)


class _Fused:
    """Operations in the nodes that compute them.

    Args:
        written: the type of the node as which each operation was written.
        executed: the types of the nodes that are executed, by name.

    Attributes:
        place: the name of each one's node.
        members: those of each node.
        last: those that stand at the end of what their node computes.
    """

    def __init__(self, written: Mapping[Operation, str], executed: Mapping[str, str]) -> None:
        self._written = written
        self._executed = executed
        self.place: dict[Operation, str] = {}
        self.members: dict[str, list[Operation]] = {}
        self.last: set[Operation] = set()

    def add(self, model: Model) -> None:
        """Add the operations of a model, and of bodies in it, that no node is named after."""
        pairs = {
            operation: [model.producers[o] for o in operation.inputs if o and o in model.producers]
            for operation in model.operations
        }
        for operation in reversed(model.operations):
            if operation in self.last:
                for before in pairs[operation]:
                    if before not in self.place and computes_data(before):
                        name = self.place[operation]
                        self._put(before, name)
                        if self._written.get(before) != self._executed[name]:
                            self.last.add(before)
        order = {operation: index for index, operation in enumerate(model.operations)}
        for operation, producers in pairs.items():
            for body in operation.bodies:
                self.add(body)
            known = [before for before in producers if before in self.place]
            if operation not in self.place and known and computes_data(operation):
                self._put(operation, self.place[max(known, key=order.__getitem__)])
        for members in self.members.values():
            members.sort(key=lambda operation: order.get(operation, 0))

    def _put(self, operation: Operation, name: str) -> None:
        self.place[operation] = name
        self.members[name].append(operation)


def _start(name: str) -> str:
    match = _VALUE.match(name)
    return match[0] if match else name


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)


@dataclass(slots=True)
class _Event:
    """A node's execution, or a run of all; times are in microseconds."""

    name: str
    type: str
    start: int
    duration: int
    inside: list[_Event] = field(default_factory=list)

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> _Event:
        type_ = entry["args"].get("op_name", "")
        return cls(entry["name"].removesuffix(_KERNEL), type_, entry["ts"], entry["dur"])

    def within(self, other: _Event) -> bool:
        return other.start <= self.start < other.start + other.duration


class OnnxRuntimeProfiler(Profiler):
    """Runs a session that records its nodes' times, and reads the record in the end.

    Args:
        make: makes the program to run from the beginning of the path of the record.
        finish: ends the recording of a program; returns the path.
        nodes: what the nodes stand for.
    """

    def __init__(
        self,
        make: Callable[[str], Program],
        finish: Callable[[], str],
        nodes: Nodes,
    ) -> None:
        self._folder = TemporaryDirectory(prefix="crosschip-")
        self._nodes = nodes
        self._finish = finish
        self._runs = self._warm_runs = 0
        try:
            self._program = make(str(Path(self._folder.name, "record")))
        except BaseException:
            self._folder.cleanup()
            raise

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        outputs = self._program.run(inputs)
        self._runs += 1
        return outputs

    def begin(self) -> None:
        self._warm_runs = self._runs

    def steps(self) -> Sequence[Sequence[Step]]:
        try:
            record = json.loads(Path(self._finish()).read_bytes())
            runs = _runs_in(record)[self._warm_runs :]
        except Exception as error:  # a broken record raises whatever reading it does
            raise failure("has not told how long its nodes took", error) from error
        types = {event.name: event.type for run in runs for event in _all_events(run.inside)}
        operations = self._nodes.operations(types)
        return [_steps(run.inside, run.start, operations) for run in runs]

    def close(self) -> None:
        self._program.close()
        self._folder.cleanup()


def _runs_in(record: Sequence[Mapping[str, Any]]) -> list[_Event]:
    """The runs that were recorded, each with its nodes; nodes of graphs in nodes are inside."""
    runs = [_Event.of(entry) for entry in record if entry.get("name") == "model_run"]
    runs.sort(key=lambda run: run.start)
    nodes = [_Event.of(entry) for entry in record if entry.get("cat") == "Node"]
    nodes.sort(key=lambda node: (node.start, -node.duration))
    pending = iter(runs)
    run = next(pending, None)
    open_: list[_Event] = []
    for node in nodes:
        while run is not None and node.start > run.start + run.duration:
            run, open_ = next(pending, None), []
        if run is None:
            break
        while open_ and not node.within(open_[-1]):
            open_.pop()
        (open_[-1] if open_ else run).inside.append(node)
        if node.type in _WITH_GRAPHS:
            open_.append(node)
    return runs


def _all_events(events: Sequence[_Event]) -> Iterator[_Event]:
    for event in events:
        yield event
        yield from _all_events(event.inside)


def _steps(
    events: Sequence[_Event], beginning: int, operations: Mapping[str, tuple[Operation, ...]]
) -> list[Step]:
    return [
        Step(
            event.type,
            event.duration / 1e6,
            operations[event.name],
            (event.start - beginning) / 1e6,
            _steps(event.inside, beginning, operations),
        )
        for event in events
    ]
