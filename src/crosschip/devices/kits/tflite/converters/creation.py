"""Creation of tensors, whose sizes are known."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tflite.converters.table import MOVABLE, converts, shape_of
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import Operand
from crosschip.ops.standard.creation import Fill, FillLike, ShapeOf


def _fill_limit(op: Fill | FillLike) -> Refusal | None:
    return None if op.value.is_constant else Refusal("value", "is not constant", Rule.COMPUTED)


@converts(Fill, types=MOVABLE, limit=_fill_limit)
def fill(g: Graph, op: Fill) -> Operand:
    return _filled(g, op)


@converts(FillLike, types=MOVABLE, limit=_fill_limit)
def fill_like(g: Graph, op: FillLike) -> Operand:
    return _filled(g, op)


def _filled(g: Graph, op: Fill | FillLike) -> Operand:
    value = op.value.value
    assert value is not None, "the limit requires it"
    return g.constant(np.full(shape_of(op.outputs[0]), value.reshape(()), value.dtype))


@converts(ShapeOf, types=MOVABLE)
def shape(g: Graph, op: ShapeOf) -> Operand:
    return g.constant(np.array(shape_of(op.input), op.outputs[0].type.element_type.dtype))
