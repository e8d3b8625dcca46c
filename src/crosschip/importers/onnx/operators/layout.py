"""Operators that change a tensor's shape or the order of its axes."""

from __future__ import annotations

from crosschip.importers.facts import rank_of, value_of
from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, axis_from_front, imports
from crosschip.ir import ModelError, Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze

_AXES: dict[str, type[Operator]] = {"Squeeze": Squeeze, "Unsqueeze": Unsqueeze}


@imports("Reshape")
def reshape(node: Node) -> Operand:
    """Import Reshape; a 0 in the shape copies the input's size unless `allowzero` is set."""
    allow_zero = node.flag("allowzero") if node.opset >= 14 else False
    return node.add(Reshape, node[0], node[1], allow_zero)


@imports("Transpose")
def transpose(node: Node) -> Operand:
    perm = node.optional_integers("perm")
    return node.add(Transpose, node[0], perm or tuple(reversed(range(rank_of(node[0])))))


@imports(*_AXES)
def squeeze_or_unsqueeze(node: Node) -> Operand:
    """Import Squeeze or Unsqueeze; axes are an attribute before opset 13."""
    axes = node.optional_integers("axes") if node.opset < 13 else node.optional(1)
    return node.add(_AXES[node.type], node[0], axes)


@imports("Flatten")
def flatten(node: Node) -> Operand:
    """Import Flatten: merge the axes before `axis`, and those from `axis` on."""
    rank = rank_of(node[0])
    axis = node.integer("axis")
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


@imports(f"{DOMAIN}.ExpandDims")
def expand_dims(node: Node) -> Operand:
    """Import ExpandDims; a negative axis counts from the last input axis: -1 inserts before it."""
    axis, rank = int(value_of(node[1], "the axis").item()), rank_of(node[0])
    if not -rank - 1 <= axis <= rank:
        raise ModelError(f"there is no axis {axis} to insert among {rank}")
    return node.add(Unsqueeze, node[0], (axis,))
