"""Operators that change a tensor's shape or the order of its elements, or nothing."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, axis_from_front, imports
from crosschip.ir import Operand, Shape, UnsupportedError
from crosschip.ops.layout import (
    Expand,
    Flatten,
    Reshape,
    ShapeOf,
    Slice,
    Squeeze,
    Transpose,
    Unsqueeze,
)
from crosschip.ops.operator import Operator

_TO_THE_END = 2**31 - 1
_AXES: dict[str, type[Operator]] = {"Squeeze": Squeeze, "Unsqueeze": Unsqueeze}


@imports("Identity")
def identity(node: Node) -> Operand:
    return node[0]


@imports("Dropout")
def dropout(node: Node) -> Operand:
    """In inference it passes its input on; the second output, the mask, is not made."""
    node.ignore("ratio", "seed")
    training = node.optional(2)
    if training is not None and (training.value is None or training.value.any()):
        raise UnsupportedError("training_mode must be a constant that is false")
    return node[0]


@imports("Reshape")
def reshape(node: Node) -> Operand:
    """A 0 in a shape keeps a size, with `allowzero` it is a size.

    With a computed shape the two differ for tensors without elements only.
    """
    shape = node[1]
    allow_zero = node.flag("allowzero", False) if node.opset >= 14 else False
    if allow_zero and shape.value is not None and not shape.value.all():
        raise UnsupportedError(f"allowzero 1 with shape {shape.value.tolist()} cannot be expressed")
    return node.add(Reshape, node[0], shape)


@imports("Transpose")
def transpose(node: Node) -> Operand:
    perm = node.optional_integers("perm")
    return node.add(Transpose, node[0], perm or tuple(reversed(range(len(_shape(node))))))


@imports(*_AXES)
def squeeze_or_unsqueeze(node: Node) -> Operand:
    """The axes are an attribute before opset 13, then an input."""
    axes = node.optional_integers("axes") if node.opset < 13 else node.optional(1)
    return node.add(_AXES[node.type], node[0], axes)


@imports("Flatten")
def flatten(node: Node) -> Operand:
    """Makes two axes: all before `axis`, and all from it on."""
    rank = len(_shape(node))
    axis = node.integer("axis", 1)
    if axis == rank:
        return node.add(Reshape, node[0], (-1, 1))
    axis = axis_from_front(axis, rank)
    if axis == 0:
        return node.add(Reshape, node[0], (1, -1))
    merged = node.add(Flatten, node[0], axis, -1)
    return merged if axis == 1 else node.add(Flatten, merged, 0, axis - 1)


@imports("Expand")
def expand(node: Node) -> Operand:
    return node.add(Expand, node[0], node[1])


@imports("Shape")
def shape(node: Node) -> Operand:
    """Since opset 15, a part of the shape can be asked for."""
    whole = node.add(ShapeOf, node[0])
    start, end = node.integer("start", 0), node.integer("end", _TO_THE_END)
    if (start, end) == (0, _TO_THE_END):
        return whole
    return node.add(Slice, whole, axes=(0,), starts=(start,), ends=(end,))


@imports("Slice")
def slice_(node: Node) -> Operand:
    """What to take is told by attributes before opset 10, then by inputs."""
    if node.opset < 10:
        axes = node.optional_integers("axes")
        starts, ends = node.integers("starts"), node.integers("ends")
        return node.add(Slice, node[0], axes, starts, ends)
    return node.add(
        Slice,
        node[0],
        starts=node[1],
        ends=node[2],
        axes=node.optional(3),
        steps=node.optional(4),
    )


def _shape(node: Node) -> Shape:
    if node[0].type.shape is None:
        raise UnsupportedError("the number of axes of input 0 must be known")
    return node[0].type.shape
