"""Padding, repeating and reversing, blocks of images, and ranges."""

from __future__ import annotations

import numpy as np

from crosschip.devices.limits import padded_once
from crosschip.devices.onnxruntime.converters.table import (
    FLOAT_TYPES,
    MOVABLE,
    converts,
)
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard.blocks import DepthToSpace, SpaceToDepth
from crosschip.ops.standard.creation import Range
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.rearranging import ReverseSequence, Tile, Trilu

_MODES = {
    PadMode.REFLECT: "reflect",
    PadMode.REPLICATE: "edge",
    PadMode.EDGE: "edge",
    PadMode.WRAP: "wrap",
}

_PADDABLE = MOVABLE - {ElementType.INT16, ElementType.UINT16}


def _padded(op: Pad) -> Refusal | None:
    return Refusal("mode", "SYMMETRIC") if op.mode is PadMode.SYMMETRIC else padded_once(op)


@converts(Pad, types=_PADDABLE, computed=["pads"], limit=_padded)
def pad(g: Graph, op: Pad) -> str:
    if op.input.type.shape == ():
        return g[op.input]
    sides = g.add("Reshape", g.indices(op.operand("pads")), g.int64([-1, 2]))
    pads = g.add("Reshape", g.add("Transpose", sides, perm=[1, 0]), g.int64([-1]))
    value = g.add("Reshape", g[op.value], g.int64([])) if op.value else ""
    return g.add("Pad", g[op.input], pads, value, mode=_MODES.get(op.mode, "constant"))


def _each_axis(op: Tile) -> Refusal | None:
    repeats, shape = op.operand("repeats"), op.input.type.shape
    if shape is None or repeats is None or repeats.type.static_shape != (len(shape),):
        return Refusal("repeats", "must be as many as the input has axes", Rule.SHAPE)
    return None


@converts(Tile, types=MOVABLE, computed=["repeats"], limit=_each_axis)
def tile(g: Graph, op: Tile) -> str:
    return g.add("Tile", g[op.input], g.indices(op.operand("repeats")))


def _first_axes(op: ReverseSequence) -> Refusal | None:
    axes = {op.time_axis, op.batch_axis}
    return None if axes == {0, 1} else Refusal("time_axis", "it and batch_axis must be 0 and 1")


@converts(ReverseSequence, types=MOVABLE, limit=_first_axes)
def reverse_sequence(g: Graph, op: ReverseSequence) -> str:
    lengths, axes = g.cast(g[op.lengths], np.int64), (op.time_axis, op.batch_axis)
    return g.add("ReverseSequence", g[op.input], lengths, time_axis=axes[0], batch_axis=axes[1])


@converts(Trilu, types={ElementType.FLOAT32, ElementType.FLOAT64, ElementType.INT64})
def trilu(g: Graph, op: Trilu) -> str:
    k = g.constant(np.array(op.k, np.int64))
    return g.add("Trilu", g[op.input], k, upper=int(op.upper))


@converts(DepthToSpace, types=FLOAT_TYPES)
def depth_to_space(g: Graph, op: DepthToSpace) -> str:
    return g.add("DepthToSpace", g[op.input], blocksize=op.block_size, mode=op.mode.name)


@converts(SpaceToDepth, types=FLOAT_TYPES)
def space_to_depth(g: Graph, op: SpaceToDepth) -> str:
    return g.add("SpaceToDepth", g[op.input], blocksize=op.block_size)


@converts(Range, types={ElementType.FLOAT32, ElementType.FLOAT64, *INDICES})
def range_(g: Graph, op: Range) -> str:
    bounds = (g.add("Reshape", g[o], g.int64([])) for o in (op.start, op.end, op.step))
    return g.add("Range", *bounds)
