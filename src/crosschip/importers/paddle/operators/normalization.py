"""Normalization by stored or computed statistics."""

from __future__ import annotations

from math import prod

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.images import Images
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.layout import Reshape, Squeeze
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
)
from crosschip.ops.standard.reduction import ReduceMean, ReduceSum
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Rsqrt, Sqrt, Square


@imports("batch_norm")
def batch_norm(op: Context) -> None:
    if op.flag("trainable_statistics", False) and not op.flag("use_global_stats", False):
        raise UnsupportedError("trainable_statistics: normalization by the batch's own statistics")
    images = Images(op, "data_layout")
    mean, variance, epsilon = op.input("Mean"), op.input("Variance"), op.real("epsilon", 1e-5)
    images.make(
        BatchNormalization,
        images.input("X"),
        _input_or_full(op, "Scale", 1.0, mean),
        _input_or_full(op, "Bias", 0.0, mean),
        mean,
        variance,
        epsilon,
        output="Y",
    )
    for output, statistic in (("MeanOut", mean), ("VarianceOut", variance), ("SavedMean", mean)):
        if op.is_read(output):
            op.define(statistic, output)
    if op.is_read("SavedVariance"):
        op.make(Rsqrt, op.add(Add, variance, epsilon), output="SavedVariance")


def _input_or_full(op: Context, slot: str, value: float, like: Operand) -> Operand:
    """Return the tensor in a slot, or a tensor filled with a value if the slot is empty."""
    operand = op.optional_input(slot)
    if operand is not None:
        return operand
    return op.add(Fill, op.shape(like), np.asarray(value, like.type.element_type.dtype))


@imports("layer_norm")
def layer_norm(op: Context) -> None:
    x, axis = op.input(), op.integer("begin_norm_axis", 1)
    if not 0 <= axis < op.rank(x):
        raise ModelError(f"begin_norm_axis: {axis} is not an axis of {x.type}")
    op.make(
        LayerNormalization,
        x,
        _unflatten(op, "Scale", x, axis),
        _unflatten(op, "Bias", x, axis),
        begin_norm_axis=axis,
        epsilon=op.real("epsilon", 1e-5),
        output="Y",
    )
    if op.is_read("Mean") or op.is_read("Variance"):
        axes = tuple(range(axis, op.rank(x)))
        mean, variance = _mean_and_variance(op, x, axes)
        op.make(Squeeze, mean, axes, output="Mean")
        op.make(Squeeze, variance, axes, output="Variance")


def _mean_and_variance(op: Context, x: Operand, axes: tuple[int, ...]) -> tuple[Operand, Operand]:
    """Return the mean and variance over axes, which are kept with size 1."""
    mean = op.add(ReduceMean, x, axes, keepdim=True)
    variance = op.add(ReduceMean, op.add(Square, op.add(Sub, x, mean)), axes, keepdim=True)
    return mean, variance


def _unflatten(op: Context, slot: str, x: Operand, axis: int) -> Operand | None:
    """Reshape a scale or bias, which Paddle stores flat, to the shape of the normalized axes."""
    operand = op.optional_input(slot)
    if operand is None or op.rank(x) == axis + 1:
        return operand
    sizes = op.shape(x)
    if isinstance(sizes, tuple):
        return op.add(Reshape, operand, sizes[axis:])
    return op.add(Reshape, operand, op.add(Slice, sizes, (0,), (axis,), (op.rank(x),)))


@imports("instance_norm")
def instance_norm(op: Context) -> None:
    scale, bias = op.optional_input("Scale"), op.optional_input("Bias")
    x, epsilon = op.input(), op.real("epsilon", 1e-5)
    op.make(InstanceNormalization, x, scale, bias, epsilon, output="Y")
    if op.is_read("SavedMean") or op.is_read("SavedVariance"):
        mean, variance = _mean_and_variance(op, x, tuple(range(2, op.rank(x))))
        deviation = op.add(Rsqrt, op.add(Add, variance, epsilon))
        op.make(Reshape, mean, (-1,), output="SavedMean")
        op.make(Reshape, deviation, (-1,), output="SavedVariance")


@imports("group_norm")
def group_norm(op: Context) -> None:
    images = Images(op, "data_layout")
    image, groups = images.input("X"), op.integer("groups")
    images.make(
        GroupNormalization,
        image,
        op.optional_input("Scale"),
        op.optional_input("Bias"),
        epsilon=op.real("epsilon", 1e-5),
        groups=groups,
        output="Y",
    )
    if op.is_read("Mean") or op.is_read("Variance"):
        sizes = [size for size in (image.type.shape or ())[1:] if isinstance(size, int)]
        if len(sizes) + 1 != op.rank(image):
            raise UnsupportedError(f"Mean, Variance: the sizes of {image.type} must be known")
        rows = op.add(Reshape, image, (-1, groups, prod(sizes) // groups))
        mean, variance = _mean_and_variance(op, rows, (2,))
        op.make(Reshape, mean, (-1, groups), output="Mean")
        op.make(Reshape, variance, (-1, groups), output="Variance")


@imports("lrn")
def lrn(op: Context) -> None:
    images = Images(op)
    images.make(
        LRN,
        images.input("X"),
        size=op.integer("n", 5),
        bias=op.real("k", 2.0),
        alpha=op.real("alpha", 1e-4),
        beta=op.real("beta", 0.75),
    )


@imports("norm")
def norm(op: Context) -> None:
    """`x / sqrt(sum(x ** 2) + epsilon)`; LP_NORMALIZATION adds epsilon to the root."""
    x, axis = op.input(), op.integer("axis", -1)
    squares = op.add(ReduceSum, op.add(Square, x), (axis,), keepdim=True)
    op.make(Div, x, op.add(Sqrt, op.add(Add, squares, op.real("epsilon", 1e-10))))


@imports("data_norm")
def data_norm(op: Context) -> None:
    """`(x - batch_sum / batch_size) * sqrt(batch_size / batch_square_sum)` for each column."""
    if op.flag("enable_scale_and_shift", False) or op.integer("slot_dim", -1) > 0:
        raise UnsupportedError("enable_scale_and_shift, slot_dim: cannot be expressed")
    x, count = op.input("X"), op.input("BatchSize")
    mean = op.add(Div, op.input("BatchSum"), count)
    scale = op.add(Sqrt, op.add(Div, count, op.input("BatchSquareSum")))
    op.make(Mul, op.add(Sub, x, mean), scale, output="Y")
