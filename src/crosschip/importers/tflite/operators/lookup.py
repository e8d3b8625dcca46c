"""Rows of tables, chosen by numbers or by keys."""

from __future__ import annotations

import math

import numpy as np

from crosschip.flatbuffer.schemas.tflite.enumerations import CombinerType
from crosschip.flatbuffer.schemas.tflite.options import EmbeddingLookupSparseOptions
from crosschip.importers.facts import rank_of, size_of, static_shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, ModelError, Operand
from crosschip.ops.standard.arithmetic import Div, Min, Mul
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather, Scatter, ScatterND
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.searching import SearchSorted
from crosschip.ops.standard.unary import Sqrt, Square


@imports("EMBEDDING_LOOKUP")
def embedding_lookup(node: Node) -> Operand:
    return node.add(Gather, node[1], node[0], axis=0)


@imports("EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(node: Node) -> Operand:
    """Import combinations of a table's rows: one for each row of a sparse tensor of row numbers.

    Entries of a row follow one another. Rows without entries are 0.
    """
    combiner = CombinerType(node.options(EmbeddingLookupSparseOptions).combiner)
    shape = [int(size) for size in node.value(2, "the shape of the sparse tensor").ravel()]
    if not shape or size_of(node[1], 1) != len(shape):
        raise ModelError(f"positions of {size_of(node[1], 1)} numbers in a tensor {shape}")
    rows = shape[:-1]
    strides = [math.prod(rows[axis + 1 :]) for axis in range(len(rows))]
    products = node.add(Mul, node[1], np.array([*strides, 0], np.int32))
    positions = node.add(ReduceSum, products, (1,), True)

    def sums(values: Operand) -> Operand:
        """Return the sums of the entries of each row."""
        start = np.zeros((math.prod(rows), *static_shape_of(values)[1:]), np.float32)
        return node.add(ScatterND, start, positions, values, reduction=Scatter.ADD)

    weights, table = node[3], node[4]
    ones = (1,) * (rank_of(table) - 1)
    column = node.add(Reshape, weights, (0, *ones))
    combined = sums(node.add(Mul, node.add(Gather, table, node[0], axis=0), column))
    if combiner is not CombinerType.SUM:
        total = sums(column if combiner is CombinerType.MEAN else node.add(Square, column))
        total = total if combiner is CombinerType.MEAN else node.add(Sqrt, total)
        filled = sums(node.constant(np.ones((size_of(weights, 0), *ones), np.float32)))
        is_empty = node.add(Equal, filled, np.float32(0))
        combined = node.add(Div, combined, node.add(Where, is_empty, np.float32(1), total))
    return node.add(Reshape, combined, (*rows, *static_shape_of(table)[1:]))


@imports("HASHTABLE_LOOKUP")
def hashtable_lookup(node: Node) -> tuple[Operand, Operand]:
    """Import the rows of keys and whether the sorted table has them; others have rows of 0."""
    lookup, keys, rows = node[0], node[1], node[2]
    last = np.array(size_of(keys, 0) - 1, np.int32)
    number = node.add(SearchSorted, keys, lookup, dtype=ElementType.INT32)
    number = node.add(Min, number, last)
    is_in_table = node.add(Equal, node.add(Gather, keys, number, axis=0), lookup)
    chosen = node.add(Gather, node.integers(rows), number, axis=0)
    columns = tuple(range(1, rank_of(rows)))
    is_valid = node.add(Unsqueeze, is_in_table, axes=columns) if columns else is_in_table
    zero = np.zeros((), rows.type.element_type.dtype)
    return node.add(Where, is_valid, chosen, zero), node.add(Cast, is_in_table, ElementType.UINT8)
