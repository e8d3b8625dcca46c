"""Rewrites to forms that ONNX Runtime computes faster."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosschip.ir import Builder, Operand
from crosschip.ops.definition.spatial import build_planar
from crosschip.ops.standard.convolution import Conv1D, Conv2D
from crosschip.passes.rewrite_operations import RewriteOperations

_FEW = 4096
"""The maximum number of weights for which converting to channel blocks is slower."""


def in_blocks(b: Builder, op: Conv1D) -> Sequence[Operand] | None:
    """Compute a large convolution of signals as one of images of height 1.

    ONNX Runtime keeps images in channel blocks, which is faster for more than a few thousand
    weights. It does so in the main graph, not in subgraphs.
    """
    shape = op.filter.type.static_shape
    if shape is not None and op.group == 1 and math.prod(shape) <= _FEW:
        return None
    return build_planar(b, op, Conv2D)


PASS = RewriteOperations(in_blocks, (Conv1D,))
"""Applies to the operations of a model, not of its bodies."""
