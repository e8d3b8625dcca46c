"""From a model to a graph of the DDK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosschip.hal import CompileError
from crosschip.ir import Model, Operand
from crosschip.ops.standard.quantization import Quantize
from fake_npu.answers import answer
from fake_npu.assembly import Assembly, tensor_of
from fake_npu.converters import converters
from fake_npu.forms import Form, on_chip
from fake_npu.work import Job, jobs, source_of
from fake_npu_ddk import Graph, Operator


@dataclass(frozen=True, slots=True)
class Lowered:
    """A model as the DDK's compiler takes it.

    Attributes:
        graph: the graph.
        feeds: for each input of the graph the number of the model's, and its form.
        results: the form of each output of the model, in order.
    """

    graph: Graph
    feeds: Sequence[tuple[int, Form]]
    results: Sequence[Form]


def lower(model: Model, *, half: bool) -> Lowered:
    """The graph of a model.

    Args:
        model: a model of operations that the device answered with yes, each output made by one.
        half: whether float32 is to be computed in float16.

    Raises:
        CompileError: the device does not do some operations after all.
    """
    todo = jobs(model)
    for job in todo:
        told = answer(job, half=half)
        if not told:
            raise CompileError(told.reason, [job.operation])
    lowering = _Lowering(model, todo)
    for job in todo:
        lowering.convert(job)
    return lowering.finished()


class _Lowering:
    def __init__(self, model: Model, todo: Sequence[Job]) -> None:
        self._model = model
        self._assembly = Assembly()
        self._places = {operand: place for place, operand in enumerate(model.inputs.values())}
        self._feeds: list[tuple[int, Form]] = []
        read = {
            operand for job in todo if not self._enters(job) for operand in job.operation.inputs
        }
        read.update(source_of(model, operand) for operand in model.outputs.values())
        for operand in model.inputs.values():
            if operand in read:
                self._feed(operand, operand, Form.of(operand))

    def convert(self, job: Job) -> None:
        """Convert a job, or where it converts what enters, leave it to the driver."""
        operation = job.operation
        if self._enters(job):
            (made,), read = operation.outputs, operation.inputs[0]
            assert read is not None, "it is filled"
            self._feed(made, read, Form.of(read, on_chip(made)))
            return
        self._assembly.bounds = job.bounds
        values = converters.convert(self._assembly, operation)
        for operand, value in zip(operation.outputs, values, strict=True):
            self._assembly.define(operand, value)

    def finished(self) -> Lowered:
        """The graph, with the model's outputs as its own."""
        graph = self._assembly.graph
        results = []
        for output in self._model.outputs.values():
            source = source_of(self._model, output)
            if source.is_constant:  # and no byte, perhaps: weights that another device reads, too
                at_fault = [self._model.producers[output]]
                raise CompileError(f"{output.name!r} is a constant of the program", at_fault)
            value = self._assembly[source]
            if value in graph.outputs or not graph.is_made(value):
                value = graph.add(Operator.RESCALE, [value], graph.tensors[value])
            graph.output(value)
            results.append(Form.of(output, None if source is output else on_chip(source)))
        return Lowered(graph.finish(), self._feeds, results)

    def _enters(self, job: Job) -> bool:
        """Tell whether a job makes bytes of reals that enter."""
        return isinstance(job.operation, Quantize) and job.operation.inputs[0] in self._places

    def _feed(self, operand: Operand, source: Operand, form: Form) -> None:
        self._assembly.define(operand, self._assembly.graph.input(tensor_of(operand)))
        self._feeds.append((self._places[source], form))
