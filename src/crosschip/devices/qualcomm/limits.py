"""Rules for operations that the chip or its compiler computes unlike their definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosschip.devices.kits.limits import two_spatial_axes
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand, Operation, Quantization
from crosschip.ir.types import FLOATS, INTEGERS
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.activation import Sigmoid, Softmax, Softplus, Tanh
from crosschip.ops.standard.arithmetic import Clip, Pow
from crosschip.ops.standard.blocks import DepthToSpace, SpaceToDepth
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    ScatterElements,
    ScatterND,
)
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.searching import TopK
from crosschip.ops.standard.unary import IsNaN

_INDEXED = (Gather, GatherElements, GatherND, ScatterElements, ScatterND)
_RESIZED = (ResizeCubic, ResizeLinear, ResizeNearest)
_REPEATING = (PadMode.EDGE, PadMode.REPLICATE)


def limit(operation: Operation) -> Refusal | None:
    """Return the rule that an operation breaks, in addition to the compiler's own."""
    if any(map(_is_nothing, [*operation.inputs, *operation.outputs])):
        return Refusal("", "has no elements, with which the compiler may die", Rule.SHAPE)
    refusal = two_spatial_axes(operation)
    if refusal is not None:
        return refusal
    if isinstance(operation, _INDEXED):
        return _indices(operation)
    if isinstance(operation, _RESIZED):
        return _sizes(operation) or _weights(operation)
    if isinstance(operation, AveragePool2D | MaxPool2D):
        return _windows(operation)
    if isinstance(operation, Cast):
        return _cast(operation)
    if isinstance(operation, Pad):
        return _padding(operation)
    if isinstance(operation, IsNaN):
        return Refusal("", "takes infinities for NaN", Rule.OPERATOR)
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


def _is_nothing(operand: Operand | None) -> bool:
    if operand is None or operand.is_constant:
        return False
    return 0 in (operand.type.shape or ())


def _is_real(operand: Operand) -> bool:
    return operand.type.element_type in FLOATS


def _is_integer(operand: Operand) -> bool:
    return operand.type.element_type in INTEGERS and operand.type.quantization is None


def _indices(
    op: Gather | GatherElements | GatherND | ScatterElements | ScatterND,
) -> Refusal | None:
    """Refuse indices that may be out of range or negative (quirk `index-from-the-end`)."""
    indices = op.indices.value
    if indices is None:
        return Refusal("indices", "must be known not to be negative, or too large", Rule.SHAPE)
    return Refusal("indices", "are negative") if (indices < 0).any() else None


def _sizes(op: ResizeCubic | ResizeLinear | ResizeNearest) -> Refusal | None:
    """Refuse scales whose output sizes are rounded: the compiler derives the scale from these."""
    try:
        scales = op.scales or ()
    except ComputedParameter:
        return Refusal("scales", "must be known", Rule.COMPUTED)
    sizes = (op.input.type.static_shape or ())[2:]
    for size, scale in zip(sizes, scales, strict=False):
        if not (size * scale).is_integer():
            return Refusal("scales", f"{scale:g} of {size} pixels is no whole number")
    return None


def _weights(op: ResizeCubic | ResizeLinear | ResizeNearest) -> Refusal | None:
    """Refuse `exclude_outside`, and output axes of one pixel that the compiler would centre."""
    if isinstance(op, ResizeNearest):
        return None
    if isinstance(op, ResizeCubic) and op.exclude_outside:
        return Refusal("exclude_outside", "is passed over")
    first = op.align_mode is AlignMode.PYTORCH_HALF_PIXEL and not op.align_corners
    if first and _is_real(op.input) and 1 in (op.outputs[0].type.shape or ())[2:]:
        return Refusal("align_mode", f"{op.align_mode.name} puts a single pixel in the middle")
    return None


def _windows(op: AveragePool2D | MaxPool2D) -> Refusal | None:
    """Refuse windows of which some read neither the image nor padding, for some sizes."""
    shape = op.input.type.static_shape
    if shape is None:
        return Refusal("input", "must be of a known size", Rule.SHAPE)
    windows, image = op.windows, shape[2:]
    sides = windows.sides(image)
    if windows.static_counts(image) != replace(windows, inside=False).static_counts(image):
        return Refusal("inside", "is passed over")
    if isinstance(op, AveragePool2D):
        if any(sides):
            return Refusal("pads", f"{list(sides)}, where means come out wrong")
        if any(windows.padding(image)):
            return Refusal("ceil_mode", "counts what is beyond the image")
    elif _is_real(op.input):
        if sides[::2] != sides[1::2]:
            return Refusal("pads", f"{list(sides)} are not the same before and after the image")
        for size, stride, pad in zip(op.kernel_shape, op.strides, sides[::2], strict=True):
            if pad and stride > 1 and size % 2 == 0:
                return Refusal("pads", f"{list(sides)} with an even window of {size}")
    return None


def _padding(op: Pad) -> Refusal | None:
    """Refuse padding with the edge (quirk `repeated-edge`)."""
    if op.mode in (PadMode.NONE, PadMode.CONSTANT):
        return None
    if op.mode in _REPEATING and _is_real(op.input):
        return Refusal("mode", f"{op.mode.name} leaves what the memory held before")
    return _moved(op)


def _cast(op: Cast) -> Refusal | None:
    """Refuse casts with other results (quirks `clipped-cast`, `truth-of-bytes`).

    256 becomes 255 as uint8, -1 becomes false, and 2 as uint8 becomes 1 in float32.
    """
    target, read = op.dtype, op.input.type.element_type
    if op.input.type.quantization is not None:
        detail = f"is quantized, and a step off is too far for {target}"
        return Refusal("input", detail, Rule.QUANTIZATION) if target not in FLOATS else None
    if target is ElementType.UINT8 and read in INTEGERS:
        return Refusal("dtype", f"{target} of {read} is clipped", Rule.ELEMENT_TYPE)
    if target is ElementType.BOOL and read in INTEGERS and read is not ElementType.UINT8:
        detail = f"{target} is false for {read} whose first bit is set"
        return Refusal("dtype", detail, Rule.ELEMENT_TYPE)
    if target is ElementType.FLOAT32 and read is ElementType.UINT8:
        return Refusal("input", f"{read} is taken for truth values", Rule.ELEMENT_TYPE)
    return None


def _scale(op: Sigmoid | Tanh) -> Refusal | None:
    """Refuse 16-bit results, for which the compiler chooses a scale and ignores the model's."""
    output_type = op.outputs[0].type
    wide = output_type.element_type in (ElementType.INT16, ElementType.UINT16)
    detail = f"{output_type.element_type} results are made with a scale of its own"
    return Refusal("output", detail, Rule.QUANTIZATION) if wide else None


def _probabilities(op: Softmax) -> Refusal | None:
    """Refuse results unless the range of their type represents 0 to 1, as the compiler assumes."""
    output_type = op.outputs[0].type
    if output_type.quantization is None:
        return None
    least = int(np.iinfo(output_type.element_type.dtype).min)
    scale = 0.5 ** (8 * output_type.element_type.dtype.itemsize)
    if output_type.quantization == Quantization((scale,), (least,)):
        return None
    detail = f"must be quantized with scale {scale:g} and zero point {least}"
    return Refusal("output", detail, Rule.QUANTIZATION)


def _moved(op: DepthToSpace | SpaceToDepth | Pad) -> Refusal | None:
    """Refuse results with another quantization than the input: the compiler copies the integers."""
    if op.input.type.quantization == op.outputs[0].type.quantization:
        return None
    return Refusal("output", "must be quantized like the input", Rule.QUANTIZATION)
