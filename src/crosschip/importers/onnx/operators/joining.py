"""Operators that put tensors together, take them apart, or pick from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosschip.importers.onnx.node import Node, axis_from_front, imports
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ops.joining import Concat, Gather, Split
from crosschip.ops.layout import Reshape


@imports("Concat")
def concat(node: Node) -> Operand:
    return node.add(Concat, node.all_inputs(), node.integer("axis"))


@imports("Gather")
def gather(node: Node) -> Operand:
    return node.add(Gather, node[0], node[1], node.integer("axis", 0))


@imports("Split")
def split(node: Node) -> Sequence[Operand]:
    """The sizes are an attribute before opset 13, then an input; without them they are equal."""
    axis = node.integer("axis", 0)
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


def _check_count(parts: int, outputs: int) -> None:
    if parts != outputs:
        raise ModelError(f"is split into {parts} parts, but has {outputs} outputs")


def _equal_parts(node: Node, axis: int) -> tuple[int, ...]:
    """Parts of one size, but that the last one is smaller if it must and may be."""
    shape = node[0].type.shape
    size = None if shape is None else shape[axis_from_front(axis, len(shape))]
    if not isinstance(size, int):
        raise UnsupportedError(f"a split into equal parts needs a fixed size of axis {axis}")
    count = max(1, len(node.outputs))
    part = -(-size // count)
    last = size - part * (count - 1)
    if last < 0 or (last != part and node.opset < 18):
        raise ModelError(f"axis {axis} of size {size} cannot be split into {count} equal parts")
    return (*(part,) * (count - 1), last)
