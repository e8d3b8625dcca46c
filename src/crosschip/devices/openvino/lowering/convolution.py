"""Convolutions in forms that OpenVINO computes correctly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, ElementType, Model, Operand, Operation
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv, Conv2D
from crosschip.ops.standard.integers import ConvInteger
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.slicing import Slice
from crosschip.passes.rewrite_operations import rebuild


def in_float32(b: Builder, op: Operator) -> Sequence[Operand] | None:
    """Compute a convolution of bfloat16 in float32.

    In bfloat16, OpenVINO (2026.4, with AVX-512) reads padding from beyond small images, and an
    infinity makes neighbouring results NaN.
    """
    if op.outputs[0].type.element_type is not ElementType.BFLOAT16:
        return None
    inputs = {
        slot.name: b.add(Cast, operand, ElementType.FLOAT32)
        for slot, operand in op.filled()
        if operand.type.element_type is ElementType.BFLOAT16
    }
    return (b.add(Cast, rebuild(b, op, **inputs), ElementType.BFLOAT16),)


def without_strided_padding(b: Builder, op: Conv) -> Sequence[Operand] | None:
    """Convolve without strides, and slice the result (quirk `strides-over-padding`)."""
    if not strides_over_padding(op):
        return None
    rank = op.spatial_rank
    result = rebuild(b, op, strides=(1,) * rank)
    ends = [np.iinfo(np.int32).max] * rank
    return (b.add(Slice, result, range(2, 2 + rank), (0,) * rank, ends, op.strides),)


def strides_over_padding(op: Conv | ConvInteger) -> bool:
    """Return whether OpenVINO would apply the strides before it pads the image.

    Quirk `strides-over-padding`.
    """
    kernel = (op.filter.type.shape or ())[2:]
    return set(kernel) == {1} and max(op.strides) > 1 and any(op.pads)


def filter_itself(b: Builder, op: Dequantize) -> Sequence[Operand]:
    """Dequantize a constant filter before compilation (quirk `strides-of-pixels`)."""
    assert op.input.value is not None
    return (b.constant(op.kernel()([op.input.value])[0]),)


def filters_of_pixels(model: Model) -> frozenset[Operation]:
    """Return the dequantizations of filters of one pixel that OpenVINO would multiply wrongly.

    If the image is dequantized as well, OpenVINO convolves integers, and right.
    """
    dequantized: dict[Operand | None, Operation] = {}
    filters = set()
    for operation in model.operations:
        moved = getattr(operation, "moves", False) and operation.inputs[0] in dequantized
        if moved or isinstance(operation, Dequantize):
            dequantized[operation.outputs[0]] = operation
        elif isinstance(operation, Conv2D) and operation.input not in dequantized:
            shape = operation.filter.type.shape or ()
            if shape[2:] == (1, 1) and (max(operation.strides) > 1 or any(operation.pads)):
                filters.add(dequantized.get(operation.filter))
    return frozenset(
        operation
        for operation in filters
        if isinstance(operation, Dequantize) and operation.input.value is not None
    )


def without_lone_column(b: Builder, op: Conv) -> Sequence[Operand] | None:
    """Add a second channel of zeros (quirk `lone-column`)."""
    if op.group > 1 or not reads_lone_column(op):
        return None
    pads = (0, 0, 0, 1, *(0, 0) * op.spatial_rank)
    image, filters = (b.add(Pad, o, pads) for o in (op.input, op.filter))
    return (rebuild(b, op, input=image, filter=filters),)


def reads_lone_column(op: Conv | ConvInteger) -> bool:
    """Return whether OpenVINO would read the image with the wrong stride.

    Quirk `lone-column`.
    """
    _, channels, *_, width = op.filter.type.static_shape or ()
    *down, across = op.strides
    strided = max(down, default=1) == 1 and across > 1 and op.dilations[-1] == 1 and width > 1
    columns = (op.outputs[0].type.shape or ())[-1]
    return channels == 1 and strided and (columns == 1 or not isinstance(columns, int))
