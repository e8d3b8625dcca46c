"""Deformable convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape
from crosschip.ir.dimension import product
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.quantized import check_bias
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import reshape_static
from crosschip.ops.definition.shapes import require_rank, unify
from crosschip.ops.definition.slots import fuse, integer, integers, optional_tensor, tensor
from crosschip.ops.definition.windows import AutoPad, Windows, is_static, static
from crosschip.ops.numerics.bilinear import Sampler, coordinate_type
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import add_bias, check_groups, check_kernel
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.matrix import MatMul


@operator("DEFORMABLE_CONV_2D")
class DeformableConv2D(Operator):
    """Two-dimensional convolution whose filter elements are displaced by individual offsets.

    As in `CONV_2D`, but for output pixel (y, x), element (i, j) of the filter is multiplied by the
    image at `y * stride_h - top + i * dilation_h + dy` and `x * stride_w - left + j * dilation_w +
    dx`, interpolated bilinearly (pixels outside the image are 0), and by the mask. The channels are
    divided into `deformable_group` groups with separate offsets: with `k = i * kernel_w + j` and `K
    = kernel_h * kernel_w`, channel `2 * (g * K + k)` of `offset` is `dy` for group `g`, the next
    one is `dx`, and channel `g * K + k` of `mask` is the mask; both have the height and width of
    the output. Without `mask`, it is 1.

    An image is unspecified if its pixels, offsets or masks contain NaN or an infinity, an output
    channel if its filter does.

    Quantized as `CONV_2D`, with all of input, offset and mask. Sources: NNAdapter's
    DEFORMABLE_CONV_2D, Paddle's deformable_conv, ONNX's DeformConv; Zhu et al., Deformable ConvNets
    v2, 2018 (arXiv:1811.11168).
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
        """Return the windows for a kernel size, before deformation."""
        return Windows(kernel, self.strides, self.dilations, AutoPad.NONE, self.pads)

    def multiply_adds(self) -> Dim:
        return product(shape_of(self.outputs[0])) * product(shape_of(self.filter)[1:])

    def infer_shape(self) -> Shape:
        batch, channels, *image = require_rank(shape_of(self.input), 4, "input")
        out, per_group, *kernel = require_rank(shape_of(self.filter), 4, "filter")
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
            return (batch, out, *require_rank(shape_of(self.offset), 4, "offset")[2:])
        size = self.windows(static(kernel)).counts(image)
        count: Dim = self.deformable_group * int(np.prod(static(kernel)))
        for slot, operand, numbers in (("offset", self.offset, 2), ("mask", self.mask, 1)):
            if operand is not None and operand.type.shape is not None:
                shape = require_rank(operand.type.shape, 4, slot)
                for actual, expected in zip(shape, (batch, count * numbers, *size), strict=True):
                    unify(actual, expected, f"{slot}: its shape, and that of all filter positions")
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
        regular = self._regular_coordinates(kernel, size).astype(offset.dtype)
        pixels = size[0] * size[1]
        coordinates = offset.reshape(len(images), kernel[0] * kernel[1], 2, pixels) + regular
        y, x = np.moveaxis(coordinates, 2, 0).reshape(
            2, len(images), kernel[0] * kernel[1] * pixels
        )
        columns = Sampler(image).sample(images, y, x)
        if mask is not None:
            columns = columns * mask.reshape(len(images), 1, y.shape[1])
        depth = filter.shape[1] * kernel[0] * kernel[1]
        weights = filter.reshape(self.group, out // self.group, depth)
        output = weights @ columns.reshape(batch, self.group, depth, pixels)
        output = output.reshape(batch, out, *size)
        return output if bias is None else output + bias.reshape(-1, 1, 1)

    def decompose(self, b: Builder) -> Operand:
        """Build the product of the filter matrix and sampled columns."""
        batch, channels, *image = static(shape_of(self.input))
        out, per_group, *kernel = static(shape_of(self.filter))
        size = static(self.windows(kernel).counts(image))
        count, pixels = batch * self.deformable_group, size[0] * size[1]
        elements = kernel[0] * kernel[1]
        shifts = reshape_static(b, self.offset, (count, elements, 2, pixels))
        wide = coordinate_type(self.offset)
        regular = self._regular_coordinates(kernel, size).astype(wide.dtype)
        coordinates = b.add(Add, b.add(Cast, shifts, wide), regular)
        y, x = (
            reshape_static(
                b, b.add(Gather, coordinates, np.array(axis), axis=2), (count, elements * pixels)
            )
            for axis in range(2)
        )
        shape = (count, channels // self.deformable_group, image[0] * image[1])
        columns = Sampler(image).build(b, reshape_static(b, self.input, shape), y, x)
        if self.mask is not None:
            columns = b.add(
                Mul, columns, reshape_static(b, self.mask, (count, 1, elements * pixels))
            )
        depth = per_group * kernel[0] * kernel[1]
        matrix = reshape_static(b, self.filter, (self.group, out // self.group, depth))
        columns = reshape_static(b, columns, (batch, self.group, depth, pixels))
        output = reshape_static(b, b.add(MatMul, matrix, columns), (batch, out, *size))
        return add_bias(b, output, self.bias, 2)

    def _regular_coordinates(self, kernel: Sequence[int], size: Sequence[int]) -> Array:
        """Return the image coordinates of filter elements without offset, [K, 2, H_out * W_out]."""
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
