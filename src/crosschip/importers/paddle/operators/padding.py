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
    """Pad with (top, bottom, left, right)."""
    first = 1 if op.text("data_format", "NCHW") == "NHWC" else 2
    _pad(op, op.real("pad_value", 0.0), 4, (first, first + 1))


@imports("pad3d")
def pad3d(op: Context) -> None:
    """Pad with (left, right, top, bottom, front, back)."""
    first = 1 if op.text("data_format", "NCDHW") == "NDHWC" else 2
    _pad(op, op.real("value", 0.0), 5, (first + 2, first + 1, first))


def _pad(op: Context, value: float, rank: int, axes: Sequence[int]) -> None:
    """Pad `axes`; `paddings` has two numbers for each, in the order of `axes`."""
    x = op.input()
    paddings = op.integers_or_tensor("paddings", "Paddings")
    mode = op.option("mode", _MODES, "constant")
    fill = np.asarray(value).astype(x.type.element_type.dtype)
    op.make(Pad, x, _all_pads(op, paddings, rank, axes), mode, fill)


def _all_pads(
    op: Context, paddings: tuple[int, ...] | Operand, rank: int, axes: Sequence[int]
) -> tuple[int, ...] | Operand:
    """Return two pads for each axis of the tensor, 0 for axes that are not padded."""
    if isinstance(paddings, Operand):
        # The zero appended to the paddings is for the axes that are not padded.
        indices = [len(axes) * 2] * (rank * 2)
        for index, axis in enumerate(axes):
            indices[2 * axis : 2 * axis + 2] = 2 * index, 2 * index + 1
        zero = op.constant(np.zeros(1, paddings.type.element_type.dtype), f"{paddings.name}.none")
        order = op.constant(np.array(indices, np.int32), f"{paddings.name}.places")
        return op.add(Gather, op.add(Concat, parts=[paddings, zero], axis=0), order, 0)
    if len(paddings) != 2 * len(axes):
        raise ModelError(f"paddings: must be {2 * len(axes)} numbers, not {len(paddings)}")
    pads = [0] * (2 * rank)
    for index, axis in enumerate(axes):
        pads[2 * axis : 2 * axis + 2] = paddings[2 * index : 2 * index + 2]
    return tuple(pads)


@imports("pad")
def pad(op: Context) -> None:
    """Pad with two numbers for each axis."""
    x = op.input()
    fill = np.asarray(op.real("pad_value", 0.0)).astype(x.type.element_type.dtype)
    op.make(Pad, x, op.integers("paddings"), PadMode.CONSTANT, fill)
