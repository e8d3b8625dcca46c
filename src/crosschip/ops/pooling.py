"""Pooling of [N, C, H, W] images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.convolution import four
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.slots import choice, element_type, flag, fuse, integers, tensor
from crosschip.ops.windows import AutoPad, output_size, pad_image, resolve_pads, taps

_NO_DILATION = (1, 1)


class _Pool2D(Operator):
    """Base of poolings over a fixed window; `pads` are top, bottom, left, right.

    `H_out = floor((H + top + bottom - kernel_h) / stride_h) + 1`, with `ceil` in place of `floor`
    where `ceil_mode` is set, and likewise the width.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    auto_pad = choice(AutoPad, AutoPad.NONE)
    pads = integers((0, 0, 0, 0), 4)
    kernel_shape = integers(length=2)
    strides = integers((1, 1), 2)
    ceil_mode = flag(False)

    def pooled_shape(self) -> Shape:
        batch, channels, *image = four(shape_of(self.input), "input")
        size = output_size(
            image,
            self.kernel_shape,
            self.strides,
            _NO_DILATION,
            self.auto_pad,
            self.pads,
            ceil=self.ceil_mode,
        )
        return (batch, channels, *size)

    def windows(
        self,
        input: Array,
        auto_pad: AutoPad,
        pads: Sequence[int],
        kernel: Sequence[int],
        strides: Sequence[int],
        ceil: bool,
        border: float,
    ) -> tuple[Array, tuple[int, int, int, int]]:
        """All pixels of each window, [kernel_h * kernel_w, N, C, H_out, W_out], and the padding.

        Pixels outside the image are `border`.
        """
        image = input.shape[2:]
        sides = resolve_pads(image, kernel, strides, _NO_DILATION, auto_pad, pads)
        none = AutoPad.NONE
        size = output_size(image, kernel, strides, _NO_DILATION, none, sides, ceil=ceil)
        height, width = (int(s) for s in size if isinstance(s, int))
        needed = [(height - 1) * strides[0] + kernel[0], (width - 1) * strides[1] + kernel[1]]
        beyond = [max(0, needed[i] - image[i] - sides[2 * i] - sides[2 * i + 1]) for i in range(2)]
        top, bottom, left, right = sides
        padded = pad_image(input, (top, bottom + beyond[0], left, right + beyond[1]), border)
        found = taps(padded, kernel, strides, _NO_DILATION, (height, width))
        return np.stack([pixels for _, _, pixels in found]), sides


@operator("AVERAGE_POOL_2D")
class AveragePool2D(_Pool2D):
    """The mean of each window.

    Padding counts as zeros with `count_include_pad`, else it is left out of the mean. What a
    window of `ceil_mode` has beyond the padding is always left out.
    """

    __slots__ = ()
    count_include_pad = flag(False)
    fuse_code = fuse()

    def infer_shape(self) -> Shape:
        return self.pooled_shape()

    def reference(
        self,
        input: Array,
        auto_pad: AutoPad,
        pads: Sequence[int],
        kernel_shape: Sequence[int],
        strides: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
    ) -> Array:
        def windows(
            image: Array, auto_pad: AutoPad, pads: Sequence[int]
        ) -> tuple[Array, Sequence[int]]:
            return self.windows(image, auto_pad, pads, kernel_shape, strides, ceil_mode, 0.0)

        pixels, sides = windows(input, auto_pad, pads)
        inside = np.ones((1, 1, *input.shape[2:]), input.dtype)
        if count_include_pad:
            framed = pad_image(inside, sides, 1.0)
            counted, _ = windows(framed, AutoPad.VALID, sides)
        else:
            counted, _ = windows(inside, AutoPad.NONE, sides)
        return pixels.sum(axis=0) / counted.sum(axis=0)


@operator("MAX_POOL_2D")
class MaxPool2D(_Pool2D):
    """The maximum of each window; padding never is the maximum.

    `indices` is where the maximum is, as an offset into the [H, W] image without padding; the
    first in row order if there are several.
    """

    __slots__ = ()
    return_indices = flag(False)
    return_indices_dtype = element_type(ElementType.INT32)
    fuse_code = fuse()

    def output_count(self) -> int:
        return 2 if self.return_indices else 1

    def infer_shape(self) -> Sequence[Shape]:
        return [self.pooled_shape()] * self.output_count()

    def infer_element_type(self) -> Sequence[ElementType]:
        return [self.input.type.element_type, self.return_indices_dtype][: self.output_count()]

    def reference(
        self,
        input: Array,
        auto_pad: AutoPad,
        pads: Sequence[int],
        kernel_shape: Sequence[int],
        strides: Sequence[int],
        ceil_mode: bool,
        return_indices: bool,
        return_indices_dtype: ElementType,
    ) -> Sequence[Array]:
        def windows(image: Array, border: float) -> Array:
            return self.windows(image, auto_pad, pads, kernel_shape, strides, ceil_mode, border)[0]

        pixels = windows(input, -np.inf)
        if not return_indices:
            return [pixels.max(axis=0)]
        height, width = input.shape[2:]
        offsets = np.arange(1.0, height * width + 1).reshape(1, 1, height, width)
        places = np.broadcast_to(windows(offsets, 0.0) - 1, pixels.shape)
        best = pixels.argmax(axis=0)[None]
        return [pixels.max(axis=0), np.take_along_axis(places, best, axis=0)[0]]


@operator("ADAPTIVE_AVERAGE_POOL_2D")
class AdaptiveAveragePool2D(Operator):
    """The mean of each cell of a grid of `output_shape` (height, width) laid over the image.

    Cell `i` of `n` covers the rows from `floor(i * H / n)` to `ceil((i + 1) * H / n)`, and
    likewise the columns; cells can overlap by one pixel.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    output_shape = integers(length=2)

    def infer_shape(self) -> Shape:
        batch, channels, *_ = four(shape_of(self.input), "input")
        return (batch, channels, *self.output_shape)

    def reference(self, input: Array, output_shape: Sequence[int]) -> Array:
        def cells(size: int, count: int) -> list[slice]:
            return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]

        rows = cells(input.shape[2], output_shape[0])
        columns = cells(input.shape[3], output_shape[1])
        means = [[input[:, :, r, c].mean(axis=(2, 3)) for c in columns] for r in rows]
        return np.moveaxis(np.array(means), (0, 1), (2, 3))

    def decompose(self, b: Builder) -> Operand | None:
        from crosschip.ops.reduction import ReduceMean

        if self.output_shape == (1, 1):
            return b.add(ReduceMean, self.input, (2, 3), keepdim=True)
        image: list[Dim] = list(shape_of(self.input)[2:])
        sizes = [size for size in image if isinstance(size, int)]
        if len(sizes) < 2 or sizes[0] % self.output_shape[0] or sizes[1] % self.output_shape[1]:
            return None
        window = tuple(s // n for s, n in zip(sizes, self.output_shape, strict=True))
        return b.add(AveragePool2D, self.input, kernel_shape=window, strides=window)
