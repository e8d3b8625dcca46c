"""Simulated devices whose operations take known times."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from tests.modelling import DelegatingDevice

from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options, Program
from crosschip.ir import Array, Builder, DeviceError, ElementType, Model, Operand, TensorType
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.runtime.compile.segments import Compilation
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.placement import place
from crosschip.runtime.placement.queries import Answers

LAUNCH_SECONDS = 0.001
"""The time that a simulated device needs besides that of the operations."""


class SleepingDevice(DelegatingDevice):
    """The reference device, which sleeps for a time that depends on the operators.

    Attributes:
        seconds: the time of each operator; 0 for others.
        runs: the number of operations of each program that has run.
        problem: with which runs fail; empty if they do not.
        opened: the number of programs that are open.
    """

    def __init__(self, name: str, seconds: Mapping[str, float], **options: object) -> None:
        super().__init__(name=name, **options)  # type: ignore[arg-type]
        self.seconds = seconds
        self.runs: list[int] = []
        self.problem = ""
        self.opened = 0

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options).close()
        return SleepingProgram(self, model)


class SleepingProgram(ReferenceProgram):
    def __init__(self, device: SleepingDevice, model: Model) -> None:
        super().__init__(model)
        device.opened += 1
        self.device = device
        self.count = len(model.operations)
        self.seconds = LAUNCH_SECONDS
        self.seconds += sum(device.seconds.get(each.type, 0.0) for each in model.operations)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        if self.device.problem:
            raise DeviceError(self.device.problem)
        self.device.runs.append(self.count)
        time.sleep(self.seconds)
        return super().run(inputs)

    def close(self) -> None:
        self.device.opened -= 1


def sleeping(**seconds: Mapping[str, float]) -> dict[str, SleepingDevice]:
    """Devices by name, with the time of each operator."""
    return {name: SleepingDevice(name, times) for name, times in seconds.items()}


def compilation_of(devices: Mapping[str, SleepingDevice]) -> Compilation:
    """The compilation for devices, without a cache."""
    return Compilation({n: GuardedDevice(d, n) for n, d in devices.items()}, Options())


def answers_of(model: Model, compilation: Compilation) -> Mapping[str, Answers]:
    """The answers of all devices about all operations."""
    placement = place(model, compilation.queries(), ask_all=True, partial=True)
    return placement.assignment.answers


def layers(count: int = 4, *, size: int = 1 << 16) -> Model:
    """A chain of RELU, TANH and SIGMOID in turns, each large enough for a block of its own."""
    b = Builder("layers")
    x: Operand = b.input("x", TensorType(ElementType.FLOAT32, (size,)))
    for index in range(count):
        x = b.add((Relu, Tanh, Sigmoid)[index % 3], x)
    b.output("y", x)
    return b.build()
