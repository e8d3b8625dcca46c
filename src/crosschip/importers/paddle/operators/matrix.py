"""Matrix products."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ops.matrix import MatMul


@imports("matmul_v2", "bmm")
def matmul_v2(op: Context) -> None:
    op.make(
        MatMul,
        op.input("X"),
        op.input("Y"),
        transpose_x=op.flag("trans_x", False),
        transpose_y=op.flag("trans_y", False),
    )
