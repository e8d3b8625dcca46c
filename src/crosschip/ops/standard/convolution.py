"""Convolutions of [N, C, H, W] images with [C_out, C_in / group, kernel_h, kernel_w] filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape, unknown
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.bias import check_bias, check_quantized_bias
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import of_shape
from crosschip.ops.definition.shapes import of_rank, same
from crosschip.ops.definition.slots import (
    choice,
    fuse,
    integer,
    integers,
    optional_integers,
    optional_tensor,
    tensor,
)
from crosschip.ops.definition.windows import (
    AutoPad,
    Pads,
    Windows,
    extent,
    is_static,
    pad_image,
    sliding_windows,
    static,
)
from crosschip.ops.numerics.bilinear import Sampler, type_of_places
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import Pad


@operator("CONV_2D", core=True)
class Conv2D(Operator):
    """Two-dimensional convolution (a correlation: the filter is not flipped).

    `output[n, o, y, x] = bias[o] + sum over c, i, j of filter[o, c, i, j] *
    padded[n, g * C_in / group + c, y * stride_h + i * dilation_h, x * stride_w + j * dilation_w]`,
    where `g = o * group // C_out` and the image is padded with zeros, `pads` being top, bottom,
    left, right. A depthwise convolution has `group = C_in`. `H_out = (H + top + bottom -
    (dilation_h * (kernel_h - 1) + 1)) // stride_h + 1`, and likewise the width; with `auto_pad`
    `SAME` it is `ceil(H / stride_h)`. An image that is smaller than the filter with its padding is
    refused. Sums are in the element type, in any order; those of float16 and bfloat16 in float32.
    An output channel is not specified where an element of its filter is not finite.

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

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return 0 if axes[0] == 0 and set(axes[1:]) <= {None} else None

    def windows(self, kernel: Sequence[int]) -> Windows:
        """The windows of a filter of a size."""
        return Windows(kernel, self.strides, self.dilations, self.auto_pad, self.pads)

    def infer_shape(self) -> Shape:
        filter = of_rank(shape_of(self.filter), 4, "filter")
        check_quantized_bias(self.input, self.filter, self.bias)
        shape = convolution_shape(shape_of(self.input), filter, self.group, self.windows)
        check_bias(self.bias.type.shape if self.bias else None, filter[0])
        return shape

    def reference(self, input: Array, filter: Array, bias: Array | None) -> Array:
        output = convolved(input, filter, self.windows(filter.shape[2:]), self.group)
        return output if bias is None else output + bias.reshape(-1, 1, 1)

    def decompose(self, b: Builder) -> Operand | None:
        """The same with explicit padding, where it was left to `auto_pad`."""
        if self.auto_pad is AutoPad.NONE:
            return None
        image, kernel = static(shape_of(self.input)[2:]), static(shape_of(self.filter)[2:])
        if 0 in image:
            return None
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


def convolution_shape(
    input: Shape, filter: Shape, group: int, windows: Callable[[tuple[int, ...]], Windows]
) -> Shape:
    """The shape of a convolution.

    Args:
        input: the shape of the images.
        filter: that of the filter, of four axes.
        group: the number of groups.
        windows: the windows of a filter of a size.

    Raises:
        ValueError: there is no such convolution; the message starts with the slot.
    """
    batch, channels, *image = of_rank(input, 4, "input")
    out, per_group, *kernel = filter
    check_groups(group, channels, per_group, out)
    check_kernel(kernel)
    if not is_static(kernel):
        return (batch, out, unknown(), unknown())
    return (batch, out, *windows(static(kernel)).counts(image))


def convolved(input: Array, filter: Array, windows: Windows, group: int) -> Array:
    """The convolution of images with a filter."""
    size = static(windows.counts(input.shape[2:]))
    batch, out = input.shape[0], filter.shape[0]
    weights = filter.reshape(group, out // group, *filter.shape[1:])
    result = np.zeros((batch, group, out // group, int(np.prod(size))), input.dtype)
    for (i, j), pixels in windows.sliding_windows(input, 0):
        columns = pixels.reshape(batch, group, filter.shape[1], result.shape[-1])
        if columns.shape[2] == 1:
            result += weights[:, :, :, i, j] * columns
        else:
            result += weights[:, :, :, i, j] @ columns
    return result.reshape(batch, out, *size)


@operator("CONV_2D_TRANSPOSE", core=True)
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
    - `SAME`: `H_out = H * stride_h`. Where `full` is more, `(full - H_out) // 2` rows are cut off
      at the top and the rest at the bottom, with `SAME_LOWER` the larger half at the top; where it
      is less, zeros fill up the bottom. To what is filled up, the bias is added as well.

    Where nothing is left, there are no pixels, or is an error. An output channel is not specified
    where an element of its filter is not finite.

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

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return 0 if axes[0] == 0 and set(axes[1:]) <= {None} else None

    def infer_shape(self) -> Shape:
        batch, channels, *image = of_rank(shape_of(self.input), 4, "input")
        into, per_group, *kernel = of_rank(shape_of(self.filter), 4, "filter")
        same(channels, into, "filter: its first size, and the input's channels")
        check_quantized_bias(self.input, self.filter, self.bias, channel_axis=1)
        check_groups(self.group, channels, None, 0)
        out = per_group * self.group
        check_bias(self.bias.type.shape if self.bias else None, out)
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
            if min(self.output_shape) < 0:
                raise ValueError(f"output_shape: {list(self.output_shape)} has a negative size")
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
        """The pixels to cut off: top, bottom, left, right; at the end less than 0 to fill up."""
        full, sizes = static(self._full(image, kernel)), static(self._sizes(image, kernel))
        pads = list(self._given_pads())
        for axis in range(2):
            total = full[axis] - sizes[axis]
            if self.auto_pad.keeps_size:
                pads[2 * axis] = self.auto_pad.divided(max(0, total))[0]
            pads[2 * axis + 1] = total - pads[2 * axis]
        return pads[0], pads[1], pads[2], pads[3]

    def reference(self, input: Array, filter: Array, bias: Array | None) -> Array:
        batch, channels, *image = input.shape
        kernel = filter.shape[2:]
        grouped = input.reshape(batch, self.group, channels // self.group, image[0] * image[1])
        weights = filter.reshape(self.group, channels // self.group, *filter.shape[1:])
        full = static(self._full(image, kernel))
        canvas = np.zeros((batch, self.group * filter.shape[1], *full), input.dtype)
        for (i, j), pixels in sliding_windows(canvas, kernel, self.strides, self.dilations, image):
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


@operator("DEFORMABLE_CONV_2D")
class DeformableConv2D(Operator):
    """Two-dimensional convolution whose filter elements are moved, each by an offset of its own.

    Like `CONV_2D`, but element (i, j) of the filter meets, for output pixel (y, x), the image at
    `y * stride_h - top + i * dilation_h + dy` and `x * stride_w - left + j * dilation_w + dx`,
    interpolated linearly between four pixels, of which those outside of the image are 0, and
    multiplied by the mask. The channels are divided into `deformable_group` groups with offsets of
    their own: with `k = i * kernel_w + j` and `K = kernel_h * kernel_w`, channel `2 * (g * K + k)`
    of `offset` is `dy` for group `g`, the next one is `dx`, and channel `g * K + k` of `mask` is
    the mask; both have the height and width of the output. Without `mask`, it is 1.

    An image is not specified where a pixel, an offset or a mask of it is not finite, an output
    channel where an element of its filter is not.

    Quantized as `CONV_2D`, with all of input, offset and mask. Sources: NNAdapter's
    DEFORMABLE_CONV_2D, Paddle's deformable_conv, ONNX's DeformConv; Zhu et al., Deformable
    ConvNets v2, 2018 (arXiv:1811.11168).
    """

    __slots__ = ()
    input = tensor(FLOATS)
    offset = tensor(FLOATS, like="input")
    mask = optional_tensor(FLOATS, like="input")
    filter = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    pads = integers((0, 0, 0, 0), 4)
    strides = integers((1, 1), 2)
    group = integer(1)
    deformable_group = integer(1)
    dilations = integers((1, 1), 2)
    fuse_code = fuse()

    def windows(self, kernel: Sequence[int]) -> Windows:
        """The windows of a filter of a size before they are deformed."""
        return Windows(kernel, self.strides, self.dilations, AutoPad.NONE, self.pads)

    def infer_shape(self) -> Shape:
        batch, channels, *image = of_rank(shape_of(self.input), 4, "input")
        out, per_group, *kernel = of_rank(shape_of(self.filter), 4, "filter")
        check_groups(self.group, channels, per_group, out)
        check_bias(self.bias.type.shape if self.bias else None, out)
        if self.deformable_group < 1 or (
            isinstance(channels, int) and (channels % self.deformable_group)
        ):
            raise ValueError(
                f"deformable_group: {self.deformable_group} does not divide {channels} channels"
            )
        check_kernel(kernel)
        if not is_static(kernel):
            return (batch, out, *of_rank(shape_of(self.offset), 4, "offset")[2:])
        size = self.windows(static(kernel)).counts(image)
        count: Dim = self.deformable_group * int(np.prod(static(kernel)))
        for slot, operand, numbers in (("offset", self.offset, 2), ("mask", self.mask, 1)):
            if operand is not None and operand.type.shape is not None:
                found = of_rank(operand.type.shape, 4, slot)
                for own, wanted in zip(found, (batch, count * numbers, *size), strict=True):
                    same(own, wanted, f"{slot}: its shape, and that of all filter positions")
        return (batch, out, *size)

    def reference(
        self, input: Array, offset: Array, mask: Array | None, filter: Array, bias: Array | None
    ) -> Array:
        (batch, _, *image), (out, _, *kernel) = input.shape, filter.shape
        size = offset.shape[2:]
        images = input.reshape(
            batch * self.deformable_group,
            input.shape[1] // self.deformable_group,
            image[0] * image[1],
        )
        undeformed = self._undeformed(kernel, size).astype(offset.dtype)
        pixels = size[0] * size[1]
        places = offset.reshape(len(images), kernel[0] * kernel[1], 2, pixels) + undeformed
        y, x = np.moveaxis(places, 2, 0).reshape(2, len(images), kernel[0] * kernel[1] * pixels)
        columns = Sampler(image).sample(images, y, x)
        if mask is not None:
            columns = columns * mask.reshape(len(images), 1, y.shape[1])
        depth = filter.shape[1] * kernel[0] * kernel[1]
        weights = filter.reshape(self.group, out // self.group, depth)
        output = weights @ columns.reshape(batch, self.group, depth, pixels)
        output = output.reshape(batch, out, *size)
        return output if bias is None else output + bias.reshape(-1, 1, 1)

    def decompose(self, b: Builder) -> Operand:
        """Sampled columns, times the filter as a matrix."""
        batch, channels, *image = static(shape_of(self.input))
        out, per_group, *kernel = static(shape_of(self.filter))
        size = static(self.windows(kernel).counts(image))
        count, pixels = batch * self.deformable_group, size[0] * size[1]
        elements = kernel[0] * kernel[1]
        shifts = of_shape(b, self.offset, (count, elements, 2, pixels))
        wide = type_of_places(self.offset)
        undeformed = self._undeformed(kernel, size).astype(wide.dtype)
        places = b.add(Add, b.add(Cast, shifts, wide), undeformed)
        y, x = (
            of_shape(b, b.add(Gather, places, np.array(axis), axis=2), (count, elements * pixels))
            for axis in range(2)
        )
        shape = (count, channels // self.deformable_group, image[0] * image[1])
        columns = Sampler(image).build(b, of_shape(b, self.input, shape), y, x)
        if self.mask is not None:
            columns = b.add(Mul, columns, of_shape(b, self.mask, (count, 1, elements * pixels)))
        depth = per_group * kernel[0] * kernel[1]
        matrix = of_shape(b, self.filter, (self.group, out // self.group, depth))
        columns = of_shape(b, columns, (batch, self.group, depth, pixels))
        output = of_shape(b, b.add(MatMul, matrix, columns), (batch, out, *size))
        if self.bias is None:
            return output
        return b.add(Add, output, b.add(Reshape, self.bias, (-1, 1, 1)))

    def _undeformed(self, kernel: Sequence[int], size: Sequence[int]) -> Array:
        """The places where the filter meets the image with no offset, [K, 2, H_out * W_out]."""
        axes = [
            np.arange(kernel[axis])[:, None] * self.dilations[axis]
            + np.arange(size[axis]) * self.strides[axis]
            - self.pads[2 * axis]
            for axis in range(2)
        ]
        shape = (kernel[0], kernel[1], size[0], size[1])
        y = np.broadcast_to(axes[0][:, None, :, None], shape)
        x = np.broadcast_to(axes[1][None, :, None, :], shape)
        return np.stack([y, x], axis=2).reshape(kernel[0] * kernel[1], 2, size[0] * size[1])
