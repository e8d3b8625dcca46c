"""Creation of tensors, whose sizes are known."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tflite.converters.table import (
    INDICES,
    MOVABLE,
    SINGLE,
    converts,
    shape_of,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import Operand
from crosschip.ops.standard.creation import Fill, FillLike, Range, ShapeOf


def _fill_limit(op: Fill | FillLike) -> Refusal | None:
    if not op.value.is_constant:
        return Refusal("value", "is not constant", Rule.COMPUTED)
    return (
        Refusal("output", "has no elements", Rule.SHAPE) if 0 in shape_of(op.outputs[0]) else None
    )


@converts(Fill, types=MOVABLE, limit=_fill_limit, computed={"shape"})
def fill(g: Graph, op: Fill) -> Operand:
    return _filled(g, op)


@converts(FillLike, types=MOVABLE, limit=_fill_limit)
def fill_like(g: Graph, op: FillLike) -> Operand:
    return _filled(g, op)


def _filled(g: Graph, op: Fill | FillLike) -> Operand:
    value = op.value.value
    assert value is not None, "the limit requires it"
    return g.constant(np.full(shape_of(op.outputs[0]), value.reshape(()), value.dtype))


def _range_limit(op: Range) -> Refusal | None:
    for slot, operand in (("start", op.start), ("step", op.step)):
        if not operand.is_constant:
            return Refusal(slot, "is not constant", Rule.COMPUTED)
    return None


@converts(Range, types=SINGLE | INDICES, limit=_range_limit)
def range_(g: Graph, op: Range) -> Operand:
    start, step = op.start.value, op.step.value
    assert start is not None, "the limit requires it"
    assert step is not None, "the limit requires it"
    wide = np.float64 if start.dtype.kind == "f" else np.int64
    count = np.arange(shape_of(op.outputs[0])[0])
    return g.constant((start.astype(wide) + count * step.astype(wide)).astype(start.dtype))


def _shape_limit(op: ShapeOf) -> Refusal | None:
    return None if shape_of(op.input) else Refusal("input", "is a scalar", Rule.SHAPE)


@converts(ShapeOf, types=MOVABLE, output_types=INDICES, limit=_shape_limit)
def shape(g: Graph, op: ShapeOf) -> Operand:
    return g.constant(np.array(shape_of(op.input), op.outputs[0].type.element_type.dtype))
