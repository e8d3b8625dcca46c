"""Counts of n-grams in rows of integers."""

from __future__ import annotations

import numpy as np

from crosschip.importers.facts import static_shape_of
from crosschip.importers.onnx.node import Node, bounded, only
from crosschip.ir import Array, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceMin, ReduceSum


def ngram_counts(node: Node) -> Operand:
    """Add `TfIdfVectorizer` in mode TF: per row, the count of each n-gram with skips."""
    only("mode", node.text("mode"), "TF")
    node.ignore("weights")
    lengths = range(node.integer("min_gram_length"), node.integer("max_gram_length") + 1)
    gaps = range(node.integer("max_skip_count") + 1)
    indices = np.array(node.integers("ngram_indexes"))
    sequences = _sequences(node)
    shape = static_shape_of(node[0])
    rows = node.add(Cast, node.add(Reshape, node[0], (-1, shape[-1])), ElementType.INT64)
    counts = [
        # Unigrams have no gaps.
        _counts(node, rows, ngrams, gaps[: None if length > 1 else 1] if length in lengths else ())
        for length, ngrams in enumerate(sequences, 1)
        if len(ngrams)
    ]
    columns = node.add(Concat, parts=counts, axis=1)
    if static_shape_of(columns)[1] != len(indices):
        raise ModelError(
            f"there are {len(indices)} ngram_indexes for {static_shape_of(columns)[1]} n-grams"
        )
    width = int(indices.max()) + 1
    spread = (indices[:, None] == np.arange(width)).astype(np.float32)
    spread_counts = node.add(MatMul, columns, spread)
    return node.add(Reshape, spread_counts, (width,)) if len(shape) == 1 else spread_counts


def _sequences(node: Node) -> list[Array]:
    """Return the n-grams to count, one array [count, n] per n, from n = 1 on."""
    if node.has("pool_strings"):
        raise UnsupportedError("pool_strings: standard operators count numbers only")
    starts, pool = node.integers("ngram_counts"), np.array(node.integers("pool_int64s"), np.int64)
    sequences = []
    for length, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        if not 0 <= start <= end <= len(pool) or (end - start) % length:
            raise ModelError(f"ngram_counts {list(starts)} do not divide {len(pool)} elements")
        sequences.append(pool[start:end].reshape(-1, length))
    return sequences


def _counts(node: Node, rows: Operand, sequences: Array, gaps: range | tuple[()]) -> Operand:
    """Return the count of each n-gram in each row, [rows, n-grams]."""
    batch, size = static_shape_of(rows)
    length = sequences.shape[1]
    bounded(batch * len(sequences))
    total = node.constant(np.zeros((batch, len(sequences)), np.float32))
    for gap in gaps:
        starts = np.arange(max(0, size - (length - 1) * (gap + 1)))
        if not len(starts):
            continue
        windows = starts[:, None] + np.arange(length) * (gap + 1)
        parts = node.add(Unsqueeze, node.add(Gather, rows, windows, 1), (2,))
        equal = node.add(Cast, node.add(Equal, parts, sequences), ElementType.FLOAT32)
        is_match = node.add(ReduceMin, equal, (-1,), keepdim=False)
        total = node.add(Add, total, node.add(ReduceSum, is_match, (1,), keepdim=False))
    return total
