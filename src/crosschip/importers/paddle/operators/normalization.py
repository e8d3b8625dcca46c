"""Normalization by given or computed statistics."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.operators.windows import expect_channels_first
from crosschip.importers.paddle.table import imports
from crosschip.ir import ModelError, Operand, Shape, UnsupportedError
from crosschip.ops.creation import Fill
from crosschip.ops.layout import Reshape
from crosschip.ops.normalization import BatchNormalization, LayerNormalization


@imports("batch_norm")
def batch_norm(op: Context) -> None:
    expect_channels_first(op, "data_layout")
    if op.flag("trainable_statistics", False) and not op.flag("use_global_stats", False):
        raise UnsupportedError("trainable_statistics: normalization by the batch's own statistics")
    op.make(
        BatchNormalization,
        op.input("X"),
        op.input("Scale"),
        op.input("Bias"),
        op.input("Mean"),
        op.input("Variance"),
        op.real("epsilon", 1e-5),
        output="Y",
    )


@imports("layer_norm")
def layer_norm(op: Context) -> None:
    x = op.input()
    if x.type.shape is None:
        raise UnsupportedError("X: its axes must be known")
    axis = op.integer("begin_norm_axis", 1)
    if not 0 <= axis < len(x.type.shape):
        raise ModelError(f"begin_norm_axis: {axis} is not an axis of {x.type}")
    op.make(
        LayerNormalization,
        x,
        _affine(op, "Scale", 1.0, x, x.type.shape[axis:]),
        _affine(op, "Bias", 0.0, x, x.type.shape[axis:]),
        begin_norm_axis=axis,
        epsilon=op.real("epsilon", 1e-5),
        output="Y",
    )


def _affine(op: Context, slot: str, default: float, x: Operand, shape: Shape) -> Operand:
    """The scale or bias in the shape of the normalized axes; Paddle stores it flat."""
    operand = op.optional_input(slot)
    if operand is not None and len(shape) == 1:
        return operand
    sizes = tuple(size for size in shape if isinstance(size, int))
    if len(sizes) < len(shape):
        raise UnsupportedError(
            f"{slot}: the sizes of the normalized axes of {x.type} must be known"
        )
    if operand is not None:
        return op.add(Reshape, operand, sizes)
    return op.add(Fill, sizes, np.asarray(default, x.type.element_type.dtype))
