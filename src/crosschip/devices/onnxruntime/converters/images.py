"""Convolution and pooling of [N, C, H, W] images."""

from __future__ import annotations

from operator import ge, gt
from typing import Any

from crosschip.devices.limits import own_size, windows_in_image
from crosschip.devices.onnxruntime.converters.table import FLOAT_TYPES, NARROW_FLOATS, converts
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D
from crosschip.ops.standard.pooling import (
    AdaptiveAveragePool2D,
    AdaptivePool2D,
    AveragePool2D,
    MaxPool2D,
    Pool2D,
)

_BYTES = {ElementType.INT8, ElementType.UINT8}
_AUTO_PAD = {
    AutoPad.NONE: "NOTSET",
    AutoPad.SAME: "SAME_UPPER",
    AutoPad.VALID: "VALID",
    AutoPad.SAME_LOWER: "SAME_LOWER",
}


def _window(op: Conv2D | Conv2DTranspose | Pool2D) -> dict[str, Any]:
    """The attributes that say where windows are."""
    top, bottom, left, right = op.pads
    pads = [top, left, bottom, right] if op.auto_pad is AutoPad.NONE else None
    return {"auto_pad": _AUTO_PAD[op.auto_pad], "pads": pads, "strides": op.strides}


def _filtered(op: DeformableConv2D) -> Refusal | None:
    known = op.filter.type.static_shape is not None
    return None if known else Refusal("filter", "its shape must be known", Rule.SHAPE)


@converts(DeformableConv2D, types={ElementType.FLOAT32}, limit=_filtered, nonempty=True)
def deformable_conv_2d(g: Graph, op: DeformableConv2D) -> str:
    top, bottom, left, right = op.pads
    inputs = (op.input, op.filter, op.offset, op.bias, op.mask)
    return g.add(
        "DeformConv",
        *(g[operand] if operand else "" for operand in inputs),
        pads=[top, left, bottom, right],
        strides=op.strides,
        dilations=op.dilations,
        group=op.group,
        offset_group=op.deformable_group,
    )


def _dilated(op: Conv2D | Pool2D, *, always: bool = False) -> Refusal | None:
    if (always or op.auto_pad.keeps_size) and op.dilations != (1, 1):
        return Refusal("dilations", f"{list(op.dilations)} with auto_pad {op.auto_pad.name}")
    return None


def _may_skip(op: Conv2D) -> bool:
    """Whether pixels between windows may make ONNX Runtime pad `SAME` by less than nothing."""
    kernel = (op.filter.type.shape or (1,) * 4)[2:]
    sizes = (size if isinstance(size, int) else 1 for size in kernel)
    apart = any(stride - size > 1 for stride, size in zip(op.strides, sizes, strict=True))
    return op.auto_pad.keeps_size and apart


def _convolved(op: Conv2D) -> Refusal | None:
    if _may_skip(op) and None in (op.input.type.static_shape, op.filter.type.static_shape):
        return Refusal("auto_pad", f"{op.auto_pad.name} with windows that leave pixels out")
    return _dilated(op)


@converts(Conv2D, types=NARROW_FLOATS, limit=_convolved, nonempty=True)
def conv_2d(g: Graph, op: Conv2D) -> str:
    inputs = [g[operand] for operand in (op.input, op.filter, op.bias) if operand]
    window = _window(op)
    image, kernel = op.input.type.static_shape, op.filter.type.static_shape
    if _may_skip(op) and image is not None and kernel is not None:
        top, bottom, left, right = op.windows(kernel[2:]).padding(image[2:])
        window |= {"auto_pad": "NOTSET", "pads": [top, left, bottom, right]}
    return g.add("Conv", *inputs, group=op.group, dilations=op.dilations, **window)


def _transposed(op: Conv2DTranspose) -> Refusal | None:
    steps = map(max, op.strides, op.dilations)
    if any(map(ge, op.output_padding, steps)):
        return Refusal(
            "output_padding", f"{list(op.output_padding)}, must be less than the strides"
        )
    return own_size(op)


@converts(Conv2DTranspose, types=NARROW_FLOATS, limit=_transposed, nonempty=True)
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


def _pool(op: Pool2D) -> dict[str, Any]:
    return {
        "kernel_shape": op.kernel_shape,
        "ceil_mode": int(op.ceil_mode and not op.auto_pad.keeps_size),
        **_window(op),
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
    fits = g.add("GreaterOrEqual", shape, g.int64(least))
    # There is no reshaping to a negative size.
    return g.add("Reshape", g[op.input], g.add("Where", fits, shape, g.int64([-2])))


def _pooled(op: Pool2D) -> Refusal | None:
    apart = any(map(gt, op.strides, op.windows.spans))
    if op.auto_pad.keeps_size and apart:
        return Refusal("auto_pad", f"{op.auto_pad.name} with windows that leave pixels out")
    return windows_in_image(op) or _dilated(op)


def _averaged(op: AveragePool2D) -> Refusal | None:
    # The fusion with quantization around it makes an operator without dilations.
    return _pooled(op) or _dilated(op, always=True)


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
