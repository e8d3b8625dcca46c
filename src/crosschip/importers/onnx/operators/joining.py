"""Concatenation and splitting."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.importers.onnx.node import Node, axis_from_front, imports
from crosschip.ir import ModelError, Operand
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import (
    Gather,
)
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape


@imports("Concat")
def concat(node: Node) -> Operand:
    return node.add(Concat, parts=node.all_inputs(), axis=node.integer("axis"))


@imports("Split")
def split(node: Node) -> Sequence[Operand]:
    """Import Split; sizes are an attribute before opset 13 and equal by default."""
    axis = node.integer("axis")
    count = len(node.outputs)
    sizes = node.optional_integers("split") if node.opset < 13 else node.optional(1)
    if node.opset >= 18 and node.integer("num_outputs", count) != count:
        raise ModelError(f"num_outputs is not the number of outputs, {count}")
    if sizes is None:
        sizes = _equal_sizes(node, axis)
    elif isinstance(sizes, tuple):
        _check_count(len(sizes), count)
    elif sizes.type.static_shape is None:
        sizes = node.add(Reshape, sizes, (count,))
    else:
        _check_count(math.prod(sizes.type.static_shape), count)
    return node.add_all(Split, node[0], axis, sizes)


def _check_count(parts: int, outputs: int) -> None:
    if parts != outputs:
        raise ModelError(f"is split into {parts} parts, but has {outputs} outputs")


def _equal_sizes(node: Node, axis: int) -> tuple[int, ...] | Operand:
    """Return equal sizes; since opset 18 the last part may be smaller."""
    shape = node[0].type.shape
    size = None if shape is None else shape[axis_from_front(axis, len(shape))]
    count = max(1, len(node.outputs))
    if not isinstance(size, int):
        return _dynamic_equal_sizes(node, axis, count)
    part = -(-size // count)
    last = size - part * (count - 1)
    if last < 0 or (last != part and node.opset < 18):
        raise ModelError(f"axis {axis} of size {size} cannot be split into {count} equal parts")
    return (*(part,) * (count - 1), last)


def _dynamic_equal_sizes(node: Node, axis: int, count: int) -> Operand:
    """Compute equal sizes for an axis of dynamic size."""
    size_list = node.add(Gather, node.add(ShapeOf, node[0]), np.array([axis]), 0)
    size = node.add(Reshape, size_list, (1,))
    part = node.add(Div, node.add(Add, size, np.array(count - 1)), np.array(count))
    last = node.add(Sub, size, node.add(Mul, part, np.array(count - 1)))
    return node.add(Concat, parts=[*[part] * (count - 1), last], axis=0)
