"""The spacing of floating-point numbers at 1, in the arithmetic that a device computes in."""

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
    """The spacing of a floating-point type at 1."""
    return _EPSILONS[element_type]


def epsilon_of(type_: TensorType, precision: Precision = Precision.FLOAT32) -> float:
    """The spacing at 1 in the arithmetic that makes a tensor; 0 if that is not of reals.

    Args:
        type_: of the tensor.
        precision: the arithmetic for float32.
    """
    return _EPSILONS.get(computed_in(type_, precision).element_type, 0.0)


def computed_in(output: TensorType, precision: Precision) -> TensorType:
    """An output's type as to how exact it is: that of the arithmetic, where this is narrower."""
    if output.element_type is not ElementType.FLOAT32:
        return output
    return replace(output, element_type=ElementType(precision.value))
