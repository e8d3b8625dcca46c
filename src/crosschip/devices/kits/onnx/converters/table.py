"""The table that the converters register in, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Converters, Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import BOOLEANS, FLOATS, INTEGERS
from crosschip.ops.definition.operator import Operator

FLOAT_TYPES = FLOATS - {ElementType.BFLOAT16}
NARROW_FLOATS = FLOAT_TYPES - {ElementType.FLOAT64}
MOVABLE = FLOAT_TYPES | INTEGERS | BOOLEANS
SINGLE = {ElementType.FLOAT32}
INDEXED = SINGLE | {ElementType.INT32, ElementType.INT64}
converters = Converters[Graph, str](FLOAT_TYPES, device="onnxruntime")
converts = converters.converts


def _replaced(_: Graph, op: Operator) -> str:
    raise AssertionError(f"a pass replaces {op.type}")


def accepts(*operators: type[Operator], **rules: Any) -> None:
    """Register the rules of operators that passes replace before anything is converted."""
    converts(*operators, **rules)(_replaced)


def same(node: str) -> Callable[[Graph, Operator], str]:
    """The converter to an ONNX operator that takes the same tensors, and does the same."""

    def convert(g: Graph, op: Operator) -> str:
        return g.add(node, *(g[o] for slot, o in op.filled() if not slot.parameter))

    return convert


def refused_unless(g: Graph, holds: str, value: str, shape: str) -> str:
    """A value in the shape given, where a condition holds; else the run fails.

    There is no reshaping to a negative size.

    Args:
        g: the graph.
        holds: the name of booleans, one for all sizes or one a size.
        value: the name of the value.
        shape: the name of a shape with at least one size.
    """
    return g.add("Reshape", value, g.add("Where", holds, shape, g.int64([-2])))


def rank_of(operand: Operand) -> int:
    """The number of an operand's axes, where a limit has seen to it that this is known."""
    assert operand.type.shape is not None, "supports() asks for a known rank"
    return len(operand.type.shape)


def needs_rank(slot: str, operand: Operand) -> Refusal | None:
    """The rule that a converter which must know a rank states."""
    return (
        Refusal(slot, "its rank must be known", Rule.SHAPE) if operand.type.shape is None else None
    )


def ordered(g: Graph, operand: Operand, *, greatest: bool) -> str:
    """A value that orders as an operand does, where NaN is the greatest, or the least.

    ONNX Runtime puts a NaN anywhere, and with it other elements. So NaN becomes an infinity, and
    infinities the largest number, to make room for which all numbers are halved: only the very
    least lose a bit by that.
    """
    element_type = operand.type.element_type
    if element_type not in FLOAT_TYPES:
        return g[operand]
    value = g[operand]
    dtype = np.dtype(np.float32)
    if element_type is ElementType.FLOAT16:
        value = g.cast(value, dtype)
    else:
        dtype = element_type.dtype
    end, largest = (np.inf, np.finfo(dtype).max) if greatest else (-np.inf, np.finfo(dtype).min)
    halves = g.add("Mul", value, g.constant(np.array(0.5, dtype)))
    bounded = g.add("Min" if greatest else "Max", halves, g.constant(np.array(largest, dtype)))
    return g.add("Where", g.add("IsNaN", value), g.constant(np.array(end, dtype)), bounded)
