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
from crosschip.devices.kits.onnx.converters.windows import dilated, window_attributes
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool,
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
)
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


def _pool(op: Pool) -> dict[str, Any]:
    return {
        "kernel_shape": op.kernel_shape,
        "ceil_mode": int(op.ceil_mode and not op.auto_pad.keeps_size),
        **window_attributes(op),
    }


def _covered(g: Graph, op: Pool) -> str:
    """The image, refused if it is smaller than a window; ONNX Runtime would return no pixels."""
    if op.auto_pad.keeps_size:
        return g[op.input]
    least = [0, 0]
    for axis in range(op.spatial_rank):
        padding = sum(op.pads[2 * axis : 2 * axis + 2]) if op.auto_pad is AutoPad.NONE else 0
        is_known = op.input.type.shape and isinstance(op.input.type.shape[2 + axis], int)
        least.append(0 if is_known else op.windows.spans[axis] - padding)
    if max(least) <= 1:
        return g[op.input]
    shape = g.add("Shape", g[op.input])
    return refused_unless(g, g.add("GreaterOrEqual", shape, g.int64(least)), g[op.input], shape)


def _pooled(op: Pool) -> Refusal | None:
    skips_pixels = any(map(gt, op.strides, op.windows.spans))
    if op.auto_pad.keeps_size and skips_pixels:
        return Refusal("auto_pad", f"{op.auto_pad.name} with windows that leave pixels out")
    return windows_in_image(op) or dilated(op)


def _averaged(op: AveragePool) -> Refusal | None:
    # The fusion with quantization around it makes an operator without dilations.
    return _pooled(op) or dilated(op, always=True)


@converts(
    AveragePool1D,
    AveragePool2D,
    AveragePool3D,
    types=NARROW_FLOATS,
    limit=_averaged,
    nonempty=True,
)
def average_pool(g: Graph, op: AveragePool) -> str:
    return g.add(
        "AveragePool",
        _covered(g, op),
        count_include_pad=int(op.count_include_pad),
        **_pool(op),
    )


@converts(
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    types=FLOAT_TYPES | INDICES | _BYTES,
    limit=_pooled,
    nonempty=True,
)
def max_pool(g: Graph, op: MaxPool) -> list[str]:
    attributes = {"dilations": op.dilations, **_pool(op)}
    if not op.return_indices:
        return [g.add("MaxPool", _covered(g, op), **attributes)]
    values, places = g.add_all("MaxPool", 2, _covered(g, op), **attributes)
    area = g.add("ReduceProd", g.add("Shape", g[op.input], start=2), keepdims=0)
    return [values, g.cast(g.add("Mod", places, area), op.return_indices_dtype.dtype)]


def _global(op: AdaptiveAveragePool) -> Refusal | None:
    if op.is_global():
        return None
    ones = [1] * op.spatial_rank
    return Refusal("output_shape", f"{list(op.output_shape)}, must be {ones}")


@converts(
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    types=NARROW_FLOATS,
    limit=_global,
    nonempty=True,
)
def adaptive_average_pool(g: Graph, op: AdaptiveAveragePool) -> str:
    return g.add("GlobalAveragePool", g[op.input])
