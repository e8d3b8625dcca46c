"""Poolings."""

from __future__ import annotations

from crosschip.hal import Refusal
from crosschip.ops.definition.windows import static
from crosschip.ops.standard.adaptive_pooling import AdaptiveAveragePool2D
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D, Pool
from crosschip.ops.standard.reduction import ReduceMean
from fake_npu.assembly import Assembly
from fake_npu.converters.table import bytes_in, converters
from fake_npu_ddk import Operator, Settings


def _windows(op: Pool) -> Refusal | None:
    """Windows end with the padding."""
    image = static((op.input.type.shape or ())[2:])
    if tuple(op.windows.padding(image)[1::2]) > tuple(op.windows.sides(image)[1::2]):
        return Refusal("ceil_mode", "a window reaches beyond the padding")
    return None


def _average(op: AveragePool2D) -> Refusal | None:
    if op.count_include_pad and any(op.windows.sides((op.input.type.shape or ())[2:])):
        return Refusal("count_include_pad", "padding never counts")
    return _windows(op)


def _maximum(op: MaxPool2D) -> Refusal | None:
    if op.return_indices:
        return Refusal("return_indices", "there are no indices")
    return _windows(op)


def _settings(op: Pool) -> Settings:
    image = static((op.input.type.shape or ())[2:])
    return Settings(
        kernel=(op.kernel_shape[0], op.kernel_shape[1]),
        strides=(op.strides[0], op.strides[1]),
        dilations=(op.dilations[0], op.dilations[1]),
        pads=op.windows.sides(image),
    )


@converters.converts(AveragePool2D, limit=_average, quantized=bytes_in("input"))
def average_pool_2d(g: Assembly, op: AveragePool2D) -> int:
    return g.add(Operator.AVERAGE_POOL_2D, [g[op.input]], op, _settings(op))


@converters.converts(MaxPool2D, limit=_maximum, quantized=bytes_in("input"))
def max_pool_2d(g: Assembly, op: MaxPool2D) -> int:
    return g.add(Operator.MAX_POOL_2D, [g[op.input]], op, _settings(op))


def _one_cell(op: AdaptiveAveragePool2D) -> Refusal | None:
    if tuple(op.output_shape) != (1, 1):
        return Refusal("output_shape", f"{list(op.output_shape)}; the mean of all is made only")
    return None


@converters.converts(AdaptiveAveragePool2D, limit=_one_cell, quantized=bytes_in("input"))
def adaptive_average_pool_2d(g: Assembly, op: AdaptiveAveragePool2D) -> int:
    return g.add(Operator.GLOBAL_AVERAGE_POOL, [g[op.input]], op)


def _all_pixels(op: ReduceMean) -> Refusal | None:
    rank = len(op.input.type.shape or ())
    if rank != 4 or sorted(axis % rank for axis in op.axes) != [2, 3] or not op.keepdim:
        return Refusal("axes", "the mean of all pixels of images is made only, with axes kept")
    return None


@converters.converts(ReduceMean, limit=_all_pixels, quantized=bytes_in("input"))
def reduce_mean(g: Assembly, op: ReduceMean) -> int:
    return g.add(Operator.GLOBAL_AVERAGE_POOL, [g[op.input]], op)
