"""Convolutions of [N, C, H, W] images with [C_out, C_in / group, kernel_h, kernel_w] filters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Dim, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.operator import Operator, UnknownRank, operator, shape_of
from crosschip.ops.shapes import same
from crosschip.ops.slots import (
    choice,
    fuse,
    integer,
    integers,
    optional_integers,
    optional_tensor,
    tensor,
)
from crosschip.ops.windows import AutoPad, output_size, pad_image, resolve_pads, taps


@operator("CONV_2D")
class Conv2D(Operator):
    """Two-dimensional convolution (a correlation: the filter is not flipped).

    `output[n, o, y, x] = bias[o] + sum over c, i, j of filter[o, c, i, j] *
    padded[n, g * C_in / group + c, y * stride_h + i * dilation_h, x * stride_w + j * dilation_w]`,
    where `g = o * group // C_out` and the image is padded with zeros, `pads` being top, bottom,
    left, right. A depthwise convolution has `group = C_in`. `H_out = (H + top + bottom -
    (dilation_h * (kernel_h - 1) + 1)) // stride_h + 1`, and likewise the width.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    filter = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    auto_pad = choice(AutoPad, AutoPad.NONE)
    pads = integers((0, 0, 0, 0), 4)
    strides = integers((1, 1), 2)
    group = integer(1)
    dilations = integers((1, 1), 2)
    fuse_code = fuse()

    def infer_shape(self) -> Shape:
        batch, channels, *image = four(shape_of(self.input), "input")
        out, per_group, *kernel = four(shape_of(self.filter), "filter")
        same(channels, per_group * self.group, "filter: its channels times group, and the input's")
        if self.group < 1:
            raise ValueError(f"group: {self.group} is not positive")
        if isinstance(out, int) and out % self.group:
            raise ValueError(f"group: {self.group} does not divide {out} output channels")
        check_bias(self.bias.type.shape if self.bias else None, out)
        size = output_size(
            image, _static(kernel), self.strides, self.dilations, self.auto_pad, self.pads
        )
        return (batch, out, *size)

    def reference(
        self,
        input: Array,
        filter: Array,
        bias: Array | None,
        auto_pad: AutoPad,
        pads: Sequence[int],
        strides: Sequence[int],
        group: int,
        dilations: Sequence[int],
    ) -> Array:
        kernel = filter.shape[2:]
        sides = resolve_pads(input.shape[2:], kernel, strides, dilations, auto_pad, pads)
        padded = pad_image(input, sides, 0)
        size = _static(
            output_size(padded.shape[2:], kernel, strides, dilations, AutoPad.VALID, pads)
        )
        batch, out = input.shape[0], filter.shape[0]
        weights = filter.reshape(group, out // group, *filter.shape[1:])
        result = np.zeros((batch, group, out // group, int(np.prod(size))), input.dtype)
        for i, j, pixels in taps(padded, kernel, strides, dilations, size):
            columns = pixels.reshape(batch, group, -1, result.shape[-1])
            if columns.shape[2] == 1:
                result += weights[:, :, :, i, j] * columns
            else:
                result += weights[:, :, :, i, j] @ columns
        output = result.reshape(batch, out, *size)
        return output if bias is None else output + bias.reshape(-1, 1, 1)


@operator("CONV_2D_TRANSPOSE")
class Conv2DTranspose(Operator):
    """Two-dimensional transposed convolution: the gradient of `CONV_2D` to its input.

    The filter is [C_in, C_out / group, kernel_h, kernel_w]. Each input pixel adds `filter *
    pixel` to the output at `y * stride_h + i * dilation_h - top`, likewise in width. The output
    has height `(H - 1) * stride_h - top - bottom + dilation_h * (kernel_h - 1) + 1 +
    output_padding_h`, unless `output_shape` (height, width) gives it. (NNAdapter's document
    prints the filter as [C_out, C_in, …]; its drivers, Paddle and ONNX have C_in first.)
    """

    __slots__ = ()
    input = tensor(FLOATS)
    filter = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    auto_pad = choice(AutoPad, AutoPad.NONE)
    pads = integers((0, 0, 0, 0), 4)
    strides = integers((1, 1), 2)
    group = integer(1)
    dilations = integers((1, 1), 2)
    output_padding = integers((0, 0), 2)
    output_shape = optional_integers(2)
    fuse_code = fuse()

    def infer_shape(self) -> Shape:
        batch, channels, *image = four(shape_of(self.input), "input")
        into, per_group, *kernel = four(shape_of(self.filter), "filter")
        same(channels, into, "filter: its first size, and the input's channels")
        out = per_group * self.group
        check_bias(self.bias.type.shape if self.bias else None, out)
        if self.output_shape is not None:
            return (batch, out, *self.output_shape)
        if self.auto_pad is AutoPad.SAME:
            sizes = [size * stride for size, stride in zip(image, self.strides, strict=True)]
            return (batch, out, *sizes)
        full = self._full_size(image, _static(kernel))
        pads = (0, 0, 0, 0) if self.auto_pad is AutoPad.VALID else self.pads
        return (batch, out, full[0] - pads[0] - pads[1], full[1] - pads[2] - pads[3])

    def reference(
        self,
        input: Array,
        filter: Array,
        bias: Array | None,
        auto_pad: AutoPad,
        pads: Sequence[int],
        strides: Sequence[int],
        group: int,
        dilations: Sequence[int],
        output_padding: Sequence[int],
        output_shape: Sequence[int] | None,
    ) -> Array:
        batch, channels, height, width = input.shape
        kernel = filter.shape[2:]
        full = _static(self._full_size(input.shape[2:], kernel))
        grouped = input.reshape(batch, group, channels // group, height * width)
        weights = filter.reshape(group, channels // group, *filter.shape[1:])
        canvas = np.zeros((batch, group * filter.shape[1], *full), input.dtype)
        for i, j, pixels in taps(canvas, kernel, strides, dilations, (height, width)):
            pixels += (weights[..., i, j].swapaxes(1, 2) @ grouped).reshape(pixels.shape)
        top, left, size = self._crop(full, (height, width), auto_pad, pads, output_shape)
        output = canvas[:, :, top : top + size[0], left : left + size[1]]
        missing = [max(0, top + size[0] - full[0]), max(0, left + size[1] - full[1])]
        output = pad_image(output, (0, missing[0], 0, missing[1]), 0)
        return output if bias is None else output + bias.reshape(-1, 1, 1)

    def _full_size(self, image: Sequence[Dim], kernel: Sequence[int]) -> Sequence[Dim]:
        return [
            (image[i] - 1) * self.strides[i]
            + self.dilations[i] * (kernel[i] - 1)
            + 1
            + self.output_padding[i]
            for i in range(2)
        ]

    def _crop(
        self,
        full: Sequence[int],
        image: Sequence[int],
        auto_pad: AutoPad,
        pads: Sequence[int],
        output_shape: Sequence[int] | None,
    ) -> tuple[int, int, Sequence[int]]:
        if auto_pad is AutoPad.SAME:
            size = [i * s for i, s in zip(image, self.strides, strict=True)]
            return max(0, full[0] - size[0]) // 2, max(0, full[1] - size[1]) // 2, size
        top, bottom, left, right = (0, 0, 0, 0) if auto_pad is AutoPad.VALID else pads
        return top, left, output_shape or [full[0] - top - bottom, full[1] - left - right]


def four(shape: Shape, slot: str) -> Shape:
    """The shape itself; `ValueError` if it does not have four axes."""
    if len(shape) != 4:
        raise ValueError(f"{slot}: has {len(shape)} axes, but must have 4")
    return shape


def check_bias(shape: Shape | None, channels: Dim) -> None:
    """`ValueError` if a bias is known not to be one number a channel."""
    if shape is not None:
        if len(shape) != 1:
            raise ValueError(f"bias: has {len(shape)} axes, but must have 1")
        same(shape[0], channels, "bias: its size, and the output's channels")


def _static(sizes: Sequence[Dim]) -> tuple[int, ...]:
    found = tuple(size for size in sizes if isinstance(size, int))
    if len(found) != len(sizes):
        raise UnknownRank
    return found
