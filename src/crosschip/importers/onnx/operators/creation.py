"""Constants, generated tensors, and shapes of tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.importers.facts import rank_of
from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, imports, only
from crosschip.importers.onnx.tensors import element_type
from crosschip.ir import Array, ElementType, ModelError, Operand
from crosschip.ir import constant as constant_operand
from crosschip.ir.types import INDICES
from crosschip.ops.standard.arithmetic import Sub
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, OneHot, Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.reduction import ReduceProd
from crosschip.ops.standard.slicing import Slice

_VALUES: dict[str, Callable[[Node, str], Array]] = {
    "sparse_value": Node.sparse_tensor,
    "value_float": lambda node, name: np.array(node.real(name), np.float32),
    "value_floats": lambda node, name: np.array(node.reals(name), np.float32),
    "value_int": lambda node, name: np.array(node.integer(name), np.int64),
    "value_ints": lambda node, name: np.array(node.integers(name), np.int64),
}

_TO_THE_END = 2**31 - 1


@imports("Constant")
def constant(node: Node) -> Operand:
    for name, read in _VALUES.items():
        if node.has(name):
            return constant_operand(read(node, name), node.outputs[0])
    if node.has("value_string"):
        return node.strings([node.text("value_string")], [])
    if node.has("value_strings"):
        texts = node.texts("value_strings")
        return node.strings(texts, [len(texts)])
    return node.tensor_operand("value")


@imports("ConstantOfShape")
def constant_of_shape(node: Node) -> Operand:
    value = node.tensor("value") if node.has("value") else np.zeros(1, np.float32)
    if value.size != 1:
        raise ModelError(f"value has {value.size} elements, but must have one")
    return node.add(Fill, node[0], value)


@imports("Range")
def range_(node: Node) -> Operand:
    only("stash_type", node.integer("stash_type"), 1)
    return node.add(Range, node[0], node[1], node[2])


@imports("EyeLike")
def eye_like(node: Node) -> Operand:
    """Import EyeLike: 1 where `column - row == k`, else 0."""
    code = node.integer("dtype", 0)
    dtype = element_type(code) if code else node[0].type.element_type
    diagonal = node.integer("k")
    shape = node.add(ShapeOf, node[0])
    rows, columns = (
        node.add(
            Range,
            np.int64(0),
            node.add(Reshape, node.add(Slice, shape, (0,), (axis,), (axis + 1,)), ()),
            np.int64(1),
        )
        for axis in range(2)
    )
    offset = node.add(Sub, columns, node.add(Reshape, rows, (-1, 1)))
    return node.add(Cast, node.add(Equal, offset, diagonal), dtype)


@imports("OneHot")
def one_hot(node: Node) -> Operand:
    """Import OneHot; indices outside `[-depth, depth)` set no element."""
    depth = node.add(Reshape, node[1], ())
    if depth.type.element_type not in INDICES:
        depth = node.add(Cast, depth, ElementType.INT64)
    off, on = (node.add(Gather, node[2], np.array(index), 0) for index in range(2))
    return node.add(OneHot, node[0], depth, on, off, node.integer("axis"))


@imports("Shape")
def shape(node: Node) -> Operand:
    """Import Shape; since opset 15 it may return a slice of the shape."""
    whole = node.add(ShapeOf, node[0])
    start, end = node.integer("start"), node.integer("end", _TO_THE_END)
    if (start, end) == (0, _TO_THE_END):
        return whole
    return node.add(Slice, whole, axes=(0,), starts=(start,), ends=(end,))


@imports("Size")
def size(node: Node) -> Operand:
    return node.add(ReduceProd, node.add(ShapeOf, node[0]), (0,), keepdim=False)


@imports(f"{DOMAIN}.Range")
def contributed_range(node: Node) -> Operand:
    """Import ONNX Runtime's Range: operands may have shape [1], the step is 1 by default."""
    start, end, step = node[0], node[1], node.optional(2)
    if step is None:
        step = node.constant(np.ones((), start.type.element_type.dtype))
    numbers = (
        node.add(Reshape, each, ()) if rank_of(each) else each for each in (start, end, step)
    )
    return node.add(Range, *numbers)
