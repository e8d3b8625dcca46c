"""Operators that find elements: the greatest, the unique, the nonzero."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.decompositions.ngrams import ngram_counts
from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import ElementType, Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, TopK, Unique

_ARGUMENTS: dict[str, type[Operator]] = {"ArgMax": ArgMax, "ArgMin": ArgMin}


@imports("NonZero")
def non_zero(node: Node) -> Operand:
    return node.add(NonZero, node[0])


@imports("Unique")
def unique(node: Node) -> tuple[Operand, ...]:
    axis = node.integer("axis") if node.has("axis") else None
    return node.add_all(Unique, node[0], axis=axis, sorted=node.flag("sorted"))


@imports(*_ARGUMENTS)
def argument(node: Node) -> Operand:
    return node.add(
        _ARGUMENTS[node.type],
        node[0],
        axis=node.integer("axis"),
        keepdim=node.flag("keepdims"),
        dtype=ElementType.INT64,
        select_last=node.flag("select_last_index"),
    )


@imports("TopK")
def top_k(node: Node) -> tuple[Operand, ...]:
    """Import TopK; `k` is an attribute before opset 10."""
    k = node.integer("k") if node.opset < 10 else node.add(Reshape, node[1], ())
    return node.add_all(
        TopK,
        node[0],
        k,
        axis=node.integer("axis"),
        largest=node.flag("largest"),
        sorted=node.flag("sorted"),
        return_indices_dtype=ElementType.INT64,
    )


@imports("TfIdfVectorizer")
def tf_idf_vectorizer(node: Node) -> Operand:
    """Import TfIdfVectorizer in mode TF, which counts and ignores weights."""
    return ngram_counts(node)


@imports(f"{DOMAIN}.Unique")
def contributed_unique(node: Node) -> Sequence[Operand]:
    """Import ONNX Runtime's Unique: elements in order of occurrence, inverse indices, counts."""
    elements, _, inverse, counts = node.add_all(Unique, node[0], axis=None, sorted=False)
    return [elements, inverse, counts]
