"""Rewrites of matrix products, activations, `NON_ZERO` and scatter operations."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Builder, ElementType, Operand
from crosschip.ir.types import BOOLEANS, INDICES
from crosschip.ops.standard.activation import HardSwish, PRelu, Sigmoid, Swish
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Scatter, ScatterElements, ScatterND
from crosschip.ops.standard.layout import Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.searching import NonZero
from crosschip.passes.rewrite_operations import rebuild

_NON_ZERO_TYPES = {ElementType.FLOAT32, ElementType.UINT8, *INDICES, *BOOLEANS}
"""The types that ONNX Runtime's `NonZero` supports."""


def hard_swish_as_product(b: Builder, op: HardSwish) -> Sequence[Operand]:
    """Multiply by HARD_SIGMOID: ONNX's HardSwish has a fixed slope."""
    return (op.decompose(b),)


def swish_as_product(b: Builder, op: Swish) -> Sequence[Operand]:
    """Multiply by SIGMOID: ONNX Runtime fuses this form."""
    return (b.add(Mul, op.input, b.add(Sigmoid, op.input)),)


def slope_along_channels(b: Builder, op: PRelu) -> Sequence[Operand] | None:
    """Reshape a slope of rank 1 to the channel axis; ONNX broadcasts it along the last one."""
    rank = len(op.input.type.shape or ())
    if len(op.slope.type.shape or ()) != 1 or rank <= 2:
        return None
    return (rebuild(b, op, slope=b.add(Reshape, op.slope, (-1, *[1] * (rank - 2)))),)


def transpose_operands(b: Builder, op: MatMul) -> Sequence[Operand] | None:
    """Transpose operands before the product: ONNX's `MatMul` has no flags for it."""
    if not (op.transpose_x or op.transpose_y):
        return None
    x = _transpose(b, op.x) if op.transpose_x else op.x
    y = _transpose(b, op.y) if op.transpose_y else op.y
    return (b.add(MatMul, x, y),)


def _transpose(b: Builder, operand: Operand) -> Operand:
    rank = len(operand.type.shape or ())
    if rank < 2:
        return operand
    return b.add(Transpose, operand, (*range(rank - 2), rank - 1, rank - 2))


def vector_as_matrix(b: Builder, op: MatMul) -> Sequence[Operand] | None:
    """Multiply by a one-column matrix (quirk `no-rows-times-vector`)."""
    if len(op.y.type.shape or ()) != 1 or op.x.type.static_shape is not None:
        return None
    return (b.add(Squeeze, rebuild(b, op, y=b.add(Unsqueeze, op.y, (-1,))), (-1,)),)


def input_as_matrix(b: Builder, op: FullyConnected) -> Sequence[Operand] | None:
    """Reshape the input to a matrix for ONNX's `Gemm`."""
    shape = op.input.type.shape
    if shape is not None and len(shape) <= 2:
        return None
    _, size = op.weight.type.static_shape or ()
    return (rebuild(b, op, input=b.add(Reshape, op.input, (-1, size))),)


def non_zero_of_booleans(b: Builder, op: NonZero) -> Sequence[Operand] | None:
    """Convert the input to bool if ONNX Runtime's `NonZero` does not support its type."""
    if op.input.type.element_type in _NON_ZERO_TYPES:
        return None
    return (rebuild(b, op, input=b.add(Cast, op.input, ElementType.BOOL)),)


def scatter_in_float32(b: Builder, op: ScatterND | ScatterElements) -> Sequence[Operand] | None:
    """Convert float16 to float32: ONNX Runtime's scatter reductions do not support it."""
    if op.input.type.element_type is not ElementType.FLOAT16 or op.reduction is Scatter.NONE:
        return None
    input, updates = (b.add(Cast, o, ElementType.FLOAT32) for o in (op.input, op.updates))
    return (b.add(Cast, rebuild(b, op, input=input, updates=updates), ElementType.FLOAT16),)
