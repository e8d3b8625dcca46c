"""Operators that pick from a tensor by indices."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.indexing import Gather, GatherElements, GatherND, Scatter, ScatterND
from crosschip.ops.standard.layout import Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.searching import NonZero


@imports("gather")
def gather(op: Context) -> None:
    """Indices [N, 1] are a list as well."""
    indices = op.input("Index")
    if indices.type.shape is not None and len(indices.type.shape) == 2:
        indices = op.add(Squeeze, indices, (1,))
    op.make(Gather, op.input(), indices, op.integer("axis", 0, "Axis"))


@imports("index_select")
def index_select(op: Context) -> None:
    op.make(Gather, op.input(), op.input("Index"), op.integer("dim", 0))


@imports("gather_nd")
def gather_nd(op: Context) -> None:
    op.make(GatherND, op.input(), op.input("Index"))


@imports("scatter_nd_add")
def scatter_nd_add(op: Context) -> None:
    op.make(ScatterND, op.input(), op.input("Index"), op.input("Updates"), reduction=Scatter.ADD)


@imports("take_along_axis")
def take_along_axis(op: Context) -> None:
    arguments = op.input("Input"), op.input("Index"), op.integer("Axis", 0)
    op.make(GatherElements, *arguments, output="Result")


@imports("where_index")
def where_index(op: Context) -> None:
    """Where elements are not 0: a row for each of them."""
    op.make(Transpose, op.add(NonZero, op.input("Condition")), (1, 0))


@imports("lookup_table_v2")
def lookup_table_v2(op: Context) -> None:
    _look_up(op, op.input("Ids"))


@imports("lookup_table")
def lookup_table(op: Context) -> None:
    """The older form: indices have a last axis of size 1."""
    _look_up(op, op.add(Squeeze, op.input("Ids"), (-1,)))


def _look_up(op: Context, indices: Operand) -> None:
    """The rows of a table; all 0 for the index that stands for padding, if one does."""
    table, padding = op.input("W"), op.integer("padding_idx", -1)
    if padding == -1:
        op.make(Gather, table, indices, 0)
        return
    found = op.add(Equal, op.as_type(indices, ElementType.INT64), np.int64(padding))
    is_padding = op.add(Unsqueeze, found, (-1,))
    zero = op.constant(np.zeros((), table.type.element_type.dtype), f"{table.name}.padding")
    op.make(Where, is_padding, zero, op.add(Gather, table, indices, 0))
