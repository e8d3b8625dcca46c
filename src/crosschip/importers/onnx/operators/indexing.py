"""Gather and scatter operators."""

from __future__ import annotations

import math

import numpy as np

from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, axis_from_front, bounded, imports, only
from crosschip.ir import Array, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Mod
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
)
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.searching import NonZero


@imports("Gather")
def gather(node: Node) -> Operand:
    return node.add(Gather, node[0], node[1], node.integer("axis"))


@imports("GatherElements")
def gather_elements(node: Node) -> Operand:
    return node.add(GatherElements, node[0], node[1], node.integer("axis"))


@imports("GatherND")
def gather_nd(node: Node) -> Operand:
    return node.add(GatherND, node[0], node[1], node.integer("batch_dims"))


@imports("ScatterElements", "Scatter")
def scatter_elements(node: Node) -> Operand:
    """Import ScatterElements, named `Scatter` before opset 11."""
    axis = node.integer("axis")
    return node.add(ScatterElements, node[0], node[1], node[2], axis, _reduction(node))


@imports("ScatterND")
def scatter_nd(node: Node) -> Operand:
    return node.add(ScatterND, node[0], node[1], node[2], _reduction(node))


@imports("Compress")
def compress(node: Node) -> Operand:
    """Import Compress: select indices where the condition, which may be shorter, is true."""
    operand, axis = node[0], node.integer("axis") if node.has("axis") else None
    if axis is None:
        operand, axis = node.add(Reshape, operand, (-1,)), 0
    indices = node.add(Reshape, node.add(NonZero, node[1]), (-1,))
    return node.add(Gather, operand, indices, axis)


@imports("TensorScatter")
def tensor_scatter(node: Node) -> Operand:
    """Import TensorScatter: write `update` along `axis`, from a start index per batch entry."""
    mode = only("mode", node.text("mode"), "linear", "circular")
    cache, update, start = node[0], node[1], node.optional(2)
    old, new = cache.type.static_shape, update.type.static_shape
    if old is None or new is None:
        raise UnsupportedError("the shapes of cache and update must be known")
    if len(old) != len(new):
        raise ModelError(f"the cache has {len(old)} axes, but the update {len(new)}")
    axis = axis_from_front(node.integer("axis"), len(old))
    bounded(math.prod(new))
    indices: list[Operand | Array] = [np.ascontiguousarray(grid) for grid in np.indices(new)]
    if start is not None:
        first = node.add(Reshape, start, (-1,) + (1,) * (len(old) - 1))
        indices[axis] = node.add(Add, first, indices[axis])
    if mode == "circular":
        indices[axis] = node.add(Mod, indices[axis], np.array(old[axis]))
    columns = [node.add(Unsqueeze, node.add(Expand, index, new), (-1,)) for index in indices]
    return node.add(ScatterND, cache, node.add(Concat, parts=columns, axis=-1), update)


def _reduction(node: Node) -> Scatter:
    name = node.text("reduction", "none").upper()
    return Scatter[only("reduction", name, *Scatter.__members__)]


@imports("ai.onnx.ml.ArrayFeatureExtractor")
def array_feature_extractor(node: Node) -> Operand:
    """Import ArrayFeatureExtractor: columns of the last axis; a vector counts as one row."""
    indices = node.add(Reshape, node[1], (-1,))
    picked = node.add(Gather, node[0], indices, -1)
    if node[0].type.shape is not None and len(node[0].type.shape) == 1:
        return node.add(Reshape, picked, (1, -1))
    return picked


@imports(f"{DOMAIN}.GatherND")
def contributed_gather_nd(node: Node) -> Operand:
    return node.add(GatherND, node[0], node[1], 0)
