"""Hybrid operators: weights are integers, activations are reals.

LiteRT rounds the activations to 8 bits before it multiplies, with a scale for each run. The same
reals come from rounding the activations to steps of that scale and multiplying in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.tflite.node import Node
from crosschip.ir import Builder, ElementType, Operand
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin
from crosschip.ops.standard.unary import Abs, Floor, Sign

_LEAST = np.float32(1e-30)
"""The least range that is divided by; smaller activations count as 0."""

_ALMOST_HALF = np.nextafter(np.float32(0.5), np.float32(0))
"""The sum with it rounds up to an integer from a half on, and from nothing below."""


def is_hybrid(input: Operand, weight: Operand) -> bool:
    """Return whether an operator multiplies reals by quantized weights."""
    return (
        input.type.element_type is ElementType.FLOAT32
        and input.type.quantization is None
        and weight.type.quantization is not None
    )


def round_activations(
    node: Node | Builder, input: Operand, axes: Sequence[int], asymmetric: bool = False
) -> Operand:
    """Round reals to 8 bits, with a scale for all elements along the axes.

    Args:
        node: receives the operations.
        input: the reals.
        axes: the axes along which the elements share a scale.
        asymmetric: whether the range is from the least to the greatest element instead of
            symmetric to 0.
    """
    if asymmetric:
        return _round_asymmetric(node, input, axes)
    largest = node.add(ReduceMax, node.add(Abs, input), tuple(axes))
    bound = node.add(Max, largest, _LEAST)
    steps = _round(node, node.add(Mul, input, node.add(Div, np.float32(127), bound)))
    return node.add(Mul, steps, node.add(Div, bound, np.float32(127)))


def _round_asymmetric(node: Node | Builder, input: Operand, axes: Sequence[int]) -> Operand:
    """Round reals to 256 steps, of which one is 0."""
    zero = np.float32(0)
    low = node.add(Min, node.add(ReduceMin, input, tuple(axes)), zero)
    high = node.add(Max, node.add(ReduceMax, input, tuple(axes)), zero)
    span = node.add(Max, node.add(Sub, high, low), _LEAST)
    scale = node.add(Div, span, np.float32(255))
    inverse = node.add(Div, np.float32(1), scale)
    lowest = node.add(Sub, np.float32(-128), node.add(Mul, low, inverse))
    offset = node.add(Clip, _round(node, lowest), -128.0, 127.0)
    steps = _round(node, node.add(Add, node.add(Mul, input, inverse), offset))
    centred = node.add(Sub, node.add(Clip, steps, -128.0, 127.0), offset)
    return node.add(Mul, centred, scale)


def _round(node: Node | Builder, real: Operand) -> Operand:
    """Round reals below 2**22 to the nearest integer, halves away from zero."""
    size = node.add(Floor, node.add(Add, node.add(Abs, real), _ALMOST_HALF))
    return node.add(Mul, node.add(Sign, real), size)
