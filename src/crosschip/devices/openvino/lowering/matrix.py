"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Builder, Operand
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.passes.rewrite_operations import rebuild


def input_as_matrix(b: Builder, op: FullyConnected) -> Sequence[Operand] | None:
    """Reshape an input of higher rank to a matrix: OpenVINO would keep its leading axes."""
    if len(op.input.type.shape or ()) <= 2:
        return None
    _, size = op.weight.type.static_shape or ()
    return (rebuild(b, op, input=b.add(Reshape, op.input, (-1, size), allow_zero=True)),)
