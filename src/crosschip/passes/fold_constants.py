"""Constant folding."""

from __future__ import annotations

from crosschip.ir import Model, ModelError, Operand
from crosschip.ir.budget import spend
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.folding import fold_operation
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.quantization import Dequantize, DequantizeBlocks
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class FoldConstants(Pass):
    """Replaces values that are known at compile time by constants.

    1. An operation that reads only constants becomes the constants that its reference kernel
       computes. It stays if they have over 65,536 elements and more than it reads, so that a model
       does not grow.
    2. `DEQUANTIZE` and `DEQUANTIZE_BLOCKS` of a constant stay unless their output is a parameter:
       devices may compute on the integers, which the reals do not contain any more.
    3. `SHAPE` of an operand with a static shape becomes a constant if its element type can hold
       the sizes. So do operations on sizes, if these are static.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        parameters = _parameters(model)
        for original in model.operations:
            spend()
            operation = rewriter.resolved(original)
            if (
                isinstance(original, Dequantize | DequantizeBlocks)
                and original.outputs[0] not in parameters
            ):
                rewriter.keep(operation)
                continue
            values = fold_operation(operation)
            if values is None:
                rewriter.keep(operation)
            else:
                for operand, value in zip(operation.outputs, values, strict=True):
                    rewriter.replace_by_value(operand, value)
        return rewriter.finish()

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for operation in after.operations:
            if isinstance(operation, ShapeOf) and fold_operation(operation) is not None:
                raise ModelError(f"{operation.type} {operation.name!r} is still computed")


def _parameters(model: Model) -> set[Operand]:
    """Return the operands that operators read as parameters."""
    return {
        operand
        for operation in model.operations
        if isinstance(operation, Operator)
        for slot, operand in operation.filled()
        if slot.parameter
    }
