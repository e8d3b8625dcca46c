"""Programs of models with open sizes, on devices that compile known sizes only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosschip.hal import Device, Program, Sizes
from crosschip.ir import Array, Model
from crosschip.runtime.shapes.fixing import fixed
from crosschip.runtime.shapes.policy import is_fixed_for

Compile = Callable[[Model], Program]


def program_of(device: Device, model: Model, compile: Compile) -> Program:
    """The program that a device makes of a model, or that makes one of it for each run.

    Args:
        device: whose capabilities count.
        model: what to run.
        compile: has the device compile a model.
    """
    if is_fixed_for(device.capabilities(), model, Sizes()):
        return _Sized(device.name, model, compile)
    return compile(model)


class _Sized(Program):
    """Compiles a model anew for each run, with the sizes of its inputs."""

    def __init__(self, name: str, model: Model, compile: Compile) -> None:
        self._name = name
        self._model = model
        self._compile = compile

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        sized = fixed(self._model, [array.shape for array in inputs], {}, self._name)
        made: Sequence[Array] = ()
        if sized.model.operations:
            program = self._compile(sized.model)
            made = program.run([inputs[index] for index in sized.reads])
            program.close()
        return [made[m] if isinstance(m, int) else m.copy() for m in sized.makes]
