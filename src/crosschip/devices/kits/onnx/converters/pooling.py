"""Pooling of [N, C, H, W] images."""

from __future__ import annotations

from operator import gt
from typing import Any

from crosschip.devices.kits.limits import windows_in_image
from crosschip.devices.kits.onnx.converters.table import (
    FLOAT_TYPES,
    NARROW_FLOATS,
    converts,
    refused_unless,
)
from crosschip.devices.kits.onnx.converters.windows import dilated, window_attributes
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.pooling import (
    AdaptiveAveragePool2D,
    AdaptivePool2D,
    AveragePool2D,
    MaxPool2D,
    Pool2D,
)

_BYTES = {ElementType.INT8, ElementType.UINT8}


def _pool(op: Pool2D) -> dict[str, Any]:
    return {
        "kernel_shape": op.kernel_shape,
        "ceil_mode": int(op.ceil_mode and not op.auto_pad.keeps_size),
        **window_attributes(op),
    }


def _covered(g: Graph, op: Pool2D) -> str:
    """The image, refused if it is smaller than a window; ONNX Runtime would return no pixels."""
    if op.auto_pad.keeps_size:
        return g[op.input]
    least = [0, 0]
    for axis in range(2):
        padding = sum(op.pads[2 * axis : 2 * axis + 2]) if op.auto_pad is AutoPad.NONE else 0
        is_known = isinstance((op.input.type.shape or (None,) * 4)[2 + axis], int)
        least.append(0 if is_known else op.windows.spans[axis] - padding)
    if max(least) <= 1:
        return g[op.input]
    shape = g.add("Shape", g[op.input])
    return refused_unless(g, g.add("GreaterOrEqual", shape, g.int64(least)), g[op.input], shape)


def _pooled(op: Pool2D) -> Refusal | None:
    skips_pixels = any(map(gt, op.strides, op.windows.spans))
    if op.auto_pad.keeps_size and skips_pixels:
        return Refusal("auto_pad", f"{op.auto_pad.name} with windows that leave pixels out")
    return windows_in_image(op) or dilated(op)


def _averaged(op: AveragePool2D) -> Refusal | None:
    # The fusion with quantization around it makes an operator without dilations.
    return _pooled(op) or dilated(op, always=True)


@converts(AveragePool2D, types=NARROW_FLOATS, limit=_averaged, nonempty=True)
def average_pool_2d(g: Graph, op: AveragePool2D) -> str:
    return g.add(
        "AveragePool",
        _covered(g, op),
        count_include_pad=int(op.count_include_pad),
        **_pool(op),
    )


@converts(MaxPool2D, types=FLOAT_TYPES | INDICES | _BYTES, limit=_pooled, nonempty=True)
def max_pool_2d(g: Graph, op: MaxPool2D) -> list[str]:
    attributes = {"dilations": op.dilations, **_pool(op)}
    if not op.return_indices:
        return [g.add("MaxPool", _covered(g, op), **attributes)]
    values, places = g.add_all("MaxPool", 2, _covered(g, op), **attributes)
    area = g.add("ReduceProd", g.add("Shape", g[op.input], start=2), keepdims=0)
    return [values, g.cast(g.add("Mod", places, area), op.return_indices_dtype.dtype)]


def _global(op: AdaptivePool2D) -> Refusal | None:
    shape = op.output_shape
    return None if shape == (1, 1) else Refusal("output_shape", f"{list(shape)}, must be [1, 1]")


@converts(AdaptiveAveragePool2D, types=NARROW_FLOATS, limit=_global, nonempty=True)
def adaptive_average_pool_2d(g: Graph, op: AdaptiveAveragePool2D) -> str:
    return g.add("GlobalAveragePool", g[op.input])
