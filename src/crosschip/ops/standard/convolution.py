"""Convolutions of [N, C, …] images with [C_out, C_in / group, …] filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape, unknown
from crosschip.ir.dimension import product
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.quantized import check_bias, check_quantized_bias
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import require_rank, unify
from crosschip.ops.definition.slots import (
    axis_integers,
    choice,
    fuse,
    integer,
    optional_axis_integers,
    optional_tensor,
    tensor,
)
from crosschip.ops.definition.spatial import build_planar
from crosschip.ops.definition.windows import (
    AutoPad,
    Pads,
    SpatialOperator,
    Windows,
    extent,
    is_static,
    pad_image,
    sliding_windows,
    static,
)
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import Pad


class _Convolution(SpatialOperator):
    """Base class of convolutions and transposed convolutions."""

    __slots__ = ()
    input = tensor(FLOATS)
    filter = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    auto_pad = choice(AutoPad, AutoPad.NONE)
    pads = axis_integers(0, 2)
    strides = axis_integers(1)
    group = integer(1)
    dilations = axis_integers(1)

    def settings(self, first: int = 0) -> dict[str, Any]:
        """Return the parameters of a convolution over the spatial axes from `first` on."""
        strides, dilations = self.strides[first:], self.dilations[first:]
        return {"strides": strides, "group": self.group, "dilations": dilations}


class Conv(_Convolution):
    """Base class of convolutions of images of any spatial rank."""

    __slots__ = ()
    fuse_code = fuse()

    def windows(self, kernel: Sequence[int]) -> Windows:
        return Windows(kernel, self.strides, self.dilations, self.auto_pad, self.pads)

    def multiply_adds(self) -> Dim:
        return product(shape_of(self.outputs[0])) * product(shape_of(self.filter)[1:])

    def infer_shape(self) -> Shape:
        filter = require_rank(shape_of(self.filter), 2 + self.spatial_rank, "filter")
        check_quantized_bias(self.input, self.filter, self.bias)
        shape = convolution_shape(shape_of(self.input), filter, self.group, self.windows)
        check_bias(self.bias.type.shape if self.bias else None, filter[0])
        return shape

    def reference(self, input: Array, filter: Array, bias: Array | None) -> Array:
        output = convolve(input, filter, self.windows(filter.shape[2:]), self.group)
        return output if bias is None else output + broadcast_channels(bias, self.spatial_rank)


@operator("CONV_2D", core=True)
class Conv2D(Conv, spatial_rank=2):
    """Two-dimensional convolution (a correlation: the filter is not flipped).

    `output[n, o, y, x] = bias[o] + sum over c, i, j of filter[o, c, i, j] * padded[n, g * C_in /
    group + c, y * stride_h + i * dilation_h, x * stride_w + j * dilation_w]`, where `g = o * group
    // C_out` and the image is padded with zeros, with `pads` top, bottom, left, right. A depthwise
    convolution has `group = C_in`. `H_out = (H + top + bottom - (dilation_h * (kernel_h - 1) + 1))
    // stride_h + 1`, and likewise the width; with `auto_pad` `SAME` it is `ceil(H / stride_h)`. A
    padded image that is smaller than the filter is an error. Sums are in the element type, in any
    order; for float16 and bfloat16 in float32. An output channel is unspecified if its filter
    contains NaN or an infinity.

    Quantized: int8 input, symmetric per layer; int8 filter, symmetric per layer or per channel
    along axis 0; int32 bias, whose scale is the product of the input's and the filter's, per
    channel.

    Sources: NNAdapter's CONV_2D, NNRt's CONV2D and DEPTHWISE_CONV2D_NATIVE, ONNX's Conv.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Operand | None:
        """Build the same convolution with explicit padding instead of `auto_pad`."""
        if self.auto_pad is AutoPad.NONE:
            return None
        image, kernel = static(shape_of(self.input)[2:]), static(shape_of(self.filter)[2:])
        if 0 in image:
            return None
        pads = self.windows(kernel).sides(image)
        return b.add(Conv2D, self.input, self.filter, self.bias, pads=pads, **self.settings())


@operator("CONV_1D")
class Conv1D(Conv, spatial_rank=1):
    """One-dimensional convolution of [N, C, W] signals with [C_out, C_in / group, kernel] filters.

    It is `CONV_2D` on images of height 1 without padding above and below: `output[n, o, x] =
    bias[o] + sum over c, j of filter[o, c, j] * padded[n, g * C_in / group + c, x * stride + j *
    dilation]`, where `g = o * group // C_out` and `pads` are left, right. Everything else is as in
    `CONV_2D`, including quantization. An output channel is unspecified if its filter contains NaN
    or an infinity. Source: ONNX's Conv.
    """

    __slots__ = ()

    def decomposition(self, b: Builder) -> tuple[Operand, ...] | None:
        """Build a convolution of images of height 1; quantization and activation stay."""
        return build_planar(b, self, Conv2D)


@operator("CONV_3D")
class Conv3D(Conv, spatial_rank=3):
    """Three-dimensional convolution of [N, C, D, H, W] volumes.

    It is `CONV_2D` with another axis: `output[n, o, z, y, x] = bias[o] + sum over c, h, i, j of
    filter[o, c, h, i, j] * padded[n, g * C_in / group + c, z * stride_d + h * dilation_d, y *
    stride_h + i * dilation_h, x * stride_w + j * dilation_w]`, where `g = o * group // C_out` and
    `pads` are front, back, top, bottom, left, right. Everything else is as in `CONV_2D`, including
    quantization. An output channel is unspecified if its filter contains NaN or an infinity.
    Source: ONNX's Conv.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Operand | None:
        """Build each output plane as a convolution of input planes stacked as channels."""
        channels, *image = static(shape_of(self.input)[1:])
        out, per_group, *kernel = static(shape_of(self.filter))
        if 0 in image or not channels:
            return None
        windows = self.windows(kernel).explicit(image)
        front, back = windows.pads[:2]
        starts = np.arange(static(windows.counts(image))[0]) * windows.strides[0]
        planes = starts[:, None] + np.arange(kernel[0]) * windows.dilations[0]
        pads = (0, 0, 0, 0, front, back, 0, 0, 0, 0)
        volume = b.add(Pad, self.input, pads) if front or back else self.input
        stacked = b.add(Transpose, b.add(Gather, volume, planes, 2), (0, 2, 1, 3, 4, 5))
        result = b.add(
            Conv2D,
            b.add(Reshape, stacked, (-1, channels * kernel[0], *image[1:])),
            b.add(Reshape, self.filter, (out, per_group * kernel[0], *kernel[1:])),
            self.bias,
            pads=windows.pads[2:],
            **self.settings(1),
        )
        sizes = static(shape_of(result)[2:])
        unstacked = b.add(Reshape, result, (-1, len(starts), out, *sizes))
        return b.add(Transpose, unstacked, (0, 2, 1, 3, 4))


def broadcast_channels(bias: Array, spatial_rank: int) -> Array:
    """One number a channel, in a shape that broadcasts to images."""
    return bias.reshape(-1, *(1,) * spatial_rank)


def convolution_shape(
    input: Shape, filter: Shape, group: int, windows: Callable[[tuple[int, ...]], Windows]
) -> Shape:
    """Return the output shape for shapes of input and filter; `windows` gets the kernel size.

    Raises:
        ValueError: the convolution is invalid; the message starts with the slot.
    """
    batch, channels, *image = require_rank(input, len(filter), "input")
    out, per_group, *kernel = filter
    check_groups(group, channels, per_group, out)
    check_kernel(kernel)
    if not is_static(kernel):
        windows((1,) * len(kernel)).check()
        return (batch, out, *(unknown() for _ in kernel))
    return (batch, out, *windows(static(kernel)).counts(image))


def _at(position: Sequence[int]) -> tuple[slice | int, ...]:
    """Return the index of a window element in filter weights that are divided into groups."""
    return (*(slice(None),) * 3, *position)


def convolve(input: Array, filter: Array, windows: Windows, group: int) -> Array:
    """Convolve images with a filter."""
    size = static(windows.counts(input.shape[2:]))
    batch, out = input.shape[0], filter.shape[0]
    weights = filter.reshape(group, out // group, *filter.shape[1:])
    result = np.zeros((batch, group, out // group, int(np.prod(size))), input.dtype)
    for position, pixels in windows.sliding_windows(input, 0):
        columns = pixels.reshape(batch, group, filter.shape[1], result.shape[-1])
        element = weights[_at(position)]
        if columns.shape[2] == 1:
            result += element * columns
        else:
            result += element @ columns
    return result.reshape(batch, out, *size)


class ConvTranspose(_Convolution):
    """Base class of transposed convolutions of images of any spatial rank."""

    __slots__ = ()
    output_padding = axis_integers(0)
    output_shape = optional_axis_integers()
    fuse_code = fuse()

    def multiply_adds(self) -> Dim:
        return product(shape_of(self.input)) * product(shape_of(self.filter)[1:])

    def infer_shape(self) -> Shape:
        rank = 2 + self.spatial_rank
        batch, channels, *image = require_rank(shape_of(self.input), rank, "input")
        into, per_group, *kernel = require_rank(shape_of(self.filter), rank, "filter")
        unify(channels, into, "filter: its first size, and the input's channels")
        check_quantized_bias(self.input, self.filter, self.bias, channel_axis=1)
        check_groups(self.group, channels, None, 0)
        out = per_group * self.group
        check_bias(self.bias.type.shape if self.bias else None, out)
        if 0 in image:
            raise ValueError(f"input: an image of {_by(image)} has no pixels")
        if min(self.output_padding) < 0:
            raise ValueError(f"output_padding: {list(self.output_padding)} must not be negative")
        check_kernel(kernel)
        if not is_static(kernel):
            return (batch, out, *(unknown() for _ in kernel))
        Windows(static(kernel), self.strides, self.dilations, self.auto_pad, self.pads).check()
        return (batch, out, *self._sizes(image, static(kernel)))

    def _sizes(self, image: Sequence[Dim], kernel: Sequence[int]) -> Sequence[Dim]:
        if self.auto_pad.keeps_size:
            return [size * stride for size, stride in zip(image, self.strides, strict=True)]
        if self.output_shape is not None:
            if min(self.output_shape) < 0:
                raise ValueError(f"output_shape: {list(self.output_shape)} has a negative size")
            return self.output_shape
        pads = self._given_pads()
        full = self._full(image, kernel)
        sizes = [size - pads[2 * axis] - pads[2 * axis + 1] for axis, size in enumerate(full)]
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise ValueError(f"pads: {list(self.pads)} cut off more than there is")
        return sizes

    def _given_pads(self) -> Sequence[int]:
        return self.pads if self.auto_pad is AutoPad.NONE else (0,) * len(self.pads)

    def _full(self, image: Sequence[Dim], kernel: Sequence[int]) -> Sequence[Dim]:
        """Return the sizes before cropping."""
        return [
            (image[axis] - 1) * self.strides[axis]
            + extent(kernel[axis], self.dilations[axis])
            + self.output_padding[axis]
            for axis in range(self.spatial_rank)
        ]

    def _cut(self, image: Sequence[int], kernel: Sequence[int]) -> Pads:
        """Return the pixels to crop before and after each axis; negative to append zeros."""
        full, sizes = static(self._full(image, kernel)), static(self._sizes(image, kernel))
        pads = list(self._given_pads())
        for axis in range(self.spatial_rank):
            total = full[axis] - sizes[axis]
            if self.auto_pad.keeps_size:
                pads[2 * axis] = self.auto_pad.divided(max(0, total))[0]
            pads[2 * axis + 1] = total - pads[2 * axis]
        return tuple(pads)

    def reference(self, input: Array, filter: Array, bias: Array | None) -> Array:
        batch, channels, *image = input.shape
        kernel = filter.shape[2:]
        grouped = input.reshape(batch, self.group, channels // self.group, int(np.prod(image)))
        weights = filter.reshape(self.group, channels // self.group, *filter.shape[1:])
        full = static(self._full(image, kernel))
        canvas = np.zeros((batch, self.group * filter.shape[1], *full), input.dtype)
        for position, pixels in sliding_windows(
            canvas, kernel, self.strides, self.dilations, image
        ):
            element = weights[_at(position)].swapaxes(1, 2)
            pixels += (element @ grouped).reshape(pixels.shape)
        cut = self._cut(image, kernel)
        appended = [max(0, -pixels) if at % 2 else 0 for at, pixels in enumerate(cut)]
        canvas = pad_image(canvas, appended, 0)
        inside = [
            slice(cut[2 * axis], size - max(0, cut[2 * axis + 1]))
            for axis, size in enumerate(canvas.shape[2:])
        ]
        output = canvas[(slice(None), slice(None), *inside)]
        return output if bias is None else output + broadcast_channels(bias, self.spatial_rank)

    def explicit(self, b: Builder) -> Operand | None:
        """Build the same operation with explicit `pads` as the only padding parameter.

        Zeros are appended where needed.
        """
        has_pads = self.auto_pad is AutoPad.NONE and self.output_shape is None
        if has_pads and not any(self.output_padding):
            return None
        cut = list(self.pads)
        if not has_pads:
            image, kernel = static(shape_of(self.input)[2:]), static(shape_of(self.filter)[2:])
            cut = list(self._cut(image, kernel))
        # Pixels added by output_padding are outside the filter's reach, and cropped first.
        for axis, extra in enumerate(self.output_padding):
            cut[2 * axis + 1] -= extra
        missing = [max(0, -pixels) if at % 2 else 0 for at, pixels in enumerate(cut)]
        if not any(missing):
            return self._with_pads(b, cut, self.bias)
        output = self._with_pads(b, [max(0, pixels) for pixels in cut], None)
        output = b.add(Pad, output, (0, 0, 0, 0, *missing))
        return add_bias(b, output, self.bias, self.spatial_rank)

    def _with_pads(self, b: Builder, pads: Sequence[int], bias: Operand | None) -> Operand:
        return b.add(type(self), self.input, self.filter, bias, pads=pads, **self.settings())


@operator("CONV_2D_TRANSPOSE", core=True)
class Conv2DTranspose(ConvTranspose, spatial_rank=2):
    """Two-dimensional transposed convolution: the gradient of `CONV_2D` by its input.

    The filter is [C_in, C_out / group, kernel_h, kernel_w]. Each input pixel adds `filter * pixel`
    to the output at `y * stride_h + i * dilation_h - top`, likewise in width; input channel `c`
    contributes to the output channels of group `c * group // C_in`. Before cropping, the height is
    `full = (H - 1) * stride_h + dilation_h * (kernel_h - 1) + 1 + output_padding_h`; the last rows
    of an `output_padding` that no filter reaches are 0 (plus the bias).

    - `auto_pad` `NONE`: `top` and `bottom` rows of `pads` are cropped, so `H_out = full - top -
      bottom`; if `output_shape` (height, width) is present, it is the output size instead, and the
      bottom is cropped or filled with zeros as needed.
    - `VALID`: the same without padding.
    - `SAME`: `H_out = H * stride_h`. If `full` is larger, `(full - H_out) // 2` rows are cropped at
      the top and the rest at the bottom (`SAME_LOWER`: the larger half at the top); if it is
      smaller, the bottom is filled with zeros. The bias is also added to filled rows.

    If cropping leaves nothing, the output is empty or the device reports an error. An output
    channel is unspecified if its filter contains NaN or an infinity.

    Quantized as `CONV_2D`, the filter per channel along axis 1 and only with one group. Sources:
    NNAdapter's CONV_2D_TRANSPOSE, whose documentation has the filter as [C_out, C_in, …] where its
    drivers, Paddle and ONNX have C_in first; NNRt's CONV2D_TRANSPOSE; ONNX's ConvTranspose.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Operand | None:
        return self.explicit(b)


@operator("CONV_1D_TRANSPOSE")
class Conv1DTranspose(ConvTranspose, spatial_rank=1):
    """One-dimensional transposed convolution: the gradient of `CONV_1D` by its input.

    It is `CONV_2D_TRANSPOSE` on images of height 1. The filter is [C_in, C_out / group, kernel];
    each input pixel adds `filter * pixel` to the output at `x * stride + j * dilation - left`, and
    `pads` are left, right. Everything else is as in `CONV_2D_TRANSPOSE`, including quantization. If
    cropping leaves nothing, the output is empty or the device reports an error. An output channel
    is unspecified if its filter contains NaN or an infinity. Source: ONNX's ConvTranspose.
    """

    __slots__ = ()

    def decomposition(self, b: Builder) -> tuple[Operand, ...] | None:
        """Build the same operation on images of height 1; quantization and activation stay."""
        return build_planar(b, self, Conv2DTranspose)


@operator("CONV_3D_TRANSPOSE")
class Conv3DTranspose(ConvTranspose, spatial_rank=3):
    """Three-dimensional transposed convolution: the gradient of `CONV_3D` by its input.

    It is `CONV_2D_TRANSPOSE` with another axis: the filter is [C_in, C_out / group, kernel_d,
    kernel_h, kernel_w], and `pads` are front, back, top, bottom, left, right. Everything else is as
    in `CONV_2D_TRANSPOSE`, including quantization. If cropping leaves nothing, the output is empty
    or the device reports an error. An output channel is unspecified if its filter contains NaN or
    an infinity. Source: ONNX's ConvTranspose.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Operand | None:
        """Build a two-dimensional one per plane and filter plane, summed by a matrix product."""
        explicit = self.explicit(b)
        if explicit is not None:
            return explicit
        channels, depth, *plane = static(shape_of(self.input)[1:])
        _, per_group, *kernel = static(shape_of(self.filter))
        if not channels:
            return None
        planes_first = b.add(Transpose, self.input, (0, 2, 1, 3, 4))
        planes_of_filter = b.add(
            Conv2DTranspose,
            b.add(Reshape, planes_first, (-1, channels, *plane)),
            b.add(Reshape, self.filter, (channels, per_group * kernel[0], *kernel[1:])),
            pads=self.pads[2:],
            **self.settings(1),
        )
        out, (height, width) = per_group * self.group, static(shape_of(planes_of_filter)[2:])
        if 0 in (height, width):
            return None
        planes = b.add(Reshape, planes_of_filter, (-1, depth, out, kernel[0], height * width))
        planes = b.add(Transpose, planes, (0, 2, 4, 1, 3))
        planes = b.add(Reshape, planes, (-1, out, height * width, depth * kernel[0]))
        reached = np.arange(depth)[:, None] * self.strides[0]
        reached = (reached + np.arange(kernel[0]) * self.dilations[0]).reshape(-1, 1)
        front, back = self.pads[:2]
        full = (depth - 1) * self.strides[0] + extent(kernel[0], self.dilations[0])
        is_target = (reached == np.arange(front, full - back)).astype(
            self.input.type.element_type.dtype
        )
        summed = b.add(Transpose, b.add(MatMul, planes, is_target), (0, 1, 3, 2))
        result = b.add(Reshape, summed, (-1, out, full - back - front, height, width))
        return add_bias(b, result, self.bias, 3)


def add_bias(b: Builder, images: Operand, bias: Operand | None, spatial_rank: int) -> Operand:
    """Build images plus a per-channel bias."""
    if bias is None:
        return images
    return b.add(Add, images, b.add(Reshape, bias, (-1, *(1,) * spatial_rank)))


def check_kernel(kernel: Sequence[Dim]) -> None:
    """Raise ValueError if a filter is known to have no elements."""
    if 0 in kernel:
        raise ValueError(f"filter: {_by(kernel)} is no size for one")


def _by(sizes: Sequence[Dim]) -> str:
    return " by ".join(map(str, sizes))


def check_groups(group: int, channels: Dim, per_group: Dim | None, out: Dim) -> None:
    """Raise ValueError if the channels are known not to match the number of groups."""
    if group < 1:
        raise ValueError(f"group: {group} is not positive")
    if per_group is not None:
        unify(channels, per_group * group, "filter: its channels times group, and the input's")
    for sizes, which in ((channels, "input"), (out, "output")):
        if isinstance(sizes, int) and sizes % group:
            raise ValueError(f"group: {group} does not divide {sizes} {which} channels")
