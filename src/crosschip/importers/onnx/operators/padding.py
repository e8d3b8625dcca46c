"""Padding."""

from __future__ import annotations

import numpy as np

from crosschip.importers.facts import rank_of
from crosschip.importers.onnx.contributed import DOMAIN
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
    """Import Pad; pads are an attribute before opset 11, and per listed axis since opset 18."""
    mode = _MODES[only("mode", node.text("mode"), *_MODES)]
    if node.opset < 11:
        before_and_after = node.constant(np.array(node.integers("pads"), np.int64))
        number = node.real("value")
        value = node.constant(np.array(number, node[0].type.element_type.dtype))
        return node.add(Pad, node[0], _interleave_pads(node, before_and_after), mode, value)
    pads, axes = node[1], node.optional(3)
    by_axis = _interleave_pads(node, pads)
    if axes is not None:
        by_axis = _expand_to_all_axes(node, by_axis, axes)
    fill_value = node.optional(2)
    if fill_value is not None and fill_value.type.shape != ():
        fill_value = node.add(Reshape, fill_value, ())
    return node.add(Pad, node[0], by_axis, mode, fill_value)


def _interleave_pads(node: Node, pads: Operand) -> Operand:
    """Reorder pads from all begins, all ends to begin and end per axis."""
    pairs = node.add(Transpose, node.add(Reshape, pads, (2, -1)), (1, 0))
    return node.add(Reshape, pairs, (-1,))


def _expand_to_all_axes(node: Node, by_axis: Operand, axes: Operand) -> Operand:
    """Extend the pads of some axes to all axes."""
    if node[0].type.shape is None:
        raise UnsupportedError("the number of axes of input 0 must be known")
    rank = len(node[0].type.shape)
    none = node.constant(np.zeros((rank, 2), by_axis.type.element_type.dtype))
    indices = node.add(Mod, node.add(Cast, axes, ElementType.INT64), np.array(rank))
    indices = node.add(Reshape, indices, (-1, 1))
    pairs = node.add(Reshape, by_axis, (-1, 2))
    return node.add(Reshape, node.add(ScatterND, none, indices, pairs), (-1,))


@imports(f"{DOMAIN}.Pad")
def contributed_pad(node: Node) -> Operand:
    """Import ONNX Runtime's Pad, whose pads may have shape [1, 2 * rank]."""
    pads = node[1] if rank_of(node[1]) == 1 else node.add(Reshape, node[1], (-1,))
    return node.on_reals("Pad", [node[0], pads, node.optional(2)], opset=16)
