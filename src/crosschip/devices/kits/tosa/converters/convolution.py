"""Convolutions. TOSA's images are [N, H, W, C], its filters [C_out, H, W, C_in]."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import REALS, converts, shape_of
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.hal import Refusal, Rule
from crosschip.ir import Operand
from crosschip.ops.definition.windows import AutoPad, Windows, extent
from crosschip.ops.standard.convolution import Conv, Conv2D, Conv2DTranspose, Conv3D

_OPS = {2: Op.CONV2D, 3: Op.CONV3D}


def channels_last(g: Graph, value: Value) -> Value:
    """Move the channels of filters to the last axis."""
    return g.transpose(value, (0, *range(2, value.rank), 1))


def image_of(g: Graph, image: Value) -> Value:
    """Return an operation's image with its channels last."""
    return image if g.channels_last else channels_last(g, image)


def result_of(g: Graph, image: Value) -> Value:
    """Return an operation's result, an image with its channels last, in the operation's order."""
    last = image.rank - 1
    return image if g.channels_last else g.transpose(image, (0, last, *range(1, last)))


def reaches_of(windows: Windows, counts: Sequence[int]) -> list[int]:
    """Return the number of pixels, with the padding, that windows cover on each axis."""
    spans = zip(counts, windows.strides, windows.spans, strict=True)
    return [(count - 1) * stride + span for count, stride, span in spans]


def fit(
    g: Graph, image: Value, sides: Sequence[int], reaches: Sequence[int]
) -> tuple[Value, list[int]]:
    """Cut off what no window reaches: TOSA's windows end where the padded image does.

    Args:
        g: the graph.
        image: an image with its channels last.
        sides: the padding before and after each axis.
        reaches: the number of pixels, with the padding, that windows cover on each axis.

    Returns:
        The image and its padding.
    """
    pads, sizes = list(sides), list(image.shape)
    for axis, reach in enumerate(reaches):
        before, size = pads[2 * axis], sizes[axis + 1]
        after = reach - before - size
        pads[2 * axis + 1] = max(0, after)
        sizes[axis + 1] = size + min(0, after)
    return g.slice(image, [0] * image.rank, sizes), pads


@converts(Conv2D, Conv3D, types=REALS)
def conv(g: Graph, op: Conv) -> Value:
    filters = channels_last(g, g[op.filter])
    image, sizes, attributes = fitted(g, op, image_of(g, g[op.input]))
    bias = bias_of(g, op.bias, image.dtype)
    return result_of(g, convolve(g, image, filters, bias, op.group, sizes, attributes))


def fitted(g: Graph, op: Conv, image: Value) -> tuple[Value, tuple[int, ...], dict[str, list[int]]]:
    """Return the image that windows reach, the result's sizes, and TOSA's attributes.

    Args:
        g: the graph.
        op: the convolution.
        image: its image, with the channels last.
    """
    kernel, size = shape_of(op.filter)[2:], image.shape[1:-1]
    windows = op.windows(kernel)
    counts = windows.static_counts(size)
    image, pads = fit(g, image, windows.sides(size), reaches_of(windows, counts))
    attributes = {"pad": pads, "stride": [*op.strides], "dilation": [*op.dilations]}
    return image, (image.shape[0], *counts), attributes


def bias_of(g: Graph, bias: Operand | None, dtype: DType) -> Value:
    """Return a bias, or zeros."""
    return g.zero(dtype) if bias is None else g[bias]


def convolve(
    g: Graph,
    image: Value,
    filters: Value,
    bias: Value,
    group: int,
    sizes: Sequence[int],
    attributes: dict[str, list[int]],
    zero_points: Sequence[Value] = (),
) -> Value:
    """Convolve an image with its channels last.

    Args:
        g: the graph.
        image: the image.
        filters: [C_out, window …, C_in / group].
        bias: one number, or one per output channel.
        group: the number of groups.
        sizes: the sizes of the result without its channels.
        attributes: `pad`, `stride` and `dilation`.
        zero_points: those of the image and the filters; zeros if empty.
    """
    channels, out = image.shape[-1], filters.shape[0]
    real = image.dtype is DType.FP32
    dtype = DType.FP32 if real else DType.INT32
    zeros = zero_points or (g.zero(image.dtype), g.zero(filters.dtype))
    settings = {**attributes, "local_bound": False, "acc_type": dtype}
    if group == channels and image.rank == 4:
        # [C * M, H, W, 1] to [H, W, C, M].
        _, height, width, _ = filters.shape
        split = g.reshape(filters, (channels, out // channels, height, width))
        weights = g.transpose(split, (2, 3, 0, 1))
        inputs = (image, weights, bias, *zeros)
        return g.add(Op.DEPTHWISE_CONV2D, inputs, dtype, (*sizes, out), **settings)
    op = _OPS[image.rank - 2]
    parts = []
    for index in range(group):
        pixels = _range(g, image, image.rank - 1, index, group)
        weights = _range(g, filters, 0, index, group)
        numbers = bias if bias.shape == (1,) else _range(g, bias, 0, index, group)
        shape = (*sizes, out // group)
        parts.append(g.add(op, (pixels, weights, numbers, *zeros), dtype, shape, **settings))
    return g.concat(parts, image.rank - 1)


def _range(g: Graph, value: Value, axis: int, index: int, group: int) -> Value:
    """Return the part of an axis that belongs to a group."""
    size = value.shape[axis] // group
    return g.part(value, axis, index * size, (index + 1) * size)


def explicit(op: Conv2DTranspose) -> Refusal | None:
    """Refuse a padding that a rule gives."""
    if op.auto_pad is not AutoPad.NONE or op.output_shape is not None or any(op.output_padding):
        return Refusal("auto_pad", "only explicit padding is converted", Rule.VALUE)
    return None


@converts(Conv2DTranspose, types=REALS, limit=explicit)
def conv_transpose(g: Graph, op: Conv2DTranspose) -> Value:
    image, filters = g[op.input], g[op.filter]
    bias = bias_of(g, op.bias, image.dtype)
    zeros = (g.zero(image.dtype), g.zero(image.dtype))
    return result_of(g, convolve_transposed(g, op, image_of(g, image), filters, bias, zeros))


def convolve_transposed(
    g: Graph,
    op: Conv2DTranspose,
    image: Value,
    filters: Value,
    bias: Value,
    zero_points: tuple[Value, Value],
) -> Value:
    """Convolve an image with its channels last transposed, without padding; crop the result.

    Args:
        g: the graph.
        op: the operation.
        image: the image.
        filters: [C_in, C_out / group, H, W].
        bias: one number, or one per output channel.
        zero_points: those of the image and the filters.
    """
    dtype = DType.FP32 if image.dtype is DType.FP32 else DType.INT32
    filters = _dilate(g, filters, op.dilations, zero_points[1])
    _, per_group, *kernel = filters.shape
    full = [
        (size - 1) * stride + window
        for size, stride, window in zip(image.shape[1:3], op.strides, kernel, strict=True)
    ]
    # [C_in, C_out / group, H, W] to [C_out / group, H, W, C_in].
    weights = g.transpose(filters, (1, 2, 3, 0))
    parts = []
    for index in range(op.group):
        pixels, kernels = (
            _range(g, image, 3, index, op.group),
            _range(g, weights, 3, index, op.group),
        )
        numbers = bias if bias.shape == (1,) else _range(g, bias, 0, index, op.group)
        parts.append(
            g.add(
                Op.TRANSPOSE_CONV2D,
                (pixels, kernels, numbers, *zero_points),
                dtype,
                (image.shape[0], *full, per_group),
                out_pad=[0, 0, 0, 0],
                stride=[*op.strides],
                local_bound=False,
                acc_type=dtype,
            )
        )
    result = g.concat(parts, 3)
    starts = [0, op.pads[0], op.pads[2], 0]
    ends = [size - pad for size, pad in zip(full, op.pads[1::2], strict=True)]
    rows, columns = ends[0] - op.pads[0], ends[1] - op.pads[2]
    sizes = [image.shape[0], rows, columns, result.shape[3]]
    return g.slice(result, starts, sizes)


def _dilate(g: Graph, filters: Value, dilations: Sequence[int], zero: Value) -> Value:
    """Insert zero points between the elements of filters, on the last two axes."""
    for axis, dilation in enumerate(dilations, 2):
        size = filters.shape[axis]
        if dilation == 1 or size == 1:
            continue
        shape = filters.shape
        rows = g.reshape(filters, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        pads = [(0, dilation - 1 if i == axis + 1 else 0) for i in range(rows.rank)]
        rows = g.pad(rows, pads, zero)
        spread = g.reshape(rows, (*shape[:axis], size * dilation, *shape[axis + 1 :]))
        filters = g.part(spread, axis, 0, extent(size, dilation))
    return filters
