"""The table that the converters register in, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.devices.onnxruntime.graph import Graph
from crosschip.hal import Converters, Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import BOOLEANS, FLOATS, INTEGERS
from crosschip.ops.definition.operator import Operator

FLOAT_TYPES = FLOATS - {ElementType.BFLOAT16}
NARROW_FLOATS = FLOAT_TYPES - {ElementType.FLOAT64}
MOVABLE = FLOAT_TYPES | INTEGERS | BOOLEANS
SINGLE = {ElementType.FLOAT32}
INDEXED = SINGLE | {ElementType.INT32, ElementType.INT64}
converters = Converters[Graph, str](FLOAT_TYPES)
converts = converters.converts


def same(node: str) -> Callable[[Graph, Operator], str]:
    """The converter to an ONNX operator that takes the same tensors, and does the same."""

    def convert(g: Graph, op: Operator) -> str:
        return g.add(node, *(g[o] for slot, o in op.filled() if not slot.parameter))

    return convert


def rank_of(operand: Operand) -> int:
    """How many axes an operand has, where a limit has seen to it that this is known."""
    assert operand.type.shape is not None, "supports() asks for a known rank"
    return len(operand.type.shape)


def needs_rank(slot: str, operand: Operand) -> Refusal | None:
    """The rule that a converter which must know a rank states."""
    return (
        Refusal(slot, "its rank must be known", Rule.SHAPE) if operand.type.shape is None else None
    )
