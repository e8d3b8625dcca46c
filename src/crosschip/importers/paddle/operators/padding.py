"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ModelError, Operand
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.padding import Pad, PadMode

_MODES = {
    "constant": PadMode.CONSTANT,
    "reflect": PadMode.REFLECT,
    "edge": PadMode.EDGE,
    "replicate": PadMode.EDGE,
    "circular": PadMode.WRAP,
}


@imports("pad2d")
def pad2d(op: Context) -> None:
    """Paddings are top, bottom, left and right."""
    first = 1 if op.text("data_format", "NCHW") == "NHWC" else 2
    _pad(op, op.real("pad_value", 0.0), 4, (first, first + 1))


@imports("pad3d")
def pad3d(op: Context) -> None:
    """Paddings are left, right, top, bottom, front and back."""
    first = 1 if op.text("data_format", "NCDHW") == "NDHWC" else 2
    _pad(op, op.real("value", 0.0), 5, (first + 2, first + 1, first))


def _pad(op: Context, value: float, rank: int, axes: Sequence[int]) -> None:
    """Pad axes; of each in turn, the paddings have two numbers."""
    x = op.input()
    paddings = op.integers_or_tensor("paddings", "Paddings")
    mode = op.one_of("mode", _MODES, "constant")
    fill = np.asarray(value).astype(x.type.element_type.dtype)
    op.make(Pad, x, _of_all_axes(op, paddings, rank, axes), mode, fill)


def _of_all_axes(
    op: Context, paddings: tuple[int, ...] | Operand, rank: int, axes: Sequence[int]
) -> tuple[int, ...] | Operand:
    """Two numbers an axis, in the order of the axes, 0 for those that are not padded."""
    if isinstance(paddings, Operand):
        # The number after the last stands for the axes that are not padded.
        places = [len(axes) * 2] * (rank * 2)
        for place, axis in enumerate(axes):
            places[2 * axis : 2 * axis + 2] = 2 * place, 2 * place + 1
        zero = op.constant(np.zeros(1, paddings.type.element_type.dtype), f"{paddings.name}.none")
        chosen = op.constant(np.array(places, np.int32), f"{paddings.name}.places")
        return op.add(Gather, op.add(Concat, parts=[paddings, zero], axis=0), chosen, 0)
    if len(paddings) != 2 * len(axes):
        raise ModelError(f"paddings: must be {2 * len(axes)} numbers, not {len(paddings)}")
    pads = [0] * (2 * rank)
    for place, axis in enumerate(axes):
        pads[2 * axis : 2 * axis + 2] = paddings[2 * place : 2 * place + 2]
    return tuple(pads)


@imports("pad")
def pad(op: Context) -> None:
    """Paddings are two numbers an axis."""
    x = op.input()
    fill = np.asarray(op.real("pad_value", 0.0)).astype(x.type.element_type.dtype)
    op.make(Pad, x, op.integers("paddings"), PadMode.CONSTANT, fill)
