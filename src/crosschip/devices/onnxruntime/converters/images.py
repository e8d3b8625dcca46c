"""Convolution and pooling of [N, C, H, W] images."""

from __future__ import annotations

from typing import Any

from crosschip.devices.limits import own_size, windows_in_image
from crosschip.devices.onnxruntime.converters.table import FLOAT_TYPES, NARROW_FLOATS, converts
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.ir.types import INDICES
from crosschip.ops.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.pooling import AdaptiveAveragePool2D, AveragePool2D, MaxPool2D
from crosschip.ops.windows import AutoPad

_AUTO_PAD = {AutoPad.NONE: "NOTSET", AutoPad.SAME: "SAME_UPPER", AutoPad.VALID: "VALID"}


def _window(op: Conv2D | Conv2DTranspose | AveragePool2D | MaxPool2D) -> dict[str, Any]:
    """The attributes that say where windows are."""
    top, bottom, left, right = op.pads
    pads = [top, left, bottom, right] if op.auto_pad is AutoPad.NONE else None
    return {"auto_pad": _AUTO_PAD[op.auto_pad], "pads": pads, "strides": op.strides}


def _dilated(op: Conv2D) -> str | None:
    if op.auto_pad is AutoPad.SAME and op.dilations != (1, 1):
        return f"auto_pad: SAME with dilations {list(op.dilations)}"
    return None


@converts(Conv2D, types=NARROW_FLOATS, limit=_dilated)
def conv_2d(g: Graph, op: Conv2D) -> str:
    inputs = [g[operand] for operand in (op.input, op.filter, op.bias) if operand]
    return g.add("Conv", *inputs, group=op.group, dilations=op.dilations, **_window(op))


@converts(Conv2DTranspose, types=NARROW_FLOATS, limit=own_size)
def conv_2d_transpose(g: Graph, op: Conv2DTranspose) -> str:
    inputs = [g[operand] for operand in (op.input, op.filter, op.bias) if operand]
    return g.add(
        "ConvTranspose",
        *inputs,
        group=op.group,
        dilations=op.dilations,
        output_padding=op.output_padding,
        **_window(op),
    )


@converts(AveragePool2D, types=NARROW_FLOATS, limit=windows_in_image)
def average_pool_2d(g: Graph, op: AveragePool2D) -> str:
    return g.add(
        "AveragePool",
        g[op.input],
        kernel_shape=op.kernel_shape,
        ceil_mode=int(op.ceil_mode),
        count_include_pad=int(op.count_include_pad),
        **_window(op),
    )


@converts(MaxPool2D, types=FLOAT_TYPES | INDICES, limit=windows_in_image)
def max_pool_2d(g: Graph, op: MaxPool2D) -> list[str]:
    attributes = {"kernel_shape": op.kernel_shape, "ceil_mode": int(op.ceil_mode), **_window(op)}
    if not op.return_indices:
        return [g.add("MaxPool", g[op.input], **attributes)]
    values, places = g.add_all("MaxPool", 2, g[op.input], **attributes)
    area = g.add("ReduceProd", g.add("Shape", g[op.input], start=2), keepdims=0)
    return [values, g.cast(g.add("Mod", places, area), op.return_indices_dtype.dtype)]


def _global(op: AdaptiveAveragePool2D) -> str | None:
    shape = op.output_shape
    return None if shape == (1, 1) else f"output_shape: {list(shape)}, must be [1, 1]"


@converts(AdaptiveAveragePool2D, types=NARROW_FLOATS, limit=_global)
def adaptive_average_pool_2d(g: Graph, op: AdaptiveAveragePool2D) -> str:
    return g.add("GlobalAveragePool", g[op.input])
