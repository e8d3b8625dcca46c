"""Creation of tensors."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard import creation
from crosschip.ops.standard.creation import Range


@converts(creation.Fill, types=MOVABLE, computed=["shape"])
def fill(g: Graph, op: creation.Fill) -> str:
    return g.add("Expand", g.as_scalar(op.value), g.indices(op.operand("shape")))


@converts(creation.ShapeOf, types=MOVABLE)
def shape_of(g: Graph, op: creation.ShapeOf) -> str:
    return g.cast(g.sizes(op.input), op.dtype.dtype)


@converts(Range, types={ElementType.FLOAT32, ElementType.FLOAT64, *INDICES})
def range_(g: Graph, op: Range) -> str:
    bounds = [g.as_scalar(o) for o in (op.start, op.end, op.step)]
    element_type = op.outputs[0].type.element_type
    if element_type in INDICES:
        return g.add("Range", *bounds)
    # Quirk range-as-running-sum: only the number of elements of ONNX Runtime's Range is used.
    start, end, step = (g.cast(bound, np.float64) for bound in bounds)
    zero_step = g.constant(np.array(0.0))
    differences = [g.add("Sub", bound, bound) for bound in (start, end, step)]
    are_finite = g.add("Equal", g.add("Sum", *differences), zero_step)
    refused_or_step = g.add("Where", are_finite, step, zero_step)
    count = g.add("Squeeze", g.add("Shape", g.add("Range", start, end, refused_or_step)))
    zero, one = (g.constant(np.array(number)) for number in (0, 1))
    indices = g.cast(g.add("Range", zero, count, one), np.float64)
    return g.cast(g.add("Add", start, g.add("Mul", indices, step)), element_type.dtype)
