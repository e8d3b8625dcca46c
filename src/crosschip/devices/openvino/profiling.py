"""Times of OpenVINO's layers, and the operations that each layer computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter

import openvino

from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Profiler, Program, Step
from crosschip.hal.program import computes_data
from crosschip.ir import Array, Operation
from crosschip.ir.dataclass import dataclass

_NOTHING_COMPUTED = ("Input", "Output", "Const", "Reorder")
"""The types of layers that only move values."""
_OURS = re.compile(r"operation(\d+)\.\d+")


class Layers:
    """Layer names that identify operations.

    OpenVINO keeps the names through its passes, lists for each layer the names of its parts, and
    names a layout conversion after the layers that it connects.

    Args:
        graph: the graph that contains the layers.
    """

    def __init__(self, graph: Graph) -> None:
        self._operations: list[Operation] = []
        self._known = {parameter.get_name() for parameter in graph.parameters}

    def name(self, operation: Operation, values: Iterable[Value]) -> None:
        """Name the unnamed nodes that compute these values after an operation."""
        number = len(self._operations)
        self._operations.append(operation)
        pending = [v if isinstance(v, openvino.Node) else v.get_node() for v in values]
        count = 0
        while pending:
            node = pending.pop()
            if node.get_name() in self._known:
                continue
            self._known.add(node.get_name())
            node.set_friendly_name(f"operation{number}.{count}")
            count += 1
            pending += [
                node.input_value(index).get_node() for index in range(node.get_input_size())
            ]

    def executed(self, compiled: openvino.CompiledModel) -> Mapping[str, Layer]:
        """Return the layers that a compiled model executes, by name."""
        types: dict[str, str] = {}
        members: dict[str, set[int]] = {}
        for layer in compiled.get_runtime_model().get_ops():
            facts, name = layer.get_rt_info(), layer.get_friendly_name()
            types[name] = facts["layerType"].astype(str)
            members[name] = _numbers(name, facts["originalLayersNames"].astype(str))
        self._add_lost(types, members)
        return {
            name: Layer(types[name], tuple([self._operations[n] for n in sorted(numbers)]))
            for name, numbers in members.items()
        }

    def _add_lost(self, types: Mapping[str, str], members: Mapping[str, set[int]]) -> None:
        """Assign operations without a layer to the layer that computes their reader.

        When OpenVINO fuses two layers, it may report only the second.
        """
        layer_of: dict[int, str] = {}
        for name, numbers in members.items():
            if types[name] not in _NOTHING_COMPUTED:
                for number in numbers:
                    layer_of.setdefault(number, name)
        readers = {
            operand: number
            for number, operation in enumerate(self._operations)
            for operand in operation.inputs
        }
        for number in reversed(range(len(self._operations))):
            operation = self._operations[number]
            if number not in layer_of and computes_data(operation):
                read_by = (readers[o] for o in operation.outputs if o in readers)
                layer = next((layer_of[r] for r in read_by if r in layer_of), None)
                if layer is not None:
                    layer_of[number] = layer
                    members[layer].add(number)


def _numbers(layer: str, parts: str) -> set[int]:
    """Return the indices of the operations that a layer computes.

    Args:
        layer: its name.
        parts: the names of the model's layers fused into it; empty for a layout conversion, whose
            time counts as that of the layer that reads its result.
    """
    return set(map(int, _OURS.findall(parts) or _OURS.findall(layer)[-1:]))


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that OpenVINO executes.

    Attributes:
        type: OpenVINO's layer type.
        operations: the operations that the layer computes, wholly or in part.
    """

    type: str
    operations: tuple[Operation, ...]


class OpenVinoProfiler(Profiler):
    """A profiler on OpenVINO's performance counters.

    OpenVINO reports each layer's mean over all runs so far, in whole microseconds. The difference
    of two reports gives the sum over the runs between; each run gets a share in proportion to its
    time.

    Args:
        program: the program that is profiled.
        layers: its layers, by name.
        means: returns the mean seconds of each layer, by name.
    """

    def __init__(
        self,
        program: Program,
        layers: Mapping[str, Layer],
        means: Callable[[], Mapping[str, float]],
    ) -> None:
        self._program = program
        self._layers = layers
        self._means = means
        self._warm: dict[str, float] = {}
        self._warm_runs = 0
        self._seconds: list[float] = []

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        start = perf_counter()
        outputs = self._program.run(inputs)
        self._seconds.append(perf_counter() - start)
        return outputs

    def begin(self) -> None:
        self._warm = self._sums()
        self._warm_runs += len(self._seconds)
        self._seconds = []

    def steps(self) -> Sequence[Sequence[Step]]:
        sums = {
            name: max(0.0, seconds - self._warm.get(name, 0.0))
            for name, seconds in self._sums().items()
        }
        total = max(sum(self._seconds), sum(sums.values()))
        shares = [seconds / total for seconds in self._seconds]
        return [
            [
                Step(self._layers[name].type, seconds * share, self._layers[name].operations)
                for name, seconds in sums.items()
            ]
            for share in shares
        ]

    def close(self) -> None:
        self._program.close()

    def _sums(self) -> dict[str, float]:
        """Return the seconds of each layer, summed over all runs."""
        runs = self._warm_runs + len(self._seconds)
        return {name: mean * runs for name, mean in self._means().items()} if runs else {}
