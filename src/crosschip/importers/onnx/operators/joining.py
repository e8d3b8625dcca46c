"""Operators that put tensors together, take them apart, or pick from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.importers.onnx.node import Node, axis_from_front, bounded, imports, only
from crosschip.ir import Array, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Div, Mod, Mul, Sub
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
)
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.searching import NonZero, Unique


@imports("Concat")
def concat(node: Node) -> Operand:
    return node.add(Concat, parts=node.all_inputs(), axis=node.integer("axis"))


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
    """Before opset 11 it is called `Scatter`."""
    axis = node.integer("axis")
    return node.add(ScatterElements, node[0], node[1], node[2], axis, _reduction(node))


@imports("ScatterND")
def scatter_nd(node: Node) -> Operand:
    return node.add(ScatterND, node[0], node[1], node[2], _reduction(node))


@imports("Compress")
def compress(node: Node) -> Operand:
    """Picks where the condition is true; it may be shorter than the axis."""
    operand, axis = node[0], node.integer("axis") if node.has("axis") else None
    if axis is None:
        operand, axis = node.add(Reshape, operand, (-1,)), 0
    places = node.add(Reshape, node.add(NonZero, node[1]), (-1,))
    return node.add(Gather, operand, places, axis)


@imports("NonZero")
def non_zero(node: Node) -> Operand:
    return node.add(NonZero, node[0])


@imports("Unique")
def unique(node: Node) -> tuple[Operand, ...]:
    axis = node.integer("axis") if node.has("axis") else None
    return node.add_all(Unique, node[0], axis=axis, sorted=node.flag("sorted"))


@imports("TensorScatter")
def tensor_scatter(node: Node) -> Operand:
    """Writes `update` along `axis`, in each batch from its own index on."""
    mode = only("mode", node.text("mode"), "linear", "circular")
    cache, update, start = node[0], node[1], node.optional(2)
    old, new = cache.type.static_shape, update.type.static_shape
    if old is None or new is None:
        raise UnsupportedError("the shapes of cache and update must be known")
    if len(old) != len(new):
        raise ModelError(f"the cache has {len(old)} axes, but the update {len(new)}")
    axis = axis_from_front(node.integer("axis"), len(old))
    bounded(math.prod(new))
    places: list[Operand | Array] = [np.ascontiguousarray(grid) for grid in np.indices(new)]
    if start is not None:
        first = node.add(Reshape, start, (-1,) + (1,) * (len(old) - 1))
        places[axis] = node.add(Add, first, places[axis])
    if mode == "circular":
        places[axis] = node.add(Mod, places[axis], np.array(old[axis]))
    columns = [node.add(Unsqueeze, node.add(Expand, place, new), (-1,)) for place in places]
    return node.add(ScatterND, cache, node.add(Concat, parts=columns, axis=-1), update)


@imports("Split")
def split(node: Node) -> Sequence[Operand]:
    """The sizes are an attribute before opset 13, then an input; without them they are equal."""
    axis = node.integer("axis")
    count = len(node.outputs)
    given = node.optional_integers("split") if node.opset < 13 else node.optional(1)
    if node.opset >= 18 and node.integer("num_outputs", count) != count:
        raise ModelError(f"num_outputs is not the number of outputs, {count}")
    if given is None:
        given = _equal_parts(node, axis)
    elif isinstance(given, tuple):
        _check_count(len(given), count)
    elif given.type.static_shape is None:
        given = node.add(Reshape, given, (count,))
    else:
        _check_count(math.prod(given.type.static_shape), count)
    return node.add_all(Split, node[0], axis, given)


def _reduction(node: Node) -> Scatter:
    name = node.text("reduction", "none").upper()
    return Scatter[only("reduction", name, *Scatter.__members__)]


def _check_count(parts: int, outputs: int) -> None:
    if parts != outputs:
        raise ModelError(f"is split into {parts} parts, but has {outputs} outputs")


def _equal_parts(node: Node, axis: int) -> tuple[int, ...] | Operand:
    """Parts of one size, but that the last one is smaller if it must and may be."""
    shape = node[0].type.shape
    size = None if shape is None else shape[axis_from_front(axis, len(shape))]
    count = max(1, len(node.outputs))
    if not isinstance(size, int):
        return _computed_parts(node, axis, count)
    part = -(-size // count)
    last = size - part * (count - 1)
    if last < 0 or (last != part and node.opset < 18):
        raise ModelError(f"axis {axis} of size {size} cannot be split into {count} equal parts")
    return (*(part,) * (count - 1), last)


def _computed_parts(node: Node, axis: int, count: int) -> Operand:
    """The same where the size is known only when the model runs."""
    found = node.add(Gather, node.add(ShapeOf, node[0]), np.array([axis]), 0)
    size = node.add(Reshape, found, (1,))
    part = node.add(Div, node.add(Add, size, np.array(count - 1)), np.array(count))
    last = node.add(Sub, size, node.add(Mul, part, np.array(count - 1)))
    return node.add(Concat, parts=[*[part] * (count - 1), last], axis=0)
