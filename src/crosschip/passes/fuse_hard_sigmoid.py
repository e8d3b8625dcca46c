"""A line between 0 and 1 as one operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from crosschip.ir import Model, ModelError, Operand, Operation
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.slots import ComputedParameter, Fuse
from crosschip.ops.standard.activation import HardSigmoid
from crosschip.ops.standard.arithmetic import Add, Clip, Mul
from crosschip.passes.base import Pass
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewriter import Rewriter


class _Line(NamedTuple):
    """`slope * input + offset`, between 0 and 1."""

    input: Operand
    slope: float
    offset: float


@dataclass(frozen=True)
class FuseHardSigmoid(Pass):
    """Makes a `HARD_SIGMOID` of a `MUL` by a number, an `ADD` of a number and a `CLIP` to [0, 1].

    NNRt has it with a slope of 1/6 only, so that others come written out. What is between the
    three must have no other reader. Engines may round the result in another way than the three.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        if not any(isinstance(operation, Clip) for operation in model.operations):
            return model
        rewriter = Rewriter(model)
        for operation in map(rewriter.resolved, model.operations):
            line = _line(operation, rewriter)
            if line is None:
                rewriter.keep(operation)
            else:
                inputs = HardSigmoid.bind(operation.name, line, {})
                rewriter.emit(HardSigmoid(operation.name, inputs, operation.outputs))
        made = rewriter.finish()
        return model if made is model else RemoveUnused().rewrite(made)

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        if len(after.operations) > len(before.operations):
            raise ModelError(f"{after.name!r} has got more operations")


def _line(operation: Operation, rewriter: Rewriter) -> _Line | None:
    """The line that a `CLIP` cuts off at 0 and 1; `None` if it does something else."""
    if not isinstance(operation, Clip) or not _is_plain(operation.outputs[0]):
        return None
    try:
        if (operation.min, operation.max) != (0, 1):
            return None
    except ComputedParameter:
        return None
    raised = rewriter.producer(operation.input)
    if not isinstance(raised, Add) or not rewriter.used_once(operation.input):
        return None
    sum_, offset = _with_number(raised)
    scaled = None if sum_ is None else rewriter.producer(sum_)
    if sum_ is None or not isinstance(scaled, Mul) or not rewriter.used_once(sum_):
        return None
    source, slope = _with_number(scaled)
    if source is None or source.type != operation.outputs[0].type:
        return None
    return _Line(source, slope, offset)


def _with_number(operation: Add | Mul) -> tuple[Operand | None, float]:
    """The operand that is scaled or raised, and the number by which; `None` if there is none."""
    if operation.fuse_code is Fuse.NONE and _is_plain(operation.outputs[0]):
        for operand, other in (operation.inputs[:2], operation.inputs[1::-1]):
            if operand is None or other is None or other.value is None or operand.is_constant:
                continue
            if other.value.size == 1 and other.type.quantization is None:
                return operand, float(other.value.item())
    return None, 0.0


def _is_plain(operand: Operand) -> bool:
    return operand.type.quantization is None and operand.type.element_type in FLOATS
