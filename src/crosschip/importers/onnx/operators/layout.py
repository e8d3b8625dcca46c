"""Operators that change a tensor's shape or the order of its elements, or nothing."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, axis_from_front, imports, only
from crosschip.importers.onnx.tensors import element_type
from crosschip.ir import Operand, Shape, UnsupportedError
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.blocks import DepthOrder, DepthToSpace, SpaceToDepth
from crosschip.ops.standard.conversion import BitCast
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.rearranging import ReverseSequence, Tile
from crosschip.ops.standard.reduction import ReduceProd
from crosschip.ops.standard.slicing import Slice

_TO_THE_END = 2**31 - 1
_AXES: dict[str, type[Operator]] = {"Squeeze": Squeeze, "Unsqueeze": Unsqueeze}


@imports("Identity")
def identity(node: Node) -> Operand:
    return node[0]


@imports("Dropout")
def dropout(node: Node) -> list[Operand]:
    """In inference it passes its input on; the mask, its second output, is all true."""
    node.ignore("seed")
    ratio = node.real("ratio") if node.opset < 12 else _ratio(node)
    training = node.optional(2)
    if training is not None and (training.value is None or training.value.any()) and ratio != 0:
        raise UnsupportedError("training_mode must be a constant that is false")
    results = [node[0]]
    if len(node.outputs) > 1 and node.outputs[1]:
        results.append(node.add(Fill, node.add(ShapeOf, node[0]), np.ones(1, np.bool_)))
    return results


def _ratio(node: Node) -> float | None:
    """The part that is dropped; `None` if it is computed."""
    ratio = node.optional(1)
    if ratio is None:
        return 0.5
    return None if ratio.value is None else float(ratio.value.item())


@imports("Reshape")
def reshape(node: Node) -> Operand:
    """A 0 in a shape keeps a size, with `allowzero` it is a size.

    With a computed shape the two differ for tensors without elements only.
    """
    shape = node[1]
    allow_zero = node.flag("allowzero") if node.opset >= 14 else False
    if allow_zero and (shape.value is None or not shape.value.all()):
        known = node[0].type.static_shape
        if known is not None and 0 in known:
            # A tensor without elements is like any other one of its shape.
            return node.add(Fill, shape, np.zeros(1, node[0].type.element_type.dtype))
        if shape.value is not None:
            raise UnsupportedError(f"allowzero 1 with shape {shape.value.tolist()}")
    return node.add(Reshape, node[0], shape)


@imports("Transpose")
def transpose(node: Node) -> Operand:
    perm = node.optional_integers("perm")
    return node.add(Transpose, node[0], perm or tuple(reversed(range(len(_shape(node))))))


@imports(*_AXES)
def squeeze_or_unsqueeze(node: Node) -> Operand:
    """The axes are an attribute before opset 13, then an input."""
    axes = node.optional_integers("axes") if node.opset < 13 else node.optional(1)
    if axes is None and node.type == "Squeeze" and node[0].type.static_shape is None:
        raise UnsupportedError("without axes, every size of the input must be known")
    return node.add(_AXES[node.type], node[0], axes)


@imports("Flatten")
def flatten(node: Node) -> Operand:
    """Makes two axes: all before `axis`, and all from it on."""
    rank = len(_shape(node))
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


@imports("Tile")
def tile(node: Node) -> Operand:
    return node.add(Tile, node[0], node[1])


@imports("Shape")
def shape(node: Node) -> Operand:
    """Since opset 15, a part of the shape can be asked for."""
    whole = node.add(ShapeOf, node[0])
    start, end = node.integer("start"), node.integer("end", _TO_THE_END)
    if (start, end) == (0, _TO_THE_END):
        return whole
    return node.add(Slice, whole, axes=(0,), starts=(start,), ends=(end,))


@imports("Size")
def size(node: Node) -> Operand:
    return node.add(ReduceProd, node.add(ShapeOf, node[0]), (0,), keepdim=False)


@imports("Slice")
def slice_(node: Node) -> Operand:
    """Read the ranges from attributes before opset 10, then from inputs."""
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


@imports("DepthToSpace")
def depth_to_space(node: Node) -> Operand:
    # ONNX has the attribute from opset 28 on, which older schemas do not know.
    mode = only("mode", node.text("mode", "DCR"), *DepthOrder.__members__)
    return node.add(DepthToSpace, node[0], node.integer("blocksize"), DepthOrder[mode])


@imports("SpaceToDepth")
def space_to_depth(node: Node) -> Operand:
    """Mode `CRD` orders the new channels by the old ones first, then by places in the block."""
    # ONNX has the attribute from opset 28 on, which older schemas do not know.
    mode = only("mode", node.text("mode", "DCR"), *DepthOrder.__members__)
    block = node.integer("blocksize")
    made = node.add(SpaceToDepth, node[0], block)
    if mode == "DCR":
        return made
    channels = _shape(node)[1]
    if not isinstance(channels, int):
        raise UnsupportedError("the number of channels must be known")
    order = np.arange(channels * block * block).reshape(-1, channels).T.ravel()
    return node.add(Gather, made, order, 1)


@imports("ReverseSequence")
def reverse_sequence(node: Node) -> Operand:
    time, batch = node.integer("time_axis"), node.integer("batch_axis")
    return node.add(ReverseSequence, node[0], node[1], time_axis=time, batch_axis=batch)


@imports("BitCast")
def bit_cast(node: Node) -> Operand:
    return node.add(BitCast, node[0], element_type(node.integer("to")))


def _shape(node: Node) -> Shape:
    if node[0].type.shape is None:
        raise UnsupportedError("the number of axes of input 0 must be known")
    return node[0].type.shape
