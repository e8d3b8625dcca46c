"""Bytes between the operations of a quantized model, and reals that are NaN before rounding.

OpenVINO computes an operation on bytes where it finds one between a dequantization and what it
knows as the quantization of its result (`FakeQuantize`). Two facts about operands decide on the
form in which the converters emit quantization: `quantized_intermediates`, `dequantized_addends`.
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
"""A number that nothing but a mask adds."""
_MASKING = (Broadcast, Layout, Slice, Where)
"""Operators that read masks."""


def nan_as_least(b: Builder, op: Quantize) -> Sequence[Operand]:
    """Quantize the least number in place of NaN.

    Of NaN, `FakeQuantize` of OpenVINO (2026.4) makes the least or the greatest integer, depending
    on whether sizes are known.
    """
    reals = op.input
    if reals.type.element_type is not ElementType.FLOAT32:
        reals = b.add(Cast, reals, ElementType.FLOAT32)
    least, _ = ends_of(op.outputs[0])
    return (rebuild(b, op, input=b.add(Where, b.add(IsNaN, reals), least, reals)),)


def quantizes_nan(model: Model) -> frozenset[Operation]:
    """The quantizations to bytes between operations that may read NaN.

    Quirk `byte-of-nan`.
    """
    unsure = maybe_nan(model)
    intermediates = quantized_intermediates(model) if unsure else frozenset()
    return frozenset(
        operation
        for operation in model.operations
        if isinstance(operation, Quantize)
        and operation.input in unsure
        and operation.outputs[0] in intermediates
        and has_byte_form(operation.outputs[0])
    )


def has_byte_form(quantized: Operand) -> bool:
    """Tell whether OpenVINO knows a quantization to a type, scale and zero point as one."""
    if quantized.type.element_type not in _BYTES:
        return False
    ends = ends_of(quantized)
    return bool(np.all(np.isfinite(ends)) and np.all(np.diff(ends, axis=0) > 0))


def ends_of(quantized: Operand) -> tuple[Array, Array]:
    """The reals that the least and the greatest integer stand for, in float32, along the axis."""
    known = quantization_of(quantized)
    limits = np.iinfo(quantized.type.element_type.dtype)
    with np.errstate(over="ignore"):
        least, greatest = (
            np.array(end - np.array(known.zero_point), np.float32)
            * np.array(known.scale, np.float32)
            for end in (limits.min, limits.max)
        )
    float32 = np.dtype(np.float32)
    return (
        along_axis(quantized, least.tolist(), float32),
        along_axis(quantized, greatest.tolist(), float32),
    )


def quantized_intermediates(model: Model) -> frozenset[Operand]:
    """The quantized operands that pass between operations which read what they stand for."""
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
    """The dequantized operands that are only added to other reals.

    Of bytes, OpenVINO would add the reals first, divided by the scale: too great for a float32
    where they are a mask. Of int32 it does not.

    Quirk `mask-on-bytes`.
    """
    dequantized: set[Operand | None] = set()
    for operation in model.operations:
        moved = getattr(operation, "moves", False) and operation.inputs[0] in dequantized
        if moved or isinstance(operation, Dequantize):
            dequantized.update(operation.outputs)
    otherwise: set[Operand | None] = set(model.outputs.values())
    for operation in reversed(model.operations):
        if isinstance(operation, Add | Sub):
            terms = {operation.input0, operation.input1}
            if len(terms & dequantized) == 1 and not any(map(_is_bias, terms)):
                continue
        elif getattr(operation, "moves", False) and otherwise.isdisjoint(operation.outputs):
            continue
        otherwise.update(operation.inputs)
    results = {o for op in model.operations if isinstance(op, Dequantize) for o in op.outputs}
    return frozenset(results - otherwise)


def maybe_nan(model: Model) -> frozenset[Operand]:
    """The reals made of infinities in the model, such as those of masks: some may be NaN."""
    unsure: set[Operand | None] = set()
    if not any(isinstance(operation, Quantize) for operation in model.operations):
        return frozenset()
    for operation in model.operations:
        is_masked = isinstance(operation, _MASKING) and any(map(_is_mask, operation.inputs))
        if isinstance(operation, Dequantize):
            is_masked = max(map(abs, quantization_of(operation.input).scale)) >= _HUGE
        if is_masked or not unsure.isdisjoint(operation.inputs):
            unsure.update(o for o in operation.outputs if o.type.element_type in FLOATS)
    return frozenset(operand for operand in unsure if operand is not None)


def _is_mask(operand: Operand | None) -> bool:
    """Tell of a constant of reals that it has elements which are infinite, NaN, or nearly so."""
    if operand is None or operand.type.element_type not in FLOATS:
        return False
    value = operand.value
    return value is not None and not np.all(np.abs(value) < _HUGE)


def _is_bias(operand: Operand) -> bool:
    """Tell of a constant that it is no mask."""
    value = operand.value
    return value is not None and bool(np.all(np.abs(value) < _HUGE))


def quantization_of(operand: Operand) -> Quantization:
    """The quantization of an operand that has one."""
    assert operand.type.quantization is not None, "inference has seen to it"
    return operand.type.quantization


def along_axis(operand: Operand, numbers: Sequence[float], dtype: np.dtype[Any]) -> Array:
    """Numbers, laid along the axis of a quantized operand."""
    axis = quantization_of(operand).axis
    if axis is None:
        return np.array(numbers[0], dtype)
    rank = len(operand.type.shape or ())
    return np.array(numbers, dtype).reshape((-1,) + (1,) * (rank - 1 - axis % rank))
