"""Elementwise functions of one operand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.devices.openvino import instruction_sets
from crosschip.ir import Builder, ElementType, Model, Operand, Operation
from crosschip.ops.standard.activation import HardSigmoid, HardSwish, PRelu, Relu, Softplus
from crosschip.ops.standard.arithmetic import Add, Div, Mul
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.unary import Abs, Exp, Neg
from crosschip.passes.rewrite_operations import constant_like, rebuild


def hard_sigmoid_in_float32(b: Builder, op: HardSigmoid) -> Sequence[Operand] | None:
    """Compute in float32, so that `alpha` and `beta` are not rounded to a narrower type."""
    element_type = op.input.type.element_type
    if element_type is ElementType.FLOAT32:
        return None
    wide = rebuild(b, op, input=b.add(Cast, op.input, ElementType.FLOAT32))
    return (b.add(Cast, wide, element_type),)


def zero_of_prelu(b: Builder, op: PRelu) -> Sequence[Operand] | None:
    """Return the input where it is 0, which OpenVINO multiplies by an infinite slope.

    Quirk `prelu-of-zero`.
    """
    slope = op.slope.value
    if instruction_sets.has_avx512() or (slope is not None and np.isfinite(slope).all()):
        return None
    is_zero = b.add(Equal, op.input, constant_like(b, op.input, 0))
    return (b.add(Where, is_zero, op.input, rebuild(b, op)),)


def hard_swish_as_product(b: Builder, op: HardSwish) -> Sequence[Operand] | None:
    """Multiply by HARD_SIGMOID, unless the coefficients are those of OpenVINO's kernel."""
    if np.float32(op.alpha) == np.float32(1 / 6) and op.beta == 0.5:
        return None
    return (op.decompose(b),)


_TERMS = 8
"""The terms of the series that float32 needs."""


def softplus_as_series(b: Builder, op: Softplus) -> Sequence[Operand]:
    """Compute `max(x, 0) + log(1 + exp(-abs(x)))`.

    With `power = exp(-abs(x))`, the logarithm is `2 * artanh(power / (2 + power))`, computed as a
    series, which is faster than OpenVINO's logarithm. Quirk `softplus-of-small-powers`.
    """
    power = b.add(Exp, b.add(Neg, b.add(Abs, op.input)))
    ratio = b.add(Div, power, b.add(Add, power, constant_like(b, power, 2)))
    square = b.add(Mul, ratio, ratio)
    total = constant_like(b, power, 2 / (2 * _TERMS - 1))
    for term in reversed(range(_TERMS - 1)):
        number = constant_like(b, power, 2 / (2 * term + 1))
        total = b.add(Add, b.add(Mul, total, square), number)
    return (b.add(Add, b.add(Relu, op.input), b.add(Mul, ratio, total)),)


def absolute_of_negative(b: Builder, op: Abs) -> Sequence[Operand]:
    """Negate the operand of ABS, so that it does not overwrite the concatenation that it reads.

    Applied to concatenations only, since OpenVINO drops ABS of negated constants. Quirks
    `absolute-of-joined`, `absolute-of-negated`.
    """
    return (rebuild(b, op, input=b.add(Neg, op.input)),)


def reads_concatenation(model: Model) -> frozenset[Operation]:
    """Return the ABS operations on concatenations of signed numbers."""
    return frozenset(
        operation
        for operation in model.operations
        if isinstance(operation, Abs)
        and not np.issubdtype(operation.input.type.element_type.dtype, np.unsignedinteger)
        and isinstance(model.producers.get(operation.input), Concat)
    )
