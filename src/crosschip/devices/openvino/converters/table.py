"""The table that the converters register in, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Converters, Refusal, Rule
from crosschip.ir import Array, ElementType, Operand
from crosschip.ir.types import BOOLEANS, FLOATS, INDICES, INTEGERS
from crosschip.ops.definition.operator import Operator

# The processor plug-in computes float64 in float32, and 64-bit integers in 32 bits.
FLOAT_TYPES = FLOATS - {ElementType.FLOAT64}
MOVABLE = FLOAT_TYPES | (INTEGERS - {ElementType.UINT64}) | BOOLEANS
# Arithmetic on 8 bits saturates, and uint32 is taken for int32.
INTEGER_TYPES = INDICES | {ElementType.INT16, ElementType.UINT16}
NUMBERS = FLOAT_TYPES | INTEGER_TYPES
SINGLE = {ElementType.FLOAT32}
INDEXED = SINGLE | {ElementType.INT32, ElementType.INT64}
converters = Converters[Graph, Value](FLOAT_TYPES, device="openvino")
converts = converters.converts


def same(function: Callable[..., Node]) -> Callable[[Graph, Operator], Node]:
    """The converter to an OpenVINO operator that takes the same tensors, and does the same."""

    def convert(g: Graph, op: Operator) -> Node:
        return function(*(g[o] for slot, o in op.filled() if not slot.parameter))

    return convert


def rank_of(operand: Operand) -> int:
    """The number of an operand's axes; `supports` has seen to it that this is known."""
    assert operand.type.shape is not None, "supports() asks for a known rank"
    return len(operand.type.shape)


def sizes_only(op: Operator, *, but: str = "") -> Refusal | None:
    """The rule for int64, which is computed in int32.

    Lists and single numbers of that type are sizes and indices, for which 32 bits do. Where they
    come from outside, `crosschip.devices.openvino.program` checks that they fit.

    Args:
        op: the operation that is asked about.
        but: a slot that only ever takes indices, whatever its shape.
    """
    inputs = [(slot.name, o) for slot, o in op.filled() if not slot.parameter and slot.name != but]
    for slot, operand in (*inputs, *(("output", output) for output in op.outputs)):
        if operand.type.element_type is ElementType.UINT32 and _is_far(operand):
            return Refusal(slot, "a constant of uint32 from 2 ** 31 on becomes less")
        if operand.type.element_type is ElementType.INT64:
            shape = operand.type.shape
            if shape is None or len(shape) > 1:
                return Refusal(
                    slot,
                    "int64 is computed in int32, which is for lists of sizes only",
                    Rule.COMPUTED,
                )
            if _is_far(operand):
                return Refusal(
                    slot,
                    "int64 is computed in int32, which does not hold its values",
                    Rule.COMPUTED,
                )
    return None


def _is_far(constant: Operand) -> bool:
    """Tell whether it is a constant with an integer that int32 does not hold."""
    return constant.value is not None and not fits_int32(constant.value)


def known_sizes(op: Operator) -> Refusal | None:
    """The rule for int64 where numbers that fit in int32 may become one that does not.

    What is known to be computed from shapes is taken; any other number may be the hash of a word.
    """
    for slot, operand in op.filled():
        is_wide = operand.type.element_type is ElementType.INT64 and not slot.parameter
        if is_wide and not operand.is_constant and operand.type.shape_value is None:
            detail = "int64 is computed in int32, which is for sizes of shapes only"
            return Refusal(slot.name, detail, Rule.COMPUTED)
    given = [operand for operand in op.inputs if operand is not None]
    is_wide = any(operand.type.element_type is ElementType.INT64 for operand in given)
    if is_wide and all(operand.is_constant for operand in given):
        return Refusal("output", "is constant, and may be beyond int32", Rule.COMPUTED)
    return sizes_only(op)


def exact_quotient(a: Value, b: Value) -> Node:
    """`a / b`, correctly rounded, where OpenVINO would multiply by the rounded inverse of `b`."""
    quotient = ops.divide(a, b)
    quotient.get_rt_info()["nonconvertable_divide_0"] = True
    return quotient


_NUMBER = "crosschip_never_nan"


def marked_number(value: Node) -> Node:
    """The value, no element of which is ever NaN."""
    value.get_rt_info()[_NUMBER] = True
    return value


def keeping_nan(value: Value, result: Node) -> Node:
    """A result, with NaN wherever the value that it is made of is NaN, which OpenVINO loses."""
    if isinstance(value, Node) and _NUMBER in value.get_rt_info():
        return result
    return ops.select(ops.is_nan(value), value, result)


def fits_int32(values: Array) -> bool:
    """Tell whether every integer is one that int32 holds."""
    limits = np.iinfo(np.int32)
    return not values.size or (limits.min <= values.min() and values.max() <= limits.max)


def known_empty(op: Operator) -> Refusal | None:
    """OpenVINO crashes, or makes something of nothing, where it knows as it compiles."""
    tensors = [operand for slot, operand in op.filled() if not slot.parameter]
    is_empty = any(0 in (operand.type.shape or ()) for operand in (*tensors, *op.outputs))
    return Refusal("input", "is empty, or the output is") if is_empty else None


def never_empty(op: Operator) -> Refusal | None:
    """The rule for what must have elements, and be no int64."""
    return known_empty(op) or sizes_only(op)


def fours(slot: str, boxes: Operand) -> Refusal | None:
    """The rule for boxes: their last axis is known to have four numbers."""
    known = boxes.type.shape is not None and boxes.type.shape[-1] == 4
    return None if known else Refusal(slot, "the size of its last axis must be known", Rule.SHAPE)
