"""The rewrites of operations that ONNX Runtime computes faster in another form."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosschip.ir import Builder, Operand
from crosschip.ops.definition.spatial import over_rows
from crosschip.ops.standard.convolution import Conv1D, Conv2D
from crosschip.passes.rewrite_operations import RewriteOperations

_FEW = 4096
"""The most weights with which a convolution is not worth blocks of channels."""


def in_blocks(b: Builder, op: Conv1D) -> Sequence[Operand] | None:
    """Compute a large convolution of signals as one of images of height 1.

    In the graph of a whole model, ONNX Runtime keeps the channels of images in blocks, which is
    faster than what it does with signals, if there is enough to compute: what brings signals into
    blocks and back takes as long as a few thousand weights. In the graphs of nodes it does not.
    """
    shape = op.filter.type.static_shape
    if shape is not None and op.group == 1 and math.prod(shape) <= _FEW:
        return None
    return over_rows(b, op, Conv2D)


PASS = RewriteOperations(in_blocks, (Conv1D,))
"""It holds for the operations of a model, not for those in bodies."""
