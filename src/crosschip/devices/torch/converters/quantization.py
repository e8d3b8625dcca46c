"""Quantization and dequantization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.conversion import narrow_float, numbers
from crosschip.devices.torch.converters.table import converts, same
from crosschip.devices.torch.elements import of_array
from crosschip.ir import ElementType, Operand, Quantization
from crosschip.ir.types import ALL_TYPES, NARROW_FLOATS
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.quantization import (
    Dequantize,
    DequantizeBlocks,
    DynamicQuantize,
    Quantize,
    Reinterpret,
)

converts(Reinterpret, types=ALL_TYPES, narrow=True)(same(lambda x: x))


@converts(Quantize)
def quantize(op: Quantize) -> Kernel:
    output, dtype = op.outputs[0], op.dtype
    scale, zero_point = (_numbers(output, values) for values in _of(output))

    def run(x: Tensor) -> Tensor:
        steps = x / _along(output, scale, x).to(x.dtype)
        if dtype in NARROW_FLOATS:
            return narrow_float(steps + _along(output, zero_point, x).to(x.dtype), dtype)
        low, high = limits(dtype)
        if dtype is ElementType.INT32:
            steps = steps.double()  # it holds every int32
        steps = torch.round(steps) + _along(output, zero_point, x).to(steps.dtype)
        return torch.clamp(torch.nan_to_num(steps, low), low, high)

    return run


@converts(Dequantize, types=ALL_TYPES)
def dequantize(op: Dequantize) -> Kernel:
    operand, source = op.input, op.input.type.element_type
    scale, zero_point = (_numbers(operand, values) for values in _of(operand))
    # In float32, 16-bit integers times a scale are rounded only once.
    wide = torch.float64 if source is ElementType.INT32 else torch.float32

    def run(x: Tensor) -> Tensor:
        steps = numbers(x, source).to(wide) - _along(operand, zero_point, x).to(wide)
        return (steps * _along(operand, scale, x).to(wide)).float()

    return run


def _of(operand: Operand) -> tuple[Sequence[float], Sequence[float]]:
    quantization = operand.type.quantization
    assert isinstance(quantization, Quantization), "inference has seen to it"
    return quantization.scale, quantization.zero_point


def _numbers(operand: Operand, values: Sequence[float]) -> Tensor:
    array = np.array(values, np.float64)
    return of_array(array if len(values) > 1 else array.reshape(()))


def _along(operand: Operand, values: Tensor, x: Tensor) -> Tensor:
    """Return numbers, shaped to broadcast along the quantization axis of an operand."""
    axis = operand.type.quantization.axis if operand.type.quantization else None
    if axis is None or not values.ndim:
        return values.to(x.device)
    return values.to(x.device).reshape((-1,) + (1,) * (x.ndim - 1 - axis % x.ndim))


@converts(DequantizeBlocks, types=ALL_TYPES)
def dequantize_blocks(op: DequantizeBlocks) -> Kernel:
    axis, size, source = op.axis, op.block_size, op.input.type.element_type

    def run(x: Tensor, scale: Tensor, zero_point: Tensor | None) -> Tensor:
        blocks = torch.arange(x.shape[axis], device=x.device) // size
        steps = numbers(x, source).float()
        if zero_point is not None:
            steps = steps - zero_point.float().index_select(axis, blocks)
        return steps * scale.float().index_select(axis, blocks)

    return run


@converts(DynamicQuantize)
def dynamic_quantize(op: DynamicQuantize) -> Kernel:
    def run(x: Tensor) -> Sequence[Tensor]:
        scale, zero_point = byte_steps(x)
        steps = torch.clamp(torch.round(x / scale) + zero_point, 0, 255)
        return torch.nan_to_num(steps, 0), scale, torch.nan_to_num(zero_point, 0)

    return run


def byte_steps(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scale and the zero point of 8-bit integers from the least to the greatest real."""
    low, high = (
        torch.clamp(part, *bounds)
        for part, bounds in zip(torch.aminmax(x), ((None, 0), (0, None)), strict=True)
    )
    step = (high - low) / 255
    scale = torch.where(step == 0, 1, step)
    return scale, torch.round(-low / scale)
