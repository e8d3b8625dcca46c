"""Bytes between the operations of a quantized model, and NaN before quantization.

OpenVINO computes an operation on bytes if it lies between a dequantization and a `FakeQuantize`.
The converters choose the form of quantization by `quantized_intermediates` and
`dequantized_addends`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Model, Operand, Operation, Quantization
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.kinds import Broadcast, Layout
from crosschip.ops.standard.arithmetic import Add, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import IsNaN
from crosschip.passes.rewrite_operations import rebuild

_BYTES = {ElementType.INT8, ElementType.UINT8}
_HUGE = 2.0**64
"""The magnitude from which addends are masks."""
_MASKING = (Broadcast, Layout, Slice, Where)
"""Operators that read masks."""


def nan_as_least(b: Builder, op: Quantize) -> Sequence[Operand]:
    """Quantize the least number in place of NaN (quirk `byte-of-nan`)."""
    reals = op.input
    if reals.type.element_type is not ElementType.FLOAT32:
        reals = b.add(Cast, reals, ElementType.FLOAT32)
    least, _ = ends_of(op.outputs[0])
    return (rebuild(b, op, input=b.add(Where, b.add(IsNaN, reals), least, reals)),)


def quantizes_nan(model: Model) -> frozenset[Operation]:
    """Return the quantizations between operations on bytes that may read NaN.

    Quirk `byte-of-nan`.
    """
    candidates = maybe_nan(model)
    intermediates = quantized_intermediates(model) if candidates else frozenset()
    return frozenset(
        operation
        for operation in model.operations
        if isinstance(operation, Quantize)
        and operation.input in candidates
        and operation.outputs[0] in intermediates
        and has_byte_form(operation.outputs[0])
    )


def has_byte_form(quantized: Operand) -> bool:
    """Return whether a quantization can be a `FakeQuantize` to bytes: finite, increasing ends."""
    if quantized.type.element_type not in _BYTES:
        return False
    ends = ends_of(quantized)
    return bool(np.all(np.isfinite(ends)) and np.all(np.diff(ends, axis=0) > 0))


def ends_of(quantized: Operand) -> tuple[Array, Array]:
    """Return the floats of the least and the greatest integer, shaped for the quantization axis."""
    quantization = quantization_of(quantized)
    limits = np.iinfo(quantized.type.element_type.dtype)
    with np.errstate(over="ignore"):
        least, greatest = (
            np.array(end - np.array(quantization.zero_point), np.float32)
            * np.array(quantization.scale, np.float32)
            for end in (limits.min, limits.max)
        )
    float32 = np.dtype(np.float32)
    return (
        along_axis(quantized, least.tolist(), float32),
        along_axis(quantized, greatest.tolist(), float32),
    )


def quantized_intermediates(model: Model) -> frozenset[Operand]:
    """Return the quantized operands that only dequantizations read, directly or after moves."""
    read = {operand for operation in model.operations for operand in operation.inputs}
    dequantized: set[Operand | None] = set()
    bare: set[Operand | None] = set(model.outputs.values())
    for operation in model.operations:
        if isinstance(operation, Dequantize):
            (bare if read.isdisjoint(operation.outputs) else dequantized).add(operation.input)
        elif not getattr(operation, "moves", False):
            bare.update(operation.inputs)
    return frozenset(operand for operand in dequantized - bare if operand is not None)


def dequantized_addends(model: Model) -> frozenset[Operand]:
    """Return the dequantized operands that are only added to other floats.

    OpenVINO would divide the other floats by the scale and add them to the bytes, which overflows
    for masks. It does not do so with int32. Quirk `mask-on-bytes`.
    """
    dequantized: set[Operand | None] = set()
    for operation in model.operations:
        moved = getattr(operation, "moves", False) and operation.inputs[0] in dequantized
        if moved or isinstance(operation, Dequantize):
            dequantized.update(operation.outputs)
    other_uses: set[Operand | None] = set(model.outputs.values())
    for operation in reversed(model.operations):
        if isinstance(operation, Add | Sub):
            terms = {operation.input0, operation.input1}
            if len(terms & dequantized) == 1 and not any(map(_is_bias, terms)):
                continue
        elif getattr(operation, "moves", False) and other_uses.isdisjoint(operation.outputs):
            continue
        other_uses.update(operation.inputs)
    results = {o for op in model.operations if isinstance(op, Dequantize) for o in op.outputs}
    return frozenset(results - other_uses)


def maybe_nan(model: Model) -> frozenset[Operand]:
    """Return the floats computed from infinities in the model, such as masks, which may be NaN."""
    results: set[Operand | None] = set()
    if not any(isinstance(operation, Quantize) for operation in model.operations):
        return frozenset()
    for operation in model.operations:
        is_masked = isinstance(operation, _MASKING) and any(map(_is_mask, operation.inputs))
        if isinstance(operation, Dequantize):
            is_masked = max(map(abs, quantization_of(operation.input).scale)) >= _HUGE
        if is_masked or not results.isdisjoint(operation.inputs):
            results.update(o for o in operation.outputs if o.type.element_type in FLOATS)
    return frozenset(operand for operand in results if operand is not None)


def _is_mask(operand: Operand | None) -> bool:
    """Return whether a constant of floats has huge, infinite or NaN elements."""
    if operand is None or operand.type.element_type not in FLOATS:
        return False
    value = operand.value
    return value is not None and not np.all(np.abs(value) < _HUGE)


def _is_bias(operand: Operand) -> bool:
    """Return whether a constant has only usual numbers."""
    value = operand.value
    return value is not None and bool(np.all(np.abs(value) < _HUGE))


def quantization_of(operand: Operand) -> Quantization:
    """Return the quantization of a quantized operand."""
    assert operand.type.quantization is not None, "inference has seen to it"
    return operand.type.quantization


def along_axis(operand: Operand, numbers: Sequence[float], dtype: np.dtype[Any]) -> Array:
    """Return numbers, shaped to broadcast along the quantization axis of an operand."""
    axis = quantization_of(operand).axis
    if axis is None:
        return np.array(numbers[0], dtype)
    rank = len(operand.type.shape or ())
    return np.array(numbers, dtype).reshape((-1,) + (1,) * (rank - 1 - axis % rank))
