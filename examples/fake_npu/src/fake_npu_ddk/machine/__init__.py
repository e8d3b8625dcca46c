"""The chip's processor, played by NumPy: executes the steps of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fake_npu_ddk.machine import integer_unit, movement, real_unit
from fake_npu_ddk.machine.kernel import Kernel, Work
from fake_npu_ddk.operators import Operator
from fake_npu_ddk.program import Place, Program
from fake_npu_ddk.tensors import Array, DataType

_Maker = Callable[[Work], Kernel]


class Machine:
    """A program that is ready to run; one run at a time.

    Args:
        program: the program.
        weights: its constants, in the chip's memory.
        arena: memory for what it makes on the way.
    """

    def __init__(self, program: Program, weights: Array, arena: Array) -> None:
        self._program = program
        memory = {Place.WEIGHTS: weights, Place.ARENA: arena}
        self._views = {
            number: located.tensor.view(memory[located.place], located.offset)
            for number, located in enumerate(program.tensors)
            if located.place in memory
        }
        self._steps = [
            (self._kernel(index), step.inputs, step.output)
            for index, step in enumerate(program.steps)
        ]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the outputs; inputs and outputs are bytes of the chip's memory."""
        views = dict(self._views)
        for number, located in enumerate(self._program.tensors):
            if located.place is Place.INPUT:
                views[number] = located.tensor.view(inputs[located.offset])
            elif located.place is Place.OUTPUT:
                views[number] = located.tensor.view(outputs[located.offset])
        with np.errstate(all="ignore"):
            for kernel, read, made in self._steps:
                kernel([views[number] for number in read], views[made])

    def _kernel(self, index: int) -> Kernel:
        step = self._program.steps[index]
        tensors = [self._program.tensors[number].tensor for number in step.inputs]
        output = self._program.tensors[step.output].tensor
        constants = [
            self._views[number] if self._program.tensors[number].place is Place.WEIGHTS else None
            for number in step.inputs
        ]
        work = Work(tensors, output, constants, step.settings, step.rows)
        unit = integer_unit if output.type is DataType.UINT8 else real_unit
        makers: dict[Operator, _Maker] = {**movement.KERNELS, **unit.KERNELS}
        return makers[step.operator](work)
