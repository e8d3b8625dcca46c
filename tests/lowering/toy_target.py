"""A target with 20 operators on int8, up to four axes and static shapes."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.hal.capabilities import Capabilities, Sizing
from crosschip.ir import Builder, ElementType, Operand
from crosschip.lowering.legalization import Target
from crosschip.ops import Add, Sub
from crosschip.ops.standard.unary import Neg
from crosschip.passes.rewrite_operations import RewriteOperations


def sub_as_sum(b: Builder, op: Sub) -> Sequence[Operand] | None:
    """Add the negative: the toy's SUB kernel swaps its operands (version 1)."""
    if op.input1.type.element_type is not ElementType.FLOAT32:
        return None
    return (b.add(Add, op.input0, b.add(Neg, op.input1)),)


OPERATORS = {
    *("ADD", "AVERAGE_POOL_2D", "CLIP", "CONCAT", "CONV_2D", "DIV", "EXP", "FULLY_CONNECTED"),
    *("MAT_MUL", "MAX", "MAX_POOL_2D", "MIN", "MUL", "NEG", "REDUCE_MEAN", "RELU"),
    *("RESHAPE", "SLICE", "SUB", "TRANSPOSE"),
}
TOY = Target(
    name="toy",
    operators=OPERATORS,
    capabilities=Capabilities(
        types=frozenset({ElementType.INT8, ElementType.INT32}), max_rank=4, sizing=Sizing.FIXED
    ),
    passes=(RewriteOperations(sub_as_sum, (Sub,)),),
)
