"""Reordering and repetition of elements."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.standard.rearranging import ReverseSequence, Tile, Trilu


def _tile_limit(op: Tile) -> Refusal | None:
    repeats, shape = op.operand("repeats"), op.input.type.shape
    if shape is None or repeats is None or repeats.type.static_shape != (len(shape),):
        return Refusal("repeats", "must be as many as the input has axes", Rule.SHAPE)
    return None


@converts(Tile, types=MOVABLE, computed=["repeats"], limit=_tile_limit)
def tile(g: Graph, op: Tile) -> str:
    return g.add("Tile", g[op.input], g.indices(op.operand("repeats")))


def _reverse_sequence_limit(op: ReverseSequence) -> Refusal | None:
    axes = {op.time_axis, op.batch_axis}
    return None if axes == {0, 1} else Refusal("time_axis", "it and batch_axis must be 0 and 1")


@converts(ReverseSequence, types=MOVABLE, limit=_reverse_sequence_limit)
def reverse_sequence(g: Graph, op: ReverseSequence) -> str:
    lengths, axes = g.cast(g[op.lengths], np.int64), (op.time_axis, op.batch_axis)
    return g.add("ReverseSequence", g[op.input], lengths, time_axis=axes[0], batch_axis=axes[1])


@converts(Trilu, types={ElementType.FLOAT32, ElementType.FLOAT64, ElementType.INT64})
def trilu(g: Graph, op: Trilu) -> str:
    k = g.constant(np.array(op.k, np.int64))
    return g.add("Trilu", g[op.input], k, upper=int(op.upper))
