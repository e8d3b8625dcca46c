"""Rewrites to forms that ONNX Runtime computes faster."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosschip.ir import Builder, ElementType, Model, Operand
from crosschip.ops.definition.spatial import build_planar
from crosschip.ops.standard.convolution import Conv1D, Conv2D
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Transpose
from crosschip.passes import CancelTransposes
from crosschip.passes.rewrite_operations import RewriteOperations

_CHANNELS = (3, 4)
"""How many channels a picture has."""

_FEW = 4096
"""The most weights for which converting to channel blocks is slower."""


def in_blocks(b: Builder, op: Conv1D) -> Sequence[Operand] | None:
    """Compute a large convolution of signals as one of images of height 1.

    ONNX Runtime keeps images in channel blocks, which is faster for more than a few thousand
    weights. It does so in the main graph, not in subgraphs.
    """
    shape = op.filter.type.static_shape
    if shape is not None and op.group == 1 and math.prod(shape) <= _FEW:
        return None
    return build_planar(b, op, Conv2D)


def in_rows(b: Builder, op: Gather) -> Sequence[Operand] | None:
    """Gather pixels along the width of a picture as rows of the transposed picture.

    ONNX Runtime copies the 3 or 4 bytes of each pixel by a call of its own, which takes several
    times as long as to transpose the bytes.
    """
    shape, index_shape = op.input.type.shape, op.indices.type.shape
    if (
        op.input.type.element_type is not ElementType.UINT8
        or shape is None
        or len(shape) != 4
        or shape[3] not in _CHANNELS
        or op.axis not in (2, -2)
        or index_shape is None
        or len(index_shape) != 1
    ):
        return None
    rows = b.add(Gather, b.add(Transpose, op.input, (0, 2, 3, 1)), op.indices, 1)
    return (b.add(Transpose, rows, (0, 3, 1, 2)),)


_IN_BLOCKS = RewriteOperations(in_blocks, (Conv1D,))
_IN_ROWS = RewriteOperations(in_rows, (Gather,))


def lower(model: Model) -> Model:
    """Return a model with its operations rewritten; those of its bodies stay."""
    model = _IN_BLOCKS.rewrite(model)
    transposed = _IN_ROWS.rewrite(model)
    return model if transposed is model else CancelTransposes().rewrite(transposed)
