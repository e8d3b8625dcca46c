"""Operations that have a form in TensorFlow Lite, but that LiteRT computes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from crosschip.hal import Refusal, Rule
from crosschip.ir import Arithmetic, ElementType, Operation, Quantization
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.arithmetic import Add, Div, FloorDiv, Max, Min, Mul, Pow, Sub
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.indexing import ScatterElements
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.rearranging import ReverseSequence
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean, ReduceMin, ReduceSum
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Exp, Log, Rsqrt

_MAX_RANK = 6
"""The largest rank of XNNPACK's tensors."""

EXCEEDED = frozenset(range(25)) - {3, 4, 9}
"""The pixels of a window for which XNNPACK has no kernel of its own."""

_MIDDLE = 128
"""The zero point of uint8 for which that of int8 is 0."""

_EXACT = (Max, MaxPool2D, Min, Pad, Relu, Relu6)
"""Operators that round nothing if their tensors have one quantization."""


def refusal(operation: Operation) -> Refusal | None:
    """Return why LiteRT computes an operation wrong, or `None`."""
    if not isinstance(operation, Operator):
        return None
    limit = _LIMITS.get(type(operation))
    return exact_halves(operation) or (None if limit is None else limit(operation))


def exact_halves(op: Operator) -> Refusal | None:
    """Refuse integers whose products are exact: halves are rounded up (quirk `halves`).

    If a scale is no power of 2, results may be a step off.
    """
    if op.moves_integers or not op.quantized_inputs():
        return None
    known = list(_quantizations(op))
    output = op.outputs[0].type.quantization
    if output is None or output.arithmetic is Arithmetic.FIXED_POINT:
        return None
    if isinstance(op, _EXACT) and len(set(known)) == 1:
        return None
    scales = np.concatenate([each.scale for each in known])
    if np.all(np.frexp(scales)[0] == 0.5):
        return Refusal(
            "output",
            "has only scales of powers of 2, and halves would be rounded up",
            Rule.QUANTIZATION,
        )
    return None


def _quantizations(op: Operator) -> Iterator[Quantization]:
    """Yield the quantizations of tensors, without that of a bias, which follows from the others."""
    tensors = [operand for slot, operand in op.filled() if slot.name != "bias"]
    for operand in (*tensors, *op.outputs):
        if operand.type.quantization is not None:
            yield operand.type.quantization


def constant_weights(op: Conv2D | Conv2DTranspose | FullyConnected) -> Refusal | None:
    """Refuse weights of a run, with which infinities are clamped (quirk `weights-of-a-run`)."""
    for slot in ("filter", "weight", "bias"):
        operand = op.operand(slot)
        if operand is not None and not operand.is_constant:
            detail = "is computed at run time, and infinities would be clamped"
            return Refusal(slot, detail, Rule.COMPUTED)
    return _unsigned_weights(op)


def _unsigned_weights(op: Conv2D | Conv2DTranspose | FullyConnected) -> Refusal | None:
    """Refuse uint8 whose reals no int8 has with a zero point of 0, as `SignedBytes` replaces it."""
    weight = op.weight if isinstance(op, FullyConnected) else op.filter
    quantization, output = weight.type.quantization, op.outputs[0].type.quantization
    is_unsigned = weight.type.element_type is ElementType.UINT8 and quantization is not None
    if not is_unsigned or (output and output.arithmetic is Arithmetic.FIXED_POINT):
        return None
    if quantization is None or set(quantization.zero_point) == {_MIDDLE}:
        return None
    slot = "weight" if isinstance(op, FullyConnected) else "filter"
    return Refusal(slot, f"of uint8 must have a zero point of {_MIDDLE}", Rule.QUANTIZATION)


def mean_of_windows(op: AveragePool2D) -> Refusal | None:
    """Refuse what LiteRT averages wrong.

    Quirk `window-beyond-the-image`; and `average-of-nan`, whose two means leave no place for a
    fused activation.
    """
    if op.input.type.quantization is not None:
        return None
    if op.fused is not Fuse.NONE:
        return Refusal("fuse_code", f"{op.fused.name} is computed after two means", Rule.FUSION)
    image = (op.input.type.static_shape or ())[2:]
    is_larger = any(k > size for k, size in zip(op.kernel_shape or (), image, strict=False))
    if is_larger and max(op.windows.strides) > 1:
        return Refusal("kernel_shape", "is larger than the image, with strides", Rule.SHAPE)
    return None


def transposed_convolution(op: Conv2DTranspose) -> Refusal | None:
    """Refuse dilated filters, whose zeros between the weights make NaN of infinities."""
    if op.input.type.quantization is None and max(op.dilations) > 1:
        return Refusal("dilations", "are zeros in the filter, which make NaN of infinities")
    return constant_weights(op)


def convolution(op: Conv2D) -> Refusal | None:
    """Refuse windows of a channel that reach beyond themselves (quirk `nan-beside-the-window`).

    XNNPACK has kernels for 3, 4, 9 and 25 pixels, and adds up what is more. In a kernel for more
    pixels than a window has, others are multiplied with 0.
    """
    out, per_group, *window = op.filter.type.static_shape or ()
    is_exceeded = (out, per_group) == (op.group, 1) and prod(window) in EXCEEDED
    if is_exceeded and op.input.type.quantization is None and not scales_channels(op):
        return Refusal("filter", f"of {prod(window)} pixels for each channel reads NaN beside them")
    return constant_weights(op)


def scales_channels(op: Conv2D) -> bool:
    """Return whether a convolution multiplies each channel of reals by one number."""
    is_plain = op.input.type.quantization is None and op.filter.type.shape == (op.group, 1, 1, 1)
    return is_plain and set(op.strides) == {1} and not any(op.pads)


def few_axes(op: Operator) -> Refusal | None:
    """Refuse tensors of more axes than XNNPACK has (quirk `infinity-of-seven-axes`)."""
    for slot, operand in (*op.named_inputs(), *(("output", o) for o in op.outputs)):
        rank = len(operand.type.shape or ())
        if operand.type.element_type is ElementType.FLOAT32 and rank > _MAX_RANK:
            return Refusal(slot, f"has {rank} axes, XNNPACK at most {_MAX_RANK}", Rule.SHAPE)
    return None


def several_powers(op: Pow) -> Refusal | None:
    """Refuse a single power, which cannot be repeated (quirk `power-of-infinity`)."""
    if prod(op.outputs[0].type.static_shape or ()) == 1:
        return Refusal("input0", "has one element, and infinity would be clamped", Rule.SHAPE)
    return None


def known_divisor(op: FloorDiv) -> Refusal | None:
    """Refuse divisors that may be 0 (quirk `floor-of-division-by-zero`)."""
    if op.input1.value is None or not op.input1.value.all():
        return Refusal("input1", "may be 0, which fails")
    return None


def no_words(op: Exp | Log) -> Refusal | None:
    """Refuse int16, of which a table is interpolated (quirk `table-of-int16`)."""
    if op.input.type.element_type is ElementType.INT16:
        return Refusal("input", "of int16 is interpolated in a coarse table", Rule.QUANTIZATION)
    return None


def no_integers(op: Rsqrt) -> Refusal | None:
    """Refuse integers, of which a negative one fails (quirk `rsqrt-of-negative-integers`)."""
    if op.input.type.quantization is not None:
        return Refusal("input", "is quantized, and fails if it is negative", Rule.QUANTIZATION)
    return None


def has_axes(op: Slice) -> Refusal | None:
    """Refuse a slice of a scalar, which XNNPACK does not prepare (quirk `slice-of-a-scalar`)."""
    return None if op.input.type.shape else Refusal("input", "is a scalar", Rule.SHAPE)


def known_lengths(op: ReverseSequence) -> Refusal | None:
    """Refuse lengths of a run, which are not checked (quirk `lengths-out-of-range`)."""
    lengths, shape = op.lengths.value, op.input.type.static_shape or ()
    if lengths is None:
        return Refusal("lengths", "is computed at run time, and not checked", Rule.COMPUTED)
    size = shape[op.time_axis % len(shape)]
    if lengths.min(initial=0) < 0 or lengths.max(initial=0) > size:
        return Refusal("lengths", f"is not from 0 to {size}")
    return None


def checked_indices(op: ScatterElements) -> Refusal | None:
    """Refuse indices of a run, which the file does not read (see the converter)."""
    if op.indices.value is None:
        return Refusal("indices", "are computed at run time, and not checked", Rule.COMPUTED)
    size = (op.input.type.static_shape or (0,))[op.axis]
    if np.any((op.indices.value < -size) | (op.indices.value >= size)):
        return Refusal("indices", f"are not below {size}")
    return None


_LIMITS: Mapping[type[Operator], Callable[[Any], Refusal | None]] = {
    AveragePool2D: mean_of_windows,
    **dict.fromkeys((Add, Div, Mul, Sub, ReduceMax, ReduceMean, ReduceMin, ReduceSum), few_axes),
    Pow: several_powers,
    Conv2D: convolution,
    Conv2DTranspose: transposed_convolution,
    FullyConnected: constant_weights,
    FloorDiv: known_divisor,
    **dict.fromkeys((Exp, Log), no_words),
    ReverseSequence: known_lengths,
    ScatterElements: checked_indices,
    Rsqrt: no_integers,
    Slice: has_axes,
}
