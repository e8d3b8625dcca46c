"""The spacing of floating-point numbers at 1 in a device's arithmetic."""

from __future__ import annotations

from dataclasses import replace

from crosschip.hal import Precision
from crosschip.ir import ElementType, TensorType

_EPSILONS = {
    ElementType.FLOAT64: 2.0**-52,
    ElementType.FLOAT32: 2.0**-23,
    ElementType.FLOAT16: 2.0**-10,
    ElementType.BFLOAT16: 2.0**-7,
}


def epsilon(element_type: ElementType) -> float:
    """Return the spacing of a floating-point type at 1."""
    return _EPSILONS[element_type]


def epsilon_of(type_: TensorType, precision: Precision = Precision.FLOAT32) -> float:
    """Return the spacing at 1 in the arithmetic that computes a tensor; 0 if it is not of floats.

    Args:
        type_: the type of the tensor.
        precision: the arithmetic for float32.
    """
    return _EPSILONS.get(arithmetic_type(type_, precision).element_type, 0.0)


def arithmetic_type(output: TensorType, precision: Precision) -> TensorType:
    """Return an output's type with the element type of the arithmetic."""
    if output.element_type is not ElementType.FLOAT32:
        return output
    return replace(output, element_type=ElementType(precision.value))
