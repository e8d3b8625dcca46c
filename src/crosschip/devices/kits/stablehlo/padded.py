"""Outputs whose sizes depend on data: functions pad them, the host removes the padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Model, Shape


def open_axes(model: Model) -> Sequence[int | None]:
    """Return the axis of each output whose size depends on data; empty if no output has one."""
    axes = [_open_axis(operand.type.shape or ()) for operand in model.outputs.values()]
    return [] if all(axis is None for axis in axes) else axes


def cut(output: Array, axis: int, count: int) -> Array:
    """Copy the first entries along an axis."""
    part = (slice(None),) * axis + (slice(count),)
    return np.asarray(output)[part].copy()


def _open_axis(shape: Shape) -> int | None:
    return next((axis for axis, size in enumerate(shape) if not isinstance(size, int)), None)
