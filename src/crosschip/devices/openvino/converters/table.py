"""The table that the converters register in, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from openvino import Node, Type
from openvino import opset15 as ops

from crosschip.devices.openvino.graph import Graph, Value
from crosschip.devices.openvino.requirements import INT32
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
EXACT = 24
"""The bits of the integers that float32 holds, in which some integers are computed."""
converters = Converters[Graph, Value](FLOAT_TYPES, device="openvino")
converts = converters.converts


def _replaced(_: Graph, op: Operator) -> Node:
    raise AssertionError(f"a pass replaces {op.type}")


def accepts(*operators: type[Operator], **rules: Any) -> None:
    """Register the rules of operators that passes replace before anything is converted."""
    converts(*operators, **rules)(_replaced)


def same(function: Callable[..., Node]) -> Callable[[Graph, Operator], Node]:
    """The converter to an OpenVINO operator that takes the same tensors, and does the same."""

    def convert(g: Graph, op: Operator) -> Node:
        return function(*(g[o] for slot, o in op.filled() if not slot.parameter))

    return convert


def rank_of(operand: Operand) -> int:
    """The number of an operand's axes; `supports` has seen to it that this is known."""
    assert operand.type.shape is not None, "supports() asks for a known rank"
    return len(operand.type.shape)


def near(op: Operator) -> Refusal | None:
    """The rule for uint32, which is taken for int32: constants of it must be less than 2 ** 31."""
    for slot, operand in op.filled():
        if not slot.parameter and operand.type.element_type is ElementType.UINT32:
            value = operand.value
            if value is not None and value.size and value.max() > INT32[1]:
                return Refusal(slot.name, "a constant of uint32 from 2 ** 31 on becomes less")
    return None


def is_exact(constant: Array | None) -> bool:
    """Tell whether integers are such as float32 holds, in which OpenVINO keeps some constants."""
    return constant is None or bool(
        (constant.astype(np.float32).astype(np.int64) == constant).all()
    )


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
    """A result, with NaN wherever the value that it is made of is NaN, which OpenVINO loses.

    That NaN is unequal to itself is computed in one kernel with what is around it, IsNaN is not.
    """
    if isinstance(value, Node) and _NUMBER in value.get_rt_info():
        return result
    return ops.select(ops.not_equal(value, value), value, result)


_WHOLE = "crosschip_whole_number"


def stored(value: Node, type: str | Type) -> Node:
    """Whole numbers that are in the range of an integer type, in that type."""
    result = ops.convert(value, type)
    result.get_rt_info()[_WHOLE] = True
    return result


def whole(value: Value) -> Value:
    """Integers of few bits in float32; where they were `stored`, as they were before."""
    if isinstance(value, Node) and _WHOLE in value.get_rt_info():
        return value.input_value(0)
    return ops.convert(value, "f32")


def known_empty(op: Operator) -> Refusal | None:
    """OpenVINO crashes, or makes something of nothing, where it knows as it compiles."""
    tensors = [operand for slot, operand in op.filled() if not slot.parameter]
    is_empty = any(0 in (operand.type.shape or ()) for operand in (*tensors, *op.outputs))
    return Refusal("input", "is empty, or the output is") if is_empty else None


def never_empty(op: Operator) -> Refusal | None:
    """The rule for what must have elements."""
    return known_empty(op) or near(op)


def fours(slot: str, boxes: Operand) -> Refusal | None:
    """The rule for boxes: their last axis is known to have four numbers."""
    known = boxes.type.shape is not None and boxes.type.shape[-1] == 4
    return None if known else Refusal(slot, "the size of its last axis must be known", Rule.SHAPE)
