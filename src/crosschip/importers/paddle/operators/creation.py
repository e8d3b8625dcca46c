"""Operators that make a tensor from a description of it."""

from __future__ import annotations

import math

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.importers.paddle.values import MAX_ELEMENTS
from crosschip.ir import ElementType, ModelError, Operand
from crosschip.ir.types import INTEGERS
from crosschip.ops.conversion import Cast
from crosschip.ops.creation import Fill
from crosschip.ops.layout import ShapeOf

Number = int | float

_INTEGERS = range(-(2**63), 2**64)


@imports("fill_constant")
def fill_constant(op: Context) -> None:
    element_type = op.element_type("dtype") or ElementType.FLOAT32
    shape = op.integers_or_tensor("shape", "ShapeTensor", "ShapeTensorList")
    tensor = op.optional_input("ValueTensor")
    if tensor is not None:
        is_such = tensor.type.element_type is element_type
        op.make(Fill, shape, tensor if is_such else op.add(Cast, tensor, element_type))
    else:
        fill(op, shape, _number(op), element_type)


def _number(op: Context) -> Number:
    """The value; a text has it where float32 could not hold it."""
    written = op.text("str_value", "")
    if not written:
        return op.real("value")
    try:
        number = int(written) if written.lstrip("-").isdecimal() else float(written)
    except ValueError:
        raise ModelError(f"str_value: {written!r} is not a number") from None
    if isinstance(number, int) and number not in _INTEGERS:
        raise ModelError(f"str_value: {written} is out of the range of integers")
    return number


@imports("full_int_array")
def full_int_array(op: Context) -> None:
    element_type = op.element_type("dtype") or ElementType.INT64
    op.make_constant(np.array(op.integers("value"), element_type.dtype))


@imports("fill_any_like")
def fill_any_like(op: Context) -> None:
    x = op.input()
    element_type = op.element_type("dtype") or x.type.element_type
    shape = x.type.static_shape
    target = op.add(ShapeOf, x) if shape is None else shape
    fill(op, target, op.real("value"), element_type)


def fill(
    op: Context, shape: tuple[int, ...] | Operand, value: Number, element_type: ElementType
) -> None:
    """Make a tensor of one value; a short one is a constant."""
    if element_type in INTEGERS and not math.isfinite(value):
        raise ModelError(f"value: {value} is not a value of {element_type}")
    element = np.asarray(value).astype(element_type.dtype)
    if isinstance(shape, tuple) and _is_short(shape):
        op.make_constant(np.full(shape, element))
    else:
        op.make(Fill, shape, element)


def _is_short(shape: tuple[int, ...]) -> bool:
    return all(size >= 0 for size in shape) and math.prod(shape) <= MAX_ELEMENTS
