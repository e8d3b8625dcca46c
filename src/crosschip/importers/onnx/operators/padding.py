"""More elements around a tensor, or fewer."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.ir import ElementType, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Mod
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import ScatterND
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.padding import Pad, PadMode

_MODES = {
    "constant": PadMode.CONSTANT,
    "reflect": PadMode.REFLECT,
    "edge": PadMode.EDGE,
    "wrap": PadMode.WRAP,
}


@imports("Pad")
def pad(node: Node) -> Operand:
    """The padding is an attribute before opset 11, then an input, since 18 for some axes only."""
    mode = _MODES[only("mode", node.text("mode"), *_MODES)]
    if node.opset < 11:
        before_and_after = node.constant(np.array(node.integers("pads"), np.int64))
        number = node.real("value")
        value = node.constant(np.array(number, node[0].type.element_type.dtype))
        return node.add(Pad, node[0], _by_axis(node, before_and_after), mode, value)
    pads, axes = node[1], node.optional(3)
    by_axis = _by_axis(node, pads)
    if axes is not None:
        by_axis = _spread(node, by_axis, axes)
    fill_value = node.optional(2)
    return node.add(
        Pad, node[0], by_axis, mode, None if fill_value is None else _one(node, fill_value)
    )


def _by_axis(node: Node, pads: Operand) -> Operand:
    """All paddings in front and then all at the end, as the two of each axis, one after another."""
    pairs = node.add(Transpose, node.add(Reshape, pads, (2, -1)), (1, 0))
    return node.add(Reshape, pairs, (-1,))


def _spread(node: Node, by_axis: Operand, axes: Operand) -> Operand:
    """Paddings of some axes as those of all."""
    if node[0].type.shape is None:
        raise UnsupportedError("the number of axes of input 0 must be known")
    rank = len(node[0].type.shape)
    none = node.constant(np.zeros((rank, 2), by_axis.type.element_type.dtype))
    places = node.add(Mod, node.add(Cast, axes, ElementType.INT64), np.array(rank))
    places = node.add(Reshape, places, (-1, 1))
    pairs = node.add(Reshape, by_axis, (-1, 2))
    return node.add(Reshape, node.add(ScatterND, none, places, pairs), (-1,))


def _one(node: Node, value: Operand) -> Operand:
    return value if value.type.shape == () else node.add(Reshape, value, ())
