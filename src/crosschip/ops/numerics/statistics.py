"""Steps that normalizations share: the rules for scale and bias, mean, deviation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.shapes import same
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Sqrt


def rank(operand: Operand) -> int:
    """The number of axes of an operand; `UnknownRank` where that is not known."""
    return len(shape_of(operand))


def check_channels(slot: str, operand: Operand | None, channels: Dim) -> None:
    """`ValueError` unless an operand, if there is one, has one number a channel."""
    if operand is None or operand.type.shape is None:
        return
    if len(operand.type.shape) != 1:
        raise ValueError(f"{slot}: must have one number a channel")
    same(operand.type.shape[0], channels, f"{slot}: its size, and the channels")


def check_broadcast(slot: str, operand: Operand | None, shape: Shape) -> None:
    """`ValueError` unless an operand, if there is one, broadcasts to the shape."""
    if operand is None or operand.type.shape is None:
        return
    own = operand.type.shape
    if len(own) > len(shape):
        raise ValueError(f"{slot}: has {len(own)} axes, more than the input's {len(shape)}")
    for size, wanted in zip(reversed(own), reversed(shape), strict=False):
        if size != 1:
            same(size, wanted, f"{slot}: its size, and that of the input")


def mean(array: Array, axes: Sequence[int]) -> Array:
    """The mean over some axes, which become of size 1; NaN of no elements."""
    # Not NumPy's mean, which warns about no elements.
    count = np.prod([array.shape[axis] for axis in axes])
    return np.asarray(array.sum(tuple(axes), keepdims=True) / count.astype(array.dtype))


def normalized(array: Array, axes: Sequence[int], epsilon: float) -> Array:
    """An array with mean 0 and variance 1 over some axes."""
    centred = array - mean(array, axes)
    return np.asarray(centred / np.sqrt(mean(centred * centred, axes) + epsilon))


def scaled(
    array: Array, scale: Array | None, bias: Array | None, along: Sequence[int] | None = None
) -> Array:
    """An array times scale plus bias, each in the shape `along` if that is given."""
    if scale is not None:
        array = array * (scale if along is None else scale.reshape(along))
    if bias is not None:
        array = array + (bias if along is None else bias.reshape(along))
    return array


def deviation(b: Builder, variance: Operand, epsilon: float) -> Operand:
    """`sqrt(variance + epsilon)`, as operations."""
    return b.add(Sqrt, b.add(Add, variance, epsilon))


def normal(b: Builder, operand: Operand, axes: Sequence[int], epsilon: float) -> Operand:
    """`normalized`, as operations."""
    centred = b.add(Sub, operand, b.add(ReduceMean, operand, tuple(axes)))
    variance = b.add(ReduceMean, b.add(Mul, centred, centred), tuple(axes))
    return b.add(Div, centred, deviation(b, variance, epsilon))


def affine(
    b: Builder, operand: Operand, scale: Operand | None, bias: Operand | None, *, channels: bool
) -> Operand:
    """`scaled`, as operations; what has another element type is converted to the operand's.

    Where sizes are open, they refuse what the definition does.

    Args:
        b: takes the operations.
        operand: what is scaled and shifted.
        scale: what it is multiplied by, if anything.
        bias: what is added then, if anything.
        channels: whether these have one number a channel, instead of broadcasting to the operand.
    """
    dtype = operand.type.element_type
    whole = operand
    for combine, factor in ((Mul, scale), (Add, bias)):
        if factor is not None:
            if factor.type.element_type is not dtype:
                factor = b.add(Cast, factor, dtype)
            if channels:
                along = (-1, *(1,) * (rank(operand) - 2))
                factor = b.add(Reshape, of_channels(b, factor, operand), along)
            whole = b.add(combine, whole, factor)
    if channels or all(_fits(factor, operand) for factor in (scale, bias)):
        return whole
    # A factor that made it larger leaves too many elements for the shape.
    return b.add(Reshape, whole, b.add(ShapeOf, operand), allow_zero=True)


def of_channels(b: Builder, factor: Operand, operand: Operand) -> Operand:
    """One number a channel; refused when it runs unless there are as many as channels."""
    channels = shape_of(operand)[1]
    if factor.type.shape == (channels,):
        return factor
    count = (channels,) if isinstance(channels, int) else channel_count(b, operand)
    return b.add(Reshape, factor, count, allow_zero=True)


def channel_count(b: Builder, operand: Operand) -> Operand:
    """The size of axis 1, as a list of one integer."""
    return b.add(Slice, b.add(ShapeOf, operand), (0,), (1,), (2,))


def _fits(factor: Operand | None, operand: Operand) -> bool:
    """Tell whether a factor is known to broadcast without making the operand larger."""
    if factor is None:
        return True
    own, wanted = factor.type.shape, shape_of(operand)
    return own is not None and all(
        size in (1, other) for size, other in zip(reversed(own), reversed(wanted), strict=False)
    )
