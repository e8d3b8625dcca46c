"""Times of ONNX Runtime's nodes, and the operations that each node computes."""

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

from crosschip.devices.onnxruntime.session import failure
from crosschip.hal import Profiler, Program, Step
from crosschip.hal.program import computes_data
from crosschip.ir import Array, ControlFlow, If, Model, Operation
from crosschip.ir.dataclass import dataclass

_VALUE = re.compile(r"value\d+|extension\d+")
"""The prefixes of our value names, which ONNX Runtime's names of new nodes contain."""
_CONVERSION = "Reorder"
"""The prefix of the types of nodes that convert layouts."""
_FAR = 10
"""The maximum number of consecutive nodes with names that ONNX Runtime chose."""
_KERNEL = "_kernel_time"
_WITH_GRAPHS = ("If", "Loop", "Scan", "SequenceMap")


class Nodes:
    """The operations that nodes compute, including nodes of subgraphs.

    ONNX Runtime names a node after its outputs, or after outputs it had before fusion. An operation
    without a node was fused: into the following node if that node's type differs from the type that
    its operation was written as, else into the preceding one.

    Args:
        model: the source model.
        written: the ONNX model that it was converted to.
        executed: the optimized ONNX model, as far as known.
    """

    def __init__(self, model: Model, written: bytes, executed: bytes) -> None:
        self._model = model
        self._makers = dict(_makers(onnx.ModelProto.FromString(written).graph, model))
        nodes = onnx.ModelProto.FromString(executed).graph.node
        self._nodes = {node.name: node for node in nodes}
        self._before = {value: node.name for node in nodes for value in node.output}

    def operations(self, types: Mapping[str, str]) -> Mapping[str, tuple[Operation, ...]]:
        """Return the operations that executed nodes compute, by node name.

        Args:
            types: the node types, by node name.
        """
        fused = _Fused(dict(self._makers.values()), types)
        for name, type_ in types.items():
            maker = self._maker(name)
            fused.members[name] = []
            if maker is not None:
                fused.members[name].append(maker.operation)
                if not type_.startswith(_CONVERSION):
                    fused.node_of.setdefault(maker.operation, name)
                    if type_ != maker.type:
                        fused.last.add(maker.operation)
        fused.add(self._model)
        return {name: tuple(members) for name, members in fused.members.items()}

    def _maker(self, name: str) -> _Maker | None:
        """Return the producer of a value that a node is named after, outputs or reads."""
        for _ in range(_FAR):
            node = self._nodes.get(name, NodeProto())
            for value in (*_VALUE.findall(name)[-1:], *_VALUE.findall(" ".join(node.output))):
                if value in self._makers:
                    return self._makers[value]
            read = (self._before[value] for value in node.input if value in self._before)
            name = next(read, "")
        return None


class _Maker(NamedTuple):
    """The operation that produced a value, and the type of the node that it was written as."""

    operation: Operation
    type: str


def _makers(graph: GraphProto, model: Model) -> Iterator[tuple[str, _Maker]]:
    """Yield the prefixes of value names with their producers."""
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
    """The assignment of operations to nodes.

    Args:
        written: the node type that each operation was written as.
        executed: the types of the executed nodes, by name.

    Attributes:
        node_of: the node of each operation.
        members: the operations of each node.
        last: the operations whose outputs are their node's outputs.
    """

    def __init__(self, written: Mapping[Operation, str], executed: Mapping[str, str]) -> None:
        self._written = written
        self._executed = executed
        self.node_of: dict[Operation, str] = {}
        self.members: dict[str, list[Operation]] = {}
        self.last: set[Operation] = set()

    def add(self, model: Model) -> None:
        """Assign the operations of a model and its bodies that no node is named after."""
        pairs = {
            operation: [model.producers[o] for o in operation.inputs if o and o in model.producers]
            for operation in model.operations
        }
        for operation in reversed(model.operations):
            if operation in self.last:
                for producer in pairs[operation]:
                    if producer not in self.node_of and computes_data(producer):
                        name = self.node_of[operation]
                        self._put(producer, name)
                        if self._written.get(producer) != self._executed[name]:
                            self.last.add(producer)
        order = {operation: index for index, operation in enumerate(model.operations)}
        for operation, producers in pairs.items():
            for body in operation.bodies:
                self.add(body)
            assigned = [producer for producer in producers if producer in self.node_of]
            if operation not in self.node_of and assigned and computes_data(operation):
                self._put(operation, self.node_of[max(assigned, key=order.__getitem__)])
        for members in self.members.values():
            members.sort(key=lambda operation: order.get(operation, 0))

    def _put(self, operation: Operation, name: str) -> None:
        self.node_of[operation] = name
        self.members[name].append(operation)


def _start(name: str) -> str:
    match = _VALUE.match(name)
    return match[0] if match else name


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)


@dataclass(slots=True)
class _Event:
    """The execution of a node or of a whole run; times are in microseconds."""

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
    """A profiler on ONNX Runtime's recorded node times.

    Args:
        make: creates the program, given the path prefix of the record.
        finish: ends the recording and returns the path.
        nodes: the operations of the nodes.
    """

    def __init__(
        self, make: Callable[[str], Program], finish: Callable[[], str], nodes: Nodes
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
            raise failure("has not reported the times of its nodes", error) from error
        types = {event.name: event.type for run in runs for event in _all_events(run.inside)}
        operations = self._nodes.operations(types)
        return [_steps(run.inside, run.start, operations) for run in runs]

    def close(self) -> None:
        self._program.close()
        self._folder.cleanup()


def _runs_in(record: Sequence[Mapping[str, Any]]) -> list[_Event]:
    """Return the recorded runs with their nodes; nodes of subgraphs are nested."""
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
