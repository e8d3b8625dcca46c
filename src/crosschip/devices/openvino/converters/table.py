"""The converter table, and the helpers that several converters share."""

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

# Quirks `float64-as-float32`, `int64-in-32-bits`.
FLOAT_TYPES = FLOATS - {ElementType.FLOAT64}
MOVABLE = FLOAT_TYPES | (INTEGERS - {ElementType.UINT64}) | BOOLEANS
# Quirks `sum-of-bytes`, `uint32-as-int32`.
INTEGER_TYPES = INDICES | {ElementType.INT16, ElementType.UINT16}
NUMBERS = FLOAT_TYPES | INTEGER_TYPES
SINGLE = {ElementType.FLOAT32}
INDEXED = SINGLE | {ElementType.INT32, ElementType.INT64}
EXACT = 24
"""The bits of the integers that float32 holds exactly."""
converters = Converters[Graph, Value](FLOAT_TYPES, device="openvino")
converts = converters.converts


def _raise_unlowered(_: Graph, op: Operator) -> Node:
    raise AssertionError(f"a pass replaces {op.type}")


def accepts(*operators: type[Operator], **rules: Any) -> None:
    """Register the rules of operators that passes replace before conversion."""
    converts(*operators, **rules)(_raise_unlowered)


def same(function: Callable[..., Node]) -> Callable[[Graph, Operator], Node]:
    """Return a converter to an OpenVINO operation with the same operands and no attributes."""

    def convert(g: Graph, op: Operator) -> Node:
        return function(*(g[o] for slot, o in op.filled() if not slot.parameter))

    return convert


def rank_of(operand: Operand) -> int:
    """Return an operand's rank, which `supports` has checked to be known."""
    assert operand.type.shape is not None, "supports() asks for a known rank"
    return len(operand.type.shape)


def check_uint32(op: Operator) -> Refusal | None:
    """Refuse uint32 constants of 2 ** 31 or more (quirk `uint32-as-int32`)."""
    for slot, operand in op.filled():
        if not slot.parameter and operand.type.element_type is ElementType.UINT32:
            value = operand.value
            if value is not None and value.size and value.max() > INT32[1]:
                return Refusal(slot.name, "a constant of uint32 from 2 ** 31 on becomes less")
    return None


def is_exact(constant: Array | None) -> bool:
    """Return whether float32 holds all elements of a constant of integers."""
    return constant is None or bool(
        (constant.astype(np.float32).astype(np.int64) == constant).all()
    )


def exact_quotient(a: Value, b: Value) -> Node:
    """Divide with correct rounding; the node's mark prevents quirk `quotient-by-constant`."""
    quotient = ops.divide(a, b)
    quotient.get_rt_info()["nonconvertable_divide_0"] = True
    return quotient


_NUMBER = "crosschip_never_nan"


def mark_never_nan(value: Node) -> Node:
    """Mark a value as never NaN."""
    value.get_rt_info()[_NUMBER] = True
    return value


def keep_nan(value: Value, result: Node) -> Node:
    """Replace a result by NaN where the operand is NaN, unless it is marked as never NaN.

    OpenVINO fuses the comparison of a value with itself into the surrounding kernel, but not IsNaN.
    """
    if isinstance(value, Node) and _NUMBER in value.get_rt_info():
        return result
    return ops.select(ops.not_equal(value, value), value, result)


_WHOLE = "crosschip_whole_number"


def stored(value: Node, type: str | Type) -> Node:
    """Convert whole numbers in the range of an integer type to that type."""
    result = ops.convert(value, type)
    result.get_rt_info()[_WHOLE] = True
    return result


def whole(value: Value) -> Value:
    """Convert small integers to float32; of a `stored` value, return the float32 value before."""
    if isinstance(value, Node) and _WHOLE in value.get_rt_info():
        return value.input_value(0)
    return ops.convert(value, "f32")


def check_static_empty(op: Operator) -> Refusal | None:
    """Refuse statically empty tensors, on which OpenVINO's constant folding crashes or errs."""
    tensors = [operand for slot, operand in op.filled() if not slot.parameter]
    is_empty = any(0 in (operand.type.shape or ()) for operand in (*tensors, *op.outputs))
    return Refusal("input", "is empty, or the output is") if is_empty else None


def check_empty(op: Operator) -> Refusal | None:
    """Refuse statically empty tensors and large uint32 constants."""
    return check_static_empty(op) or check_uint32(op)


def check_boxes(slot: str, boxes: Operand) -> Refusal | None:
    """Refuse boxes unless their last axis is known to have size 4."""
    is_known = boxes.type.shape is not None and boxes.type.shape[-1] == 4
    return (
        None if is_known else Refusal(slot, "the size of its last axis must be known", Rule.SHAPE)
    )
