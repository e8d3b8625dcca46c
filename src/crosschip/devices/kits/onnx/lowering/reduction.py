"""Rewrites of reductions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, ElementType, Operand
from crosschip.ir.types import FLOATS, INDICES
from crosschip.ops.standard import reduction
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Squeeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.unary import Abs, IsNaN
from crosschip.passes.rewrite_operations import constant_like, rebuild

FACTORS = 32
"""The maximum number of integers that are multiplied one by one, so that products wrap."""


def extreme_of_booleans(
    b: Builder, op: reduction.ReduceMax | reduction.ReduceMin
) -> Sequence[Operand] | None:
    """Reduce booleans as bytes: ONNX Runtime fails on empty boolean reductions.

    Quirk `greatest-of-no-booleans`.
    """
    if op.input.type.element_type is not ElementType.BOOL:
        return None
    result = rebuild(b, op, input=b.add(Cast, op.input, ElementType.UINT8))
    return (b.add(Cast, result, ElementType.BOOL),)


def nan_of_reduction(
    b: Builder, op: reduction.ReduceMax | reduction.ReduceMin | reduction.ReduceLogSumExp
) -> Sequence[Operand] | None:
    """Return NaN, which ONNX Runtime may ignore, where the sum of absolute values is NaN.

    Quirk `greatest-with-nan`.
    """
    element_type = op.input.type.element_type
    if element_type not in FLOATS:
        return None
    narrow = element_type is ElementType.FLOAT16
    value = b.add(Cast, op.input, ElementType.FLOAT32) if narrow else op.input
    sums = b.add(reduction.ReduceSum, b.add(Abs, value), axes=op.axes, keepdim=op.keepdim)
    nan = constant_like(b, op.input, np.nan)
    return (b.add(Where, b.add(IsNaN, sums), nan, rebuild(b, op)),)


def is_product_of_few(op: reduction.ReduceProd) -> bool:
    """Return whether a product is known to have from 1 to `FACTORS` factors."""
    shape = op.input.type.shape
    sizes = [shape[axis] for axis in _axes(op)] if shape is not None else []
    static_sizes = [size for size in sizes if isinstance(size, int)]
    return 0 < len(static_sizes) == len(sizes) and 0 < math.prod(static_sizes) <= FACTORS


def product_of_few(b: Builder, op: reduction.ReduceProd) -> Sequence[Operand] | None:
    """Multiply integers one by one: ONNX Runtime multiplies them as float64.

    Quirk `product-of-int64`.
    """
    if op.input.type.element_type not in INDICES or not is_product_of_few(op):
        return None
    value, axes = op.input, _axes(op)
    for axis in axes:
        size = (op.input.type.shape or ())[axis]
        assert isinstance(size, int), "is_product_of_few requires it"
        factors = [b.add(Gather, value, np.array([i]), axis=axis) for i in range(size)]
        value = functools.reduce(functools.partial(b.add, Mul), factors)
    return (value if op.keepdim else b.add(Squeeze, value, axes),)


def sum_that_wraps(b: Builder, op: reduction.ReduceSum) -> Sequence[Operand] | None:
    """Take the last element of a cumulative sum of integers, which wraps around.

    ONNX Runtime's `ReduceSum` adds them as float64, and saturates. Where there may be no elements,
    a 0 is prepended.

    Quirk `sum-of-int64`.
    """
    if op.input.type.element_type not in INDICES:
        return None
    total, rank = op.input, len(op.input.type.shape or ())
    for axis in sorted(_axes(op), reverse=True):
        if not isinstance((op.input.type.shape or ())[axis], int):
            pads = [int(side == 2 * axis) for side in range(2 * len(total.type.shape or ()))]
            total = b.add(Pad, total, pads)
        running = b.add(reduction.CumSum, total, axis)
        total = b.add(Gather, running, np.array([-1] if op.keepdim else -1), axis=axis)
    assert rank or total is op.input, "a scalar has no axes"
    return (total,)


def mean_of_nothing(b: Builder, op: reduction.ReduceMean) -> Sequence[Operand] | None:
    """Return NaN for the mean of no elements, where ONNX Runtime returns 0.

    Quirk `mean-of-no-elements`.
    """
    shape = op.input.type.shape
    if shape is not None and all(isinstance(shape[a], int) for a in op.axes or range(len(shape))):
        return None
    sizes = b.add(ShapeOf, op.input, ElementType.INT64)
    if op.axes:
        sizes = b.add(Gather, sizes, np.array(op.axes))
    is_empty = b.add(Equal, b.add(reduction.ReduceProd, sizes, keepdim=False), np.array(0))
    return (b.add(Where, is_empty, constant_like(b, op.input, np.nan), rebuild(b, op)),)


def _axes(op: reduction.Reduction) -> tuple[int, ...]:
    """Return the reduced axes as non-negative indices."""
    rank = len(op.input.type.shape or ())
    return tuple(axis % rank for axis in op.axes) if op.axes else tuple(range(rank))
