"""A complete device: a chip that does nothing but leaky ReLU, on float32 vectors.

The chip's own SDK is played by three lines of NumPy; everything else is what a real device has.
"""

import json
from collections.abc import Callable, Sequence

import numpy as np

from crosschip import hal
from crosschip.ir import Array, ElementType, Model, Operand, Operation
from crosschip.ops.standard.activation import LeakyRelu

SDK_INSTRUCTIONS: dict[str, Callable[[Array, float], Array]] = {
    "lrelu": lambda x, slope: np.where(x >= 0, x, np.float32(slope) * x),
}

Instruction = tuple[str, int, float]  # name, register to read, immediate


class Assembly:
    """The instructions that converters write, each of which fills the next register."""

    def __init__(self, model: Model) -> None:
        loaded = [*model.inputs.values(), *model.constants]
        self.registers = {operand: i for i, operand in enumerate(loaded)}
        self.instructions: list[Instruction] = []

    def add(self, name: str, source: Operand, immediate: float) -> int:
        self.instructions.append((name, self.registers[source], immediate))
        return len(self.registers)


def positive(op: LeakyRelu) -> hal.Refusal | None:
    return hal.Refusal("alpha", "is negative") if op.alpha < 0 else None


converters = hal.Converters[Assembly, int](types={ElementType.FLOAT32})


@converters.converts(LeakyRelu, limit=positive)
def leaky_relu(assembly: Assembly, op: LeakyRelu) -> int:
    return assembly.add("lrelu", op.input, op.alpha)


class ToyProgram(hal.Program):
    """Runs instructions; holds no state between runs, so runs may overlap."""

    def __init__(self, model: Model, code: bytes) -> None:
        self.code = code
        self.instructions, self.outputs = json.loads(code)
        self.constants = [operand.value for operand in model.constants]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        registers = [*inputs, *self.constants]
        for name, source, immediate in self.instructions:
            registers.append(SDK_INSTRUCTIONS[name](registers[source], immediate))
        return [np.array(registers[output]) for output in self.outputs]

    def save(self) -> bytes:
        return self.code


class ToyNpu(hal.Device):
    """The chip."""

    vendor = "Toy Semiconductors"
    kind = hal.Kind.ACCELERATOR
    version = "1.0"

    def supports(self, operation: Operation, options: hal.Options) -> hal.Support:
        return converters.supports(operation)

    def compile(self, model: Model, options: hal.Options) -> hal.Program:
        assembly = Assembly(model)
        for operation in model.operations:
            (register,) = converters.convert(assembly, operation)
            assembly.registers[operation.outputs[0]] = register
        outputs = [assembly.registers[operand] for operand in model.outputs.values()]
        return ToyProgram(model, json.dumps([assembly.instructions, outputs]).encode())

    def load(self, saved: bytes, model: Model, options: hal.Options) -> hal.Program:
        return ToyProgram(model, bytes(saved))
