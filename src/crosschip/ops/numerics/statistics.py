"""Steps that normalization operators share: checks of scale and bias, mean, deviation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.shapes import unify
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Sqrt


def rank(operand: Operand) -> int:
    """Return the rank of an operand; raise UnknownRank if it is unknown."""
    return len(shape_of(operand))


def check_channels(slot: str, operand: Operand | None, channels: Dim) -> None:
    """Raise ValueError unless an optional operand has one element per channel."""
    if operand is None or operand.type.shape is None:
        return
    if len(operand.type.shape) != 1:
        raise ValueError(f"{slot}: must have one number a channel")
    unify(operand.type.shape[0], channels, f"{slot}: its size, and the channels")


def check_broadcast(slot: str, operand: Operand | None, shape: Shape) -> None:
    """Raise ValueError unless an optional operand broadcasts to the shape."""
    if operand is None or operand.type.shape is None:
        return
    actual = operand.type.shape
    if len(actual) > len(shape):
        raise ValueError(f"{slot}: has {len(actual)} axes, more than the input's {len(shape)}")
    for size, expected in zip(reversed(actual), reversed(shape), strict=False):
        if size != 1:
            unify(size, expected, f"{slot}: its size, and that of the input")


def mean(array: Array, axes: Sequence[int]) -> Array:
    """Return the mean over some axes, which are kept with size 1; NaN for no elements."""
    # np.mean would warn about an empty array.
    count = np.prod([array.shape[axis] for axis in axes])
    return np.asarray(array.sum(tuple(axes), keepdims=True) / count.astype(array.dtype))


def normalize(array: Array, axes: Sequence[int], epsilon: float) -> Array:
    """Return an array normalized to mean 0 and variance 1 over some axes."""
    centred = array - mean(array, axes)
    return np.asarray(centred / np.sqrt(mean(centred * centred, axes) + epsilon))


def scale_and_shift(
    array: Array,
    scale: Array | None,
    bias: Array | None,
    broadcast_shape: Sequence[int] | None = None,
) -> Array:
    """Return `array * scale + bias`, with scale and bias in `broadcast_shape` if passed."""
    if scale is not None:
        array = array * (scale if broadcast_shape is None else scale.reshape(broadcast_shape))
    if bias is not None:
        array = array + (bias if broadcast_shape is None else bias.reshape(broadcast_shape))
    return array


def build_deviation(b: Builder, variance: Operand, epsilon: float) -> Operand:
    """Build `sqrt(variance + epsilon)` from operators."""
    return b.add(Sqrt, b.add(Add, variance, epsilon))


def build_normalize(b: Builder, operand: Operand, axes: Sequence[int], epsilon: float) -> Operand:
    """Build `normalize` from operators."""
    centred = b.add(Sub, operand, b.add(ReduceMean, operand, tuple(axes)))
    variance = b.add(ReduceMean, b.add(Mul, centred, centred), tuple(axes))
    return b.add(Div, centred, build_deviation(b, variance, epsilon))


def build_scale_and_shift(
    b: Builder, operand: Operand, scale: Operand | None, bias: Operand | None, *, channels: bool
) -> Operand:
    """Build `scale_and_shift` from operators; factors are converted to the operand's element type.

    With dynamic dimensions, the operations fail at run time where the operator is undefined.

    Args:
        b: the builder that operations are added to.
        operand: the operand to scale and shift.
        scale: the optional factor.
        bias: the optional addend.
        channels: whether scale and bias have one element per channel instead of broadcasting.
    """
    dtype = operand.type.element_type
    result = operand
    for combine, factor in ((Mul, scale), (Add, bias)):
        if factor is not None:
            if factor.type.element_type is not dtype:
                factor = b.add(Cast, factor, dtype)
            if channels:
                broadcast_shape = (-1, *(1,) * (rank(operand) - 2))
                factor = b.add(Reshape, check_channel_count(b, factor, operand), broadcast_shape)
            result = b.add(combine, result, factor)
    if channels or all(_fits(factor, operand) for factor in (scale, bias)):
        return result
    # A factor that broadcast the operand to a larger shape gives too many elements for RESHAPE.
    return b.add(Reshape, result, b.add(ShapeOf, operand), allow_zero=True)


def check_channel_count(b: Builder, factor: Operand, operand: Operand) -> Operand:
    """Build a check that an operand has one element per channel, which fails at run time if not."""
    channels = shape_of(operand)[1]
    if factor.type.shape == (channels,):
        return factor
    count = (channels,) if isinstance(channels, int) else channel_count(b, operand)
    return b.add(Reshape, factor, count, allow_zero=True)


def channel_count(b: Builder, operand: Operand) -> Operand:
    """Build the size of axis 1, as a list of one integer."""
    return b.add(Slice, b.add(ShapeOf, operand), (0,), (1,), (2,))


def _fits(factor: Operand | None, operand: Operand) -> bool:
    """Return whether a factor is known to broadcast without enlarging the operand."""
    if factor is None:
        return True
    actual, expected = factor.type.shape, shape_of(operand)
    return actual is not None and all(
        size in (1, other)
        for size, other in zip(reversed(actual), reversed(expected), strict=False)
    )
