"""Pooling of images."""

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
from crosschip.devices.kits.onnx.converters.windows import dilation_limit, window_attributes
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.pooling import (
    AveragePool,
    AveragePool1D,
    AveragePool2D,
    AveragePool3D,
    MaxPool,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    Pool,
)

_BYTES = {ElementType.INT8, ElementType.UINT8}


def _pool_attributes(op: Pool) -> dict[str, Any]:
    return {
        "kernel_shape": op.kernel_shape,
        "ceil_mode": int(op.ceil_mode and not op.auto_pad.keeps_size),
        **window_attributes(op),
    }


def _require_window(g: Graph, op: Pool) -> str:
    """Return the image, and reject runs with an image that is smaller than a window."""
    if op.auto_pad.keeps_size:
        return g[op.input]
    minimum_sizes = [0, 0]
    for axis in range(op.spatial_rank):
        padding = sum(op.pads[2 * axis : 2 * axis + 2]) if op.auto_pad is AutoPad.NONE else 0
        is_known = op.input.type.shape and isinstance(op.input.type.shape[2 + axis], int)
        minimum_sizes.append(0 if is_known else op.windows.spans[axis] - padding)
    if max(minimum_sizes) <= 1:
        return g[op.input]
    shape = g.add("Shape", g[op.input])
    return refused_unless(
        g, g.add("GreaterOrEqual", shape, g.int64(minimum_sizes)), g[op.input], shape
    )


def _limit(op: Pool) -> Refusal | None:
    skips_pixels = any(map(gt, op.strides, op.windows.spans))
    if op.auto_pad.keeps_size and skips_pixels:
        return Refusal("auto_pad", f"{op.auto_pad.name} with windows that leave pixels out")
    return windows_in_image(op) or dilation_limit(op)


def _average_limit(op: AveragePool) -> Refusal | None:
    # The fusion with quantization around it makes an operator without dilations.
    return _limit(op) or dilation_limit(op, always=True)


@converts(
    AveragePool1D,
    AveragePool2D,
    AveragePool3D,
    types=NARROW_FLOATS,
    limit=_average_limit,
    nonempty=True,
)
def average_pool(g: Graph, op: AveragePool) -> str:
    return g.add(
        "AveragePool",
        _require_window(g, op),
        count_include_pad=int(op.count_include_pad),
        **_pool_attributes(op),
    )


@converts(
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    types=FLOAT_TYPES | INDICES | _BYTES,
    limit=_limit,
    nonempty=True,
)
def max_pool(g: Graph, op: MaxPool) -> list[str]:
    attributes = {"dilations": op.dilations, **_pool_attributes(op)}
    if not op.return_indices:
        return [g.add("MaxPool", _require_window(g, op), **attributes)]
    values, indices = g.add_all("MaxPool", 2, _require_window(g, op), **attributes)
    area = g.add("ReduceProd", g.add("Shape", g[op.input], start=2), keepdims=0)
    return [values, g.cast(g.add("Mod", indices, area), op.return_indices_dtype.dtype)]
