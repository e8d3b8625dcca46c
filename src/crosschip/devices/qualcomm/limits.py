"""The departures of the chip, or of its compiler, from the operators' definitions."""

from __future__ import annotations

import numpy as np

from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand, Operation, Quantization
from crosschip.ir.types import INTEGERS
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard.activation import Sigmoid, Softmax, Softplus, Tanh
from crosschip.ops.standard.arithmetic import Clip, Pow
from crosschip.ops.standard.blocks import DepthToSpace, SpaceToDepth
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    ScatterElements,
    ScatterND,
)
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.searching import TopK

_INDEXED = (Gather, GatherElements, GatherND, ScatterElements, ScatterND)
_RESIZED = (ResizeCubic, ResizeLinear, ResizeNearest)


def limit(operation: Operation) -> Refusal | None:
    """The rule that an operation breaks, beside those of the compiler itself."""
    if isinstance(operation, _INDEXED):
        return _indices(operation)
    if isinstance(operation, _RESIZED):
        return _sizes(operation)
    if isinstance(operation, Softplus):
        return Refusal("", "is computed with an error of one percent", Rule.OPERATOR)
    if isinstance(operation, Clip) and _is_integer(operation.input):
        detail = "is of integers, which it fails to compile where the bounds leave one"
        return Refusal("input", detail, Rule.ELEMENT_TYPE)
    if isinstance(operation, TopK):
        return Refusal("", "of equal elements, any are taken", Rule.OPERATOR)
    if isinstance(operation, Sigmoid | Tanh):
        return _scale(operation)
    if isinstance(operation, Softmax):
        return _probabilities(operation)
    if isinstance(operation, DepthToSpace | SpaceToDepth):
        return _moved(operation)
    if isinstance(operation, Pow) and operation.outputs[0].type.quantization:
        return Refusal("output", "is quantized, which comes out wrong", Rule.QUANTIZATION)
    return None


def _is_integer(operand: Operand) -> bool:
    return operand.type.element_type in INTEGERS and operand.type.quantization is None


def _indices(
    op: Gather | GatherElements | GatherND | ScatterElements | ScatterND,
) -> Refusal | None:
    """Indices that count from the end, or are beyond it, are passed over in silence."""
    indices = op.indices.value
    if indices is None:
        return Refusal("indices", "must be known not to be negative, or too large", Rule.SHAPE)
    return Refusal("indices", "are negative") if (indices < 0).any() else None


def _sizes(op: ResizeCubic | ResizeLinear | ResizeNearest) -> Refusal | None:
    """The scale is taken to be that of the sizes, even where these have been rounded."""
    try:
        scales = op.scales or ()
    except ComputedParameter:
        return Refusal("scales", "must be known", Rule.COMPUTED)
    sizes = (op.input.type.static_shape or ())[2:]
    for size, scale in zip(sizes, scales, strict=False):
        if not (size * scale).is_integer():
            return Refusal("scales", f"{scale:g} of {size} pixels is no whole number")
    return None


def _scale(op: Sigmoid | Tanh) -> Refusal | None:
    """Results of 16 bits get the scale that their range suggests, whatever the model says."""
    made = op.outputs[0].type
    wide = made.element_type in (ElementType.INT16, ElementType.UINT16)
    detail = f"{made.element_type} results are made with a scale of its own"
    return Refusal("output", detail, Rule.QUANTIZATION) if wide else None


def _probabilities(op: Softmax) -> Refusal | None:
    """They are made as if all of the type's range stood for 0 to 1, whatever the model says."""
    made = op.outputs[0].type
    if made.quantization is None:
        return None
    least = int(np.iinfo(made.element_type.dtype).min)
    scale = 0.5 ** (8 * made.element_type.dtype.itemsize)
    if made.quantization == Quantization((scale,), (least,)):
        return None
    detail = f"must be quantized with scale {scale:g} and zero point {least}"
    return Refusal("output", detail, Rule.QUANTIZATION)


def _moved(op: DepthToSpace | SpaceToDepth) -> Refusal | None:
    """Integers are moved as they are, even where the result is quantized otherwise."""
    if op.input.type.quantization == op.outputs[0].type.quantization:
        return None
    return Refusal("output", "must be quantized like the input", Rule.QUANTIZATION)
