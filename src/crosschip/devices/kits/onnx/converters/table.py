"""The table of ONNX converters, and their helpers."""

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


def _never_converted(_: Graph, op: Operator) -> str:
    raise AssertionError(f"a pass replaces {op.type}")


def accepts(*operators: type[Operator], **rules: Any) -> None:
    """Register the rules of operators that passes replace before conversion."""
    converts(*operators, **rules)(_never_converted)


def same(node: str, *attributes: str) -> Callable[[Graph, Operator], str]:
    """Return the converter to an ONNX operator with the same operands, results and attributes."""

    def convert(g: Graph, op: Operator) -> str:
        operands = [g[o] for slot, o in op.filled() if not slot.parameter]
        return g.add(node, *operands, **{name: getattr(op, name) for name in attributes})

    return convert


def refused_unless(g: Graph, holds: str, value: str, shape: str) -> str:
    """Return a value in a shape; fail the run unless a condition holds.

    The run fails by a Reshape to a negative size.

    Args:
        g: the graph.
        holds: the condition: one boolean, or one per size.
        value: the value.
        shape: the shape, of at least one size.
    """
    return g.add("Reshape", value, g.add("Where", holds, shape, g.int64([-2])))


def rank_of(operand: Operand) -> int:
    """Return an operand's rank, which a limit requires to be known."""
    assert operand.type.shape is not None, "a limit requires it"
    return len(operand.type.shape)


def needs_rank(slot: str, operand: Operand) -> Refusal | None:
    """Return the refusal of an operand with unknown rank, else `None`."""
    return (
        Refusal(slot, "its rank must be known", Rule.SHAPE) if operand.type.shape is None else None
    )


def ordered(g: Graph, operand: Operand, *, greatest: bool) -> str:
    """Return a value that orders like an operand, with NaN as the greatest or least element.

    ONNX Runtime orders NaN arbitrarily (quirks `place-of-nan`, `order-of-nan`). So NaN becomes an
    infinity and infinities become the largest finite number. All numbers are halved first, to make
    room for infinities; only the smallest numbers lose a bit.
    """
    element_type = operand.type.element_type
    if element_type not in FLOAT_TYPES or not g.workarounds:
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
