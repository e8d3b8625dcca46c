"""Changes of element type."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ops.conversion import Cast


@imports("cast")
def cast(op: Context) -> None:
    op.make(Cast, op.input(), op.element_type("out_dtype"))
