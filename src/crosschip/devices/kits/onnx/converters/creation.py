"""Tensors made from a description."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import (
    MOVABLE,
    converts,
)
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard import creation
from crosschip.ops.standard.creation import Range


@converts(creation.Fill, types=MOVABLE, computed=["shape"])
def fill(g: Graph, op: creation.Fill) -> str:
    return g.add("Expand", g.single(op.value), g.indices(op.operand("shape")))


@converts(creation.ShapeOf, types=MOVABLE)
def shape_of(g: Graph, op: creation.ShapeOf) -> str:
    return g.cast(g.sizes(op.input), op.dtype.dtype)


@converts(Range, types={ElementType.FLOAT32, ElementType.FLOAT64, *INDICES})
def range_(g: Graph, op: Range) -> str:
    bounds = [g.single(o) for o in (op.start, op.end, op.step)]
    element_type = op.outputs[0].type.element_type
    if element_type in INDICES:
        return g.add("Range", *bounds)
    # ONNX Runtime counts in the element type, and in its own way to what is not finite.
    start, end, step = (g.cast(bound, np.float64) for bound in bounds)
    nothing = g.constant(np.array(0.0))
    differences = [g.add("Sub", bound, bound) for bound in (start, end, step)]
    are_finite = g.add("Equal", g.add("Sum", *differences), nothing)
    refused_or_step = g.add("Where", are_finite, step, nothing)
    # It adds the step up, and errors with it: of that, only the number of elements counts.
    count = g.add("Squeeze", g.add("Shape", g.add("Range", start, end, refused_or_step)))
    zero, one = (g.constant(np.array(number)) for number in (0, 1))
    places = g.cast(g.add("Range", zero, count, one), np.float64)
    return g.cast(g.add("Add", start, g.add("Mul", places, step)), element_type.dtype)
