"""The device my_npu. NumPy stands where the calls of the chip's SDK will."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from crosschip import hal
from crosschip.ir import Array, ElementType, Model, Operand, Operation
from crosschip.ops.standard.activation import Relu

Call = tuple[Callable[..., Array], Sequence[int], Mapping[str, object]]
"""A function of the SDK, the numbers of the tensors that it reads, and its parameters."""


class Recorder:
    """The calls that a model becomes; each makes the tensor of the next number."""

    def __init__(self, model: Model) -> None:
        operands = [*model.inputs.values(), *model.constants]
        self.numbers = {operand: number for number, operand in enumerate(operands)}
        self.calls: list[Call] = []

    def call(self, function: Callable[..., Array], *read: Operand, **parameters: object) -> int:
        self.calls.append((function, [self.numbers[operand] for operand in read], parameters))
        return len(self.numbers)


converters = hal.Converters[Recorder, int](types={ElementType.FLOAT32})


@converters.converts(Relu)
def relu(recorder: Recorder, op: Relu) -> int:
    return recorder.call(lambda x: np.maximum(x, np.float32(0)), op.input)


class MyNpuProgram(hal.Program):
    """Makes the calls, one after the other; runs may overlap."""

    def __init__(self, model: Model, recorder: Recorder) -> None:
        self.constants = [operand.value for operand in model.constants]
        self.calls = recorder.calls
        self.outputs = [recorder.numbers[operand] for operand in model.outputs.values()]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        tensors = [*inputs, *self.constants]
        for function, read, parameters in self.calls:
            tensors.append(function(*(tensors[number] for number in read), **parameters))
        return [np.array(tensors[number]) for number in self.outputs]


class MyNpu(hal.Device):
    """The chip."""

    vendor = "the vendor of my_npu"
    kind = hal.Kind.ACCELERATOR
    version = "0.1.0"

    def supports(self, operation: Operation, options: hal.Options) -> hal.Support:
        return converters.supports(operation)

    def compile(self, model: Model, options: hal.Options) -> hal.Program:
        recorder = Recorder(model)
        for operation in model.operations:
            (number,) = converters.convert(recorder, operation)
            recorder.numbers[operation.outputs[0]] = number
        return MyNpuProgram(model, recorder)
