"""Parts of a model as programs of one device, and the values that pass between parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from crosschip.ir import Array, ElementType, Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import FLOATS
from crosschip.runtime.compile.segments import Compilation, build_segments, place_and_build
from crosschip.runtime.copies import Copies
from crosschip.runtime.costs.blocks import Block
from crosschip.runtime.costs.sized_model import SizedModel
from crosschip.runtime.execution import Plan
from crosschip.runtime.guard.calls import call
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.placement.assignment import Assignment
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.queries import Answers


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a model, compiled for one device.

    Attributes:
        plan: the execution of the programs.
        device: the device.
    """

    plan: Plan
    device: GuardedDevice

    def run_on(self, values: Sequence[Array]) -> Callable[[], object]:
        """Return a function that computes the outputs of values.

        An asynchronous device has the values in its memory, where the outputs stay, too.

        Raises:
            DeviceError: the device does not have enough memory.
        """
        if not self.plan.submits:
            return partial(self.plan.execute, values)
        buffers = []
        for value in values:
            buffer = self.device.allocate(ElementType.of(value.dtype), value.shape)
            call(self.device.name, "writing a buffer", buffer.write, value)
            buffers.append(buffer)
        return partial(self.plan.execute_values, buffers, {})

    def close(self) -> None:
        """Close the programs."""
        for program in self.plan.programs:
            program.close()


def part_model(model: Model, block: Block) -> Model:
    """Return a block as a model."""
    return Model(
        f"{model.name}.block",
        {f"input{index}": operand for index, operand in enumerate(block.inputs)},
        [model.operations[index] for index in block.operations],
        {f"output{index}": operand for index, operand in enumerate(block.outputs)},
    )


def compile_part(
    model: Model, block: Block, device: str, answers: Answers, compilation: Compilation
) -> Part:
    """Compile a block for a device that takes all of its operations, as a segment is compiled.

    Raises:
        SegmentCompileError: the device fails to compile it.
    """
    part = part_model(model, block)
    local = _restrict(answers, block.operations)
    assignment = Assignment({device: local}, [device] * len(block.operations))
    placement = Placement(part, assignment, {}, [device])
    alone = replace(compilation, store=None, devices={device: compilation.devices[device]})
    built = build_segments(placement, alone.make)
    plan = Plan(placement, [item.program for item in built], Copies())
    return Part(plan, compilation.devices[device])


def _restrict(answers: Answers, indices: Sequence[int]) -> Answers:
    """Return the answers about some operations only."""
    restricted = Answers([answers.supports[index] for index in indices])
    local = {index: position for position, index in enumerate(indices)}
    restricted.simpler = {local[i]: parts for i, parts in answers.simpler.items() if i in local}
    restricted.groups = [
        (why, [local[index] for index in group])
        for why, group in answers.groups
        if all(index in local for index in group)
    ]
    return restricted


_MOST_SIZES = 16
"""The maximum number of elements of a tensor of floats whose values may determine sizes."""


class Values:
    """Values for the inputs of blocks.

    Tensors of floats and static shape are random, unless they are small. If a block reads other
    values, such as indices, or tensors whose shape is not known, they are computed: the whole model
    runs once.

    Args:
        sized: the model, with the shapes of its inputs.
        compilation: the devices and options for that run.
    """

    def __init__(self, sized: SizedModel, compilation: Compilation) -> None:
        self.sized = sized
        self._compilation = compilation
        self._originals = sized.originals() if sized.is_open else {}
        self._values: dict[Operand, Array] = {}

    def original(self, block: Block) -> Block:
        """Return a block of the static model with operands of the model."""
        if not self._originals:
            return block
        inputs = tuple([self._originals[operand] for operand in block.inputs])
        outputs = tuple([self._originals[operand] for operand in block.outputs])
        return replace(block, inputs=inputs, outputs=outputs)

    def prepare(self, blocks: Sequence[Block]) -> None:
        """Compute the values that blocks read.

        Raises:
            Error: the model cannot be run.
            SegmentCompileError: a device fails to compile it.
        """
        operands = dict.fromkeys(operand for block in blocks for operand in block.inputs)
        missing = [operand for operand in operands if operand not in self._values]
        generator = np.random.default_rng(0)
        for operand in filter(_is_free, missing):
            shape = operand.type.static_shape
            assert shape is not None, "free operands have static shapes"
            values = generator.random(shape, np.float32)
            self._values[operand] = np.asarray(values).astype(operand.type.element_type.dtype)
        bound = [operand for operand in missing if not _is_free(operand)]
        if bound:
            self._compute(bound)

    def of(self, block: Block) -> list[Array]:
        """Return the values that a block reads, after `prepare`."""
        return [self._values[operand] for operand in block.inputs]

    def _compute(self, operands: Sequence[Operand]) -> None:
        """Run the model on random inputs, and keep the values of some operands."""
        model = self.sized.model
        inputs = random_inputs(model, self.sized.shapes)
        of_inputs = dict(zip(self.sized.static.inputs.values(), inputs.values(), strict=True))
        self._values |= {operand: v for operand, v in of_inputs.items() if operand in operands}
        computed = [operand for operand in operands if operand not in of_inputs]
        if not computed:
            return
        results = {
            f"value{index}": self._originals.get(operand, operand)
            for index, operand in enumerate(computed)
        }
        extended = Model(model.name, model.inputs, model.operations, results)
        placement, built = place_and_build(extended, replace(self._compilation, store=None))
        programs = [item.program for item in built]
        try:
            arrays = Plan(placement, programs, Copies()).execute(list(inputs.values()))
            self._values |= dict(zip(computed, map(_copy, arrays), strict=True))
        finally:
            for program in programs:
                program.close()


def _copy(value: Array) -> Array:
    """Return a copy of a tensor, which remains when its program is closed."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _is_free(operand: Operand) -> bool:
    """Return whether any value of the type does; few elements may be sizes or factors of them."""
    type_ = operand.type
    shape = type_.static_shape
    return type_.element_type in FLOATS and shape is not None and prod(shape) > _MOST_SIZES
