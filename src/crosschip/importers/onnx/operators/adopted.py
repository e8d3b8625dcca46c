"""Operators of ONNX Runtime that ONNX has adopted since, as they were before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.facts import rank_of, value_of
from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import ModelError, Operand
from crosschip.ops.standard.creation import Range
from crosschip.ops.standard.indexing import GatherND
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.rearranging import Trilu
from crosschip.ops.standard.searching import Unique

_OPSET = 16
"""A version of ONNX's operators in which they mean what ONNX Runtime's do."""


@imports(f"{DOMAIN}.GatherND")
def gather_nd(node: Node) -> Operand:
    return node.add(GatherND, node[0], node[1], 0)


@imports(f"{DOMAIN}.Trilu")
def trilu(node: Node) -> Operand:
    return node.add(Trilu, node[0], node.optional(1), node.flag("upper", True))


@imports(f"{DOMAIN}.GridSample")
def grid_sample(node: Node) -> Operand:
    return node.on_reals("GridSample", node.inputs, opset=_OPSET)


@imports(f"{DOMAIN}.Pad")
def pad(node: Node) -> Operand:
    """The paddings may be a row of a matrix."""
    pads = node[1] if rank_of(node[1]) == 1 else node.add(Reshape, node[1], (-1,))
    return node.on_reals("Pad", [node[0], pads, node.optional(2)], opset=_OPSET)


@imports(f"{DOMAIN}.Range")
def range_(node: Node) -> Operand:
    """The numbers may be lists of one; the step is 1 unless it is given."""
    start, end, step = node[0], node[1], node.optional(2)
    if step is None:
        step = node.constant(np.ones((), start.type.element_type.dtype))
    numbers = (
        node.add(Reshape, each, ()) if rank_of(each) else each for each in (start, end, step)
    )
    return node.add(Range, *numbers)


@imports(f"{DOMAIN}.ExpandDims")
def expand_dims(node: Node) -> Operand:
    """An axis below 0 is that of the result, but one more: -1 comes before the last axis."""
    axis, rank = int(value_of(node[1], "the axis").item()), rank_of(node[0])
    if not -rank - 1 <= axis <= rank:
        raise ModelError(f"there is no axis {axis} to insert among {rank}")
    return node.add(Unsqueeze, node[0], (axis,))


@imports(f"{DOMAIN}.Unique")
def unique(node: Node) -> Sequence[Operand]:
    """The elements in the order in which they occur, where each is among these, and how often."""
    elements, _, places, counts = node.add_all(Unique, node[0], axis=None, sorted=False)
    return [elements, places, counts]
