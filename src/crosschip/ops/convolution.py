"""Convolutions of [N, C, H, W] images with [C_out, C_in / group, kernel_h, kernel_w] filters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Quantization, Shape, unknown
from crosschip.ir.types import FLOATS
from crosschip.ops.bias import check_quantized_bias
from crosschip.ops.elementwise import Add
from crosschip.ops.examples import Sample, example, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.layout import Reshape
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.padding import Pad
from crosschip.ops.shapes import of_rank, same
from crosschip.ops.slots import (
    choice,
    fuse,
    integer,
    integers,
    optional_integers,
    optional_tensor,
    tensor,
)
from crosschip.ops.windows import AutoPad, Pads, Windows, extent, is_static, pad_image, static, taps

_NHWC = "input and output are NHWC; the weight is [C_out, kernel_h, kernel_w, C_in / group]"
_PAD_MODE = "PAD_MODE 0 is SAME, 1 and 2 are VALID; with PAD, auto_pad is NONE"
_INT8_BIAS = "an int32 bias has no quantization parameters: its scale is input's times weight's"


def _nnrt_parameters(*more: tuple[str, str]) -> dict[str, str]:
    shared = {
        "STRIDES": "strides",
        "PAD": "pads",
        "DILATION": "dilations",
        "PAD_MODE": "auto_pad",
        "ACTIVATION_TYPE": "fuse_code",
    }
    return {**shared, **dict(more)}


def _int8(*shape: int, scale: tuple[float, ...], axis: int | None = None) -> Sample:
    quantization = Quantization(scale, axis=axis)
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128, quantization=quantization)


def _uint8(*shape: int, quantization: Quantization) -> Sample:
    return random(*shape, dtype=ElementType.UINT8, low=0, high=256, quantization=quantization)


def _int32(size: int, scale: tuple[float, ...], axis: int | None = None) -> Sample:
    quantization = Quantization(scale, axis=axis)
    return random(size, dtype=ElementType.INT32, low=-900, high=900, quantization=quantization)


@operator(
    "CONV_2D",
    nnadapter=NNAdapter(14),
    nnrt=(
        NNRt(
            8,
            "CONV2D",
            inputs=("input", "filter", "bias"),
            parameters=_nnrt_parameters(("GROUP", "group")),
            translation=f"{_NHWC}; {_PAD_MODE}; {_INT8_BIAS}",
        ),
        NNRt(
            10,
            "DEPTHWISE_CONV2D_NATIVE",
            inputs=("input", "filter", "bias"),
            parameters=_nnrt_parameters(),
            translation=f"{_NHWC}; group is C_in; {_PAD_MODE}; {_INT8_BIAS}",
        ),
    ),
    hdi=(NodeType.CONV2D_FUSION,),
    onnx=("Conv", "ConvInteger", "QLinearConv"),
    core=True,
)
class Conv2D(Operator):
    """Two-dimensional convolution (a correlation: the filter is not flipped).

    `output[n, o, y, x] = bias[o] + sum over c, i, j of filter[o, c, i, j] *
    padded[n, g * C_in / group + c, y * stride_h + i * dilation_h, x * stride_w + j * dilation_w]`,
    where `g = o * group // C_out` and the image is padded with zeros, `pads` being top, bottom,
    left, right. A depthwise convolution has `group = C_in`. `H_out = (H + top + bottom -
    (dilation_h * (kernel_h - 1) + 1)) // stride_h + 1`, and likewise the width; with `auto_pad`
    `SAME` it is `ceil(H / stride_h)`. An image that is smaller than the filter with its padding is
    refused. A padded pixel takes part as the number 0, so an infinite filter element makes NaN of
    it. Sums are in the element type, in any order; those of float16 and bfloat16 in float32.

    Quantized: int8 input, symmetric per layer; int8 filter, symmetric per layer or per channel
    along axis 0; int32 bias, whose scale is the input's times the filter's, channel by channel.

    Sources: NNAdapter's CONV_2D, NNRt's CONV2D and DEPTHWISE_CONV2D_NATIVE, ONNX's Conv.
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

    examples = (
        example(input=random(2, 3, 5, 6), filter=random(4, 3, 3, 2), bias=random(4)),
        example(
            input=random(1, 4, 6, 7),
            filter=random(6, 2, 2, 3),
            pads=(1, 0, 2, 1),
            strides=(2, 1),
            group=2,
            dilations=(1, 2),
        ),
        example(
            input=random(1, 3, 5, 5), filter=random(6, 1, 3, 3), auto_pad=1, strides=(2, 2), group=3
        ),
        example(input=random(1, 2, 4, 5), filter=random(2, 2, 2, 2), auto_pad=3, fuse_code=1),
        example(input=random(1, 2, 4, 5), filter=random(2, 2, 2, 2), auto_pad=2, pads=(1, 1, 1, 1)),
        example(
            input=random(1, 2, 4, 4, dtype=ElementType.FLOAT16),
            filter=random(2, 2, 3, 3, dtype=ElementType.FLOAT16),
        ),
        example(
            input=_int8(1, 2, 5, 5, scale=(0.05,)),
            filter=_int8(3, 2, 3, 3, scale=(0.02,)),
            bias=_int32(3, scale=(0.001,)),
            pads=(1, 1, 1, 1),
            fuse_code=1,
            quantization=Quantization((0.5,)),
        ),
        example(
            input=_int8(1, 2, 5, 5, scale=(0.05,)),
            filter=_int8(3, 2, 3, 3, scale=(0.02, 0.01, 0.04), axis=0),
            bias=_int32(3, scale=(0.001, 0.0005, 0.002), axis=0),
            quantization=Quantization((0.5,)),
        ),
        example(
            input=_uint8(1, 2, 5, 5, quantization=Quantization((0.05,), (128,))),
            filter=_uint8(
                *(3, 2, 2, 2), quantization=Quantization((0.02, 0.01, 0.04), (128, 100, 140), 0)
            ),
            quantization=Quantization((0.3,), (110,)),
        ),
    )

    def windows(self, kernel: Sequence[int]) -> Windows:
        """Where a filter's windows lie."""
        return Windows(kernel, self.strides, self.dilations, self.auto_pad, self.pads)

    def infer_shape(self) -> Shape:
        batch, channels, *image = of_rank(shape_of(self.input), 4, "input")
        out, per_group, *kernel = of_rank(shape_of(self.filter), 4, "filter")
        check_groups(self.group, channels, per_group, out)
        check_bias(self.bias.type.shape if self.bias else None, out)
        check_quantized_bias(self.input, self.filter, self.bias)
        check_kernel(kernel)
        if not is_static(kernel):
            return (batch, out, unknown(), unknown())
        return (batch, out, *self.windows(static(kernel)).counts(image))

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
        windows = Windows(filter.shape[2:], strides, dilations, auto_pad, pads)
        size = static(windows.counts(input.shape[2:]))
        batch, out = input.shape[0], filter.shape[0]
        weights = filter.reshape(group, out // group, *filter.shape[1:])
        result = np.zeros((batch, group, out // group, int(np.prod(size))), input.dtype)
        for i, j, pixels in windows.taps(input, 0):
            columns = pixels.reshape(batch, group, filter.shape[1], result.shape[-1])
            if columns.shape[2] == 1:
                result += weights[:, :, :, i, j] * columns
            else:
                result += weights[:, :, :, i, j] @ columns
        output = result.reshape(batch, out, *size)
        return output if bias is None else output + bias.reshape(-1, 1, 1)

    def decompose(self, b: Builder) -> Operand | None:
        """The same with explicit padding, where it was left to `auto_pad`."""
        if self.auto_pad is AutoPad.NONE:
            return None
        image, kernel = static(shape_of(self.input)[2:]), static(shape_of(self.filter)[2:])
        return b.add(
            Conv2D,
            self.input,
            self.filter,
            self.bias,
            pads=self.windows(kernel).sides(image),
            strides=self.strides,
            group=self.group,
            dilations=self.dilations,
        )


@operator(
    "CONV_2D_TRANSPOSE",
    nnadapter=NNAdapter(15, translation="the filter is [C_in, C_out / group, …] in use"),
    nnrt=(
        NNRt(
            9,
            "CONV2D_TRANSPOSE",
            inputs=("input", "filter", "bias"),
            parameters=_nnrt_parameters(("OUTPUT_PADDINGS", "output_padding"), ("GROUP", "group")),
            translation=f"{_NHWC}; {_PAD_MODE}; {_INT8_BIAS}",
        ),
    ),
    hdi=(NodeType.CONV2D_TRANSPOSE_FUSION,),
    onnx=("ConvTranspose",),
    core=True,
)
class Conv2DTranspose(Operator):
    """Two-dimensional transposed convolution: the gradient of `CONV_2D` to its input.

    The filter is [C_in, C_out / group, kernel_h, kernel_w]. Each input pixel adds `filter *
    pixel` to the output at `y * stride_h + i * dilation_h - top`, likewise in width; input channel
    `c` reaches the output channels of group `c * group // C_in`. Before anything is cut off, the
    height is `full = (H - 1) * stride_h + dilation_h * (kernel_h - 1) + 1 + output_padding_h`; the
    last rows of an `output_padding` that no filter reaches are 0 (plus the bias).

    - `auto_pad` `NONE`: `top` and `bottom` rows of `pads` are cut off, so `H_out = full - top -
      bottom`; but if `output_shape` (height, width) is given, that is the height, whatever
      `bottom` is, cut off or filled up with zeros at the bottom.
    - `VALID`: the same with no padding.
    - `SAME`: `H_out = H * stride_h`, cutting off `(full - H_out) // 2` rows at the top and the rest
      at the bottom; `SAME_LOWER` cuts off the larger half at the top.

    Quantized as `CONV_2D`, the filter per channel along axis 1 and with one group only. Sources:
    NNAdapter's CONV_2D_TRANSPOSE, whose document prints the filter as [C_out, C_in, …] where its
    drivers, Paddle and ONNX have C_in first; NNRt's CONV2D_TRANSPOSE; ONNX's ConvTranspose.
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

    examples = (
        example(input=random(2, 3, 4, 5), filter=random(3, 2, 3, 2), bias=random(2)),
        example(
            input=random(1, 4, 3, 4),
            filter=random(4, 3, 3, 3),
            pads=(1, 0, 1, 2),
            strides=(2, 3),
            group=2,
            dilations=(1, 2),
            output_padding=(1, 0),
        ),
        example(input=random(1, 2, 3, 4), filter=random(2, 2, 3, 3), auto_pad=1, strides=(2, 2)),
        example(input=random(1, 2, 3, 4), filter=random(2, 2, 4, 2), auto_pad=3, strides=(3, 1)),
        example(
            input=random(1, 2, 3, 4),
            filter=random(2, 2, 3, 3),
            pads=(1, 1, 1, 1),
            strides=(2, 2),
            output_shape=(6, 7),
            fuse_code=1,
        ),
        example(
            input=_int8(1, 2, 3, 3, scale=(0.05,)),
            filter=_int8(2, 3, 3, 3, scale=(0.02,)),
            bias=_int32(3, scale=(0.001,)),
            strides=(2, 2),
            quantization=Quantization((0.5,)),
        ),
    )

    def infer_shape(self) -> Shape:
        batch, channels, *image = of_rank(shape_of(self.input), 4, "input")
        into, per_group, *kernel = of_rank(shape_of(self.filter), 4, "filter")
        same(channels, into, "filter: its first size, and the input's channels")
        check_groups(self.group, channels, None, 0)
        out = per_group * self.group
        check_bias(self.bias.type.shape if self.bias else None, out)
        check_quantized_bias(self.input, self.filter, self.bias, channel_axis=1)
        if 0 in image:
            raise ValueError(f"input: an image of {image[0]} by {image[1]} has no pixels")
        if min(self.output_padding) < 0:
            raise ValueError(f"output_padding: {list(self.output_padding)} must not be negative")
        check_kernel(kernel)
        if not is_static(kernel):
            return (batch, out, unknown(), unknown())
        Windows(static(kernel), self.strides, self.dilations, self.auto_pad, self.pads).check()
        return (batch, out, *self._sizes(image, static(kernel)))

    def _sizes(self, image: Sequence[Dim], kernel: Sequence[int]) -> Sequence[Dim]:
        if self.auto_pad.keeps_size:
            return [size * stride for size, stride in zip(image, self.strides, strict=True)]
        if self.output_shape is not None:
            return self.output_shape
        top, bottom, left, right = self._given_pads()
        height, width = self._full(image, kernel)
        for size in (height - top - bottom, width - left - right):
            if isinstance(size, int) and size < 0:
                raise ValueError(f"pads: {list(self.pads)} cut off more than there is")
        return height - top - bottom, width - left - right

    def _given_pads(self) -> Sequence[int]:
        return self.pads if self.auto_pad is AutoPad.NONE else (0, 0, 0, 0)

    def _full(self, image: Sequence[Dim], kernel: Sequence[int]) -> Sequence[Dim]:
        """Height and width before anything is cut off."""
        return [
            (image[axis] - 1) * self.strides[axis]
            + extent(kernel[axis], self.dilations[axis])
            + self.output_padding[axis]
            for axis in range(2)
        ]

    def _cut(self, image: Sequence[int], kernel: Sequence[int]) -> Pads:
        """What is cut off: top, bottom, left, right; at the end less than 0 to fill up."""
        full, sizes = static(self._full(image, kernel)), static(self._sizes(image, kernel))
        pads = list(self._given_pads())
        for axis in range(2):
            total = full[axis] - sizes[axis]
            if self.auto_pad.keeps_size:
                pads[2 * axis] = self.auto_pad.divided(max(0, total))[0]
            pads[2 * axis + 1] = total - pads[2 * axis]
        return pads[0], pads[1], pads[2], pads[3]

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
        batch, channels, *image = input.shape
        kernel = filter.shape[2:]
        grouped = input.reshape(batch, group, channels // group, image[0] * image[1])
        weights = filter.reshape(group, channels // group, *filter.shape[1:])
        full = static(self._full(image, kernel))
        canvas = np.zeros((batch, group * filter.shape[1], *full), input.dtype)
        for i, j, pixels in taps(canvas, kernel, strides, dilations, image):
            pixels += (weights[..., i, j].swapaxes(1, 2) @ grouped).reshape(pixels.shape)
        top, bottom, left, right = self._cut(image, kernel)
        canvas = pad_image(canvas, (0, max(0, -bottom), 0, max(0, -right)), 0)
        height, width = canvas.shape[2:]
        output = canvas[:, :, top : height - max(0, bottom), left : width - max(0, right)]
        return output if bias is None else output + bias.reshape(-1, 1, 1)

    def decompose(self, b: Builder) -> Operand | None:
        """The same with explicit `pads` and nothing else, filled up with zeros if need be."""
        given = self.auto_pad is AutoPad.NONE and self.output_shape is None
        if given and not any(self.output_padding):
            return None
        cut = list(self.pads)
        if not given:
            image, kernel = static(shape_of(self.input)[2:]), static(shape_of(self.filter)[2:])
            cut = list(self._cut(image, kernel))
        # What output_padding adds is beyond the filter's reach, and the first that is cut off.
        cut[1] -= self.output_padding[0]
        cut[3] -= self.output_padding[1]
        missing = (0, max(0, -cut[1]), 0, max(0, -cut[3]))
        if not any(missing):
            return self._explicit(b, cut, self.bias)
        output = self._explicit(b, [max(0, pixels) for pixels in cut], None)
        output = b.add(Pad, output, (0, 0, 0, 0, *missing))
        if self.bias is None:
            return output
        return b.add(Add, output, b.add(Reshape, self.bias, (-1, 1, 1)))

    def _explicit(self, b: Builder, pads: Sequence[int], bias: Operand | None) -> Operand:
        return b.add(
            Conv2DTranspose,
            self.input,
            self.filter,
            bias,
            pads=pads,
            strides=self.strides,
            group=self.group,
            dilations=self.dilations,
        )


def check_kernel(kernel: Sequence[Dim]) -> None:
    """`ValueError` if a filter is known to have no elements."""
    if 0 in kernel:
        raise ValueError(f"filter: {kernel[0]} by {kernel[1]} is no size for one")


def check_groups(group: int, channels: Dim, per_group: Dim | None, out: Dim) -> None:
    """`ValueError` if channels are known not to divide into groups as a filter has them."""
    if group < 1:
        raise ValueError(f"group: {group} is not positive")
    if per_group is not None:
        same(channels, per_group * group, "filter: its channels times group, and the input's")
    for sizes, which in ((channels, "input"), (out, "output")):
        if isinstance(sizes, int) and sizes % group:
            raise ValueError(f"group: {group} does not divide {sizes} {which} channels")


def check_bias(shape: Shape | None, channels: Dim) -> None:
    """`ValueError` if a bias is known not to be one number a channel."""
    if shape is not None:
        same(of_rank(shape, 1, "bias")[0], channels, "bias: its size, and the output's channels")
