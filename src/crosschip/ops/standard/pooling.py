"""Pooling of [N, C, H, W] images over windows of a fixed size, or over a grid of a given size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes
from crosschip.ops.definition.shapes import require_rank
from crosschip.ops.definition.slots import (
    Parameter,
    choice,
    flag,
    fuse,
    index_type,
    integers,
    tensor,
)
from crosschip.ops.definition.windows import AutoPad, Windows, is_static, static
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean
from crosschip.ops.standard.searching import ArgMax
from crosschip.ops.standard.slicing import Slice

_BYTES = frozenset({ElementType.INT8, ElementType.UINT8})


def _dilations() -> Parameter[tuple[int, ...]]:
    return integers((1, 1), 2)


class Pool2D(Operator):
    """Base of poolings over a fixed window; `pads` are top, bottom, left, right.

    `H_out = floor((H + top + bottom - (dilation_h * (kernel_h - 1) + 1)) / stride_h) + 1`, with
    `ceil` in place of `floor` where `ceil_mode` is set, and likewise the width. With `inside`, a
    last window that `ceil_mode` adds is left out if it would start beyond the image and the padding
    before it, as ONNX and PyTorch have it (NNAdapter and Paddle keep it). With `auto_pad` `SAME`,
    `H_out = ceil(H / stride_h)`.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    auto_pad = choice(AutoPad, AutoPad.NONE)
    pads = integers((0, 0, 0, 0), 4)
    kernel_shape = integers(length=2)
    strides = integers((1, 1), 2)
    ceil_mode = flag(False)
    dilations: Parameter[tuple[int, ...]]
    inside: Parameter[bool]

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return 0 if axes[0] == 0 and set(axes[1:]) <= {None} else None

    @property
    def windows(self) -> Windows:
        """The windows over the image."""
        return Windows(
            self.kernel_shape,
            self.strides,
            self.dilations,
            self.auto_pad,
            self.pads,
            self.ceil_mode,
            self.inside,
        )

    def pooled_shape(self) -> Shape:
        batch, channels, *image = require_rank(shape_of(self.input), 4, "input")
        return (batch, channels, *self.windows.counts(image))


@operator("AVERAGE_POOL_2D")
class AveragePool2D(Pool2D):
    """The mean of each [kernel_h, kernel_w] window of an [N, C, H, W] image.

    `pads` are top, bottom, left, right. `H_out = floor((H + top + bottom - (dilation_h * (kernel_h
    - 1) + 1)) / stride_h) + 1`, with `ceil` in place of `floor` where `ceil_mode` is set, and
    likewise the width. With `inside`, a last window that `ceil_mode` adds is left out if it would
    start beyond the image and the padding before it, as ONNX and PyTorch have it (NNAdapter and
    Paddle keep it). With `auto_pad` `SAME`, `H_out = ceil(H / stride_h)`.

    Padding counts as zeros with `count_include_pad`, else it is left out of the mean: the divisor
    is how many pixels of the image the window has. What a window of `ceil_mode` has beyond the
    padding is always left out. A window without anything to count gives NaN. Sums are in the
    element type, in any order. Of images without channels or pixels, nothing is specified, and an
    error will do.

    Sources: NNAdapter's AVERAGE_POOL_2D, NNRt's AVG_POOL, ONNX's AveragePool (opset 22).
    """

    __slots__ = ()
    count_include_pad = flag(False)
    fuse_code = fuse()
    dilations = _dilations()
    inside = flag(False)

    def infer_shape(self) -> Shape:
        return self.pooled_shape()

    def reference(self, input: Array) -> Array:
        windows = self.windows
        total = np.stack([pixels for _, pixels in windows.sliding_windows(input, 0)]).sum(axis=0)
        population = windows.population(input.shape[2:], with_padding=self.count_include_pad)
        return total / population.astype(input.dtype)

    def decompose(self, b: Builder) -> Operand | None:
        """Sums by a convolution with ones, over how many there are in each."""
        windows, image = self.windows, shape_of(self.input)[2:]
        channels = static(shape_of(self.input)[1:2])[0]
        if not channels:
            return None
        dtype = self.input.type.element_type.dtype
        if self.ceil_mode and not self.auto_pad.keeps_size:
            windows = windows.rounded_down(static(image))
        ones = np.ones((channels, 1, *self.kernel_shape), dtype)
        sums = b.add(Conv2D, self.input, ones, **_convolving(windows), group=channels)
        return b.add(Div, sums, self._population(b, image))

    def _population(self, b: Builder, image: Shape) -> Operand:
        """The number of pixels of each window, all of them one number if that is known."""
        dtype = self.input.type.element_type.dtype
        if is_static(image):
            known = self.windows.population(static(image), with_padding=self.count_include_pad)
            return b.constant(known.astype(dtype))
        if self.count_include_pad or self.auto_pad is AutoPad.VALID:
            return b.constant(np.array(np.prod(self.kernel_shape), dtype))
        sizes = b.add(Slice, b.add(ShapeOf, self.input), axes=(0,), starts=(2,), ends=(4,))
        shape = b.add(Concat, parts=[b.constant(np.ones(2, np.int64)), sizes], axis=0)
        ones = b.add(Fill, shape, np.array(1, dtype))
        weights = np.ones((1, 1, *self.kernel_shape), dtype)
        return b.add(Conv2D, ones, weights, **_convolving(self.windows))


@operator("MAX_POOL_2D", core=True)
class MaxPool2D(Pool2D):
    """The maximum of each [kernel_h, kernel_w] window of an [N, C, H, W] image.

    `pads` are top, bottom, left, right. `H_out = floor((H + top + bottom - (dilation_h * (kernel_h
    - 1) + 1)) / stride_h) + 1`, with `ceil` in place of `floor` where `ceil_mode` is set, and
    likewise the width. With `inside`, a last window that `ceil_mode` adds is left out if it would
    start beyond the image and the padding before it, as ONNX and PyTorch have it (NNAdapter and
    Paddle keep it). With `auto_pad` `SAME`, `H_out = ceil(H / stride_h)`.

    Padding never is the maximum; a window without a pixel of the image gives the least value of
    the element type. A window with a NaN gives NaN, one of its pixels, or the least value, and
    minus infinity may be the least finite number: which of them, is the device's choice, and so is
    the index then. (ONNX, NNAdapter and NNRt say nothing of NaN: PyTorch gives NaN, OpenVINO and
    ONNX's evaluator the greatest number, ONNX Runtime either, by the NaN's place.) Of images
    without channels or pixels, nothing is specified, and an error will do.

    With `return_indices` there is a second output, of type `return_indices_dtype` (int32 or
    int64): where the maximum is, as an offset into the [H, W] image without padding, the first in
    row order if there are several, -1 for a window without a pixel.

    Sources: NNAdapter's MAX_POOL_2D, NNRt's MAX_POOL, ONNX's MaxPool (whose indices count through
    all of [N, C, H, W]).
    """

    __slots__ = ()
    input = tensor(FLOATS | _BYTES)
    return_indices = flag(False)
    return_indices_dtype = index_type(ElementType.INT32)
    fuse_code = fuse()
    dilations = _dilations()
    inside = flag(False)

    def output_count(self) -> int:
        return 2 if self.return_indices else 1

    def infer_shape(self) -> Sequence[Shape]:
        return [self.pooled_shape()] * self.output_count()

    def infer_element_type(self) -> Sequence[ElementType]:
        (slot, input), *_ = self.filled()
        return [slot.element_type(input), self.return_indices_dtype][: self.output_count()]

    def reference(self, input: Array) -> Sequence[Array]:
        windows = self.windows
        least = -np.inf if input.dtype.kind == "f" else limits(ElementType.of(input.dtype))[0]
        pixels = np.stack([pixels for _, pixels in windows.sliding_windows(input, least)])
        if not self.return_indices:
            return [pixels.max(axis=0)]
        height, width = input.shape[2:]
        offsets = np.arange(height * width).reshape(1, 1, height, width)
        places = np.stack([places for _, places in windows.sliding_windows(offsets, -1)])
        # Padding is as small as the least pixel can be, but never where the maximum is.
        inside_image = (places >= 0).argmax(axis=0)
        best = np.where(pixels.max(axis=0) == least, inside_image, pixels.argmax(axis=0))
        indices = np.take_along_axis(np.broadcast_to(places, pixels.shape), best[None], axis=0)
        return [pixels.max(axis=0), indices[0]]

    def decompose(self, b: Builder) -> Sequence[Operand] | None:
        """The same with explicit padding, or on an image that has been padded."""
        image = static(shape_of(self.input)[2:])
        if 0 in image:
            return None
        if self.auto_pad is not AutoPad.NONE and not self.ceil_mode:
            return self._pooled(b, self.input, self.windows.sides(image))
        pads = self.windows.padding(image)
        whole = self.windows.population(image, with_padding=False).all()
        stored = self.input.type.element_type
        # Engines merge zeros around bytes into the pooling again.
        if self.return_indices or not any(pads) or not whole or stored not in FLOATS:
            return None
        least = np.array(-np.inf, stored.dtype)
        framed = b.add(Pad, self.input, (0, 0, 0, 0, *pads), PadMode.CONSTANT, least)
        return self._pooled(b, framed, (0, 0, 0, 0))

    def _pooled(self, b: Builder, image: Operand, pads: Sequence[int]) -> Sequence[Operand]:
        return b.add_all(
            MaxPool2D,
            image,
            pads=pads,
            kernel_shape=self.kernel_shape,
            strides=self.strides,
            dilations=self.dilations,
            return_indices=self.return_indices,
            return_indices_dtype=self.return_indices_dtype,
        )


def _convolving(windows: Windows) -> dict[str, Any]:
    """The arguments of a convolution over the same windows."""
    return {
        "auto_pad": windows.auto_pad,
        "pads": windows.pads,
        "strides": windows.strides,
        "dilations": windows.dilations,
    }


class AdaptivePool2D(Operator):
    """Base of poolings over the cells of a grid that is laid over the image."""

    __slots__ = ()
    input = tensor(FLOATS)
    output_shape = integers(length=2)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return 0 if axes[0] == 0 and set(axes[1:]) <= {None} else None

    def pooled_shape(self) -> Shape:
        batch, channels, *image = require_rank(shape_of(self.input), 4, "input")
        if min(self.output_shape) < 0:
            raise ValueError(f"output_shape: {list(self.output_shape)} has a negative size")
        if 0 in image:
            raise ValueError(f"input: an image of {image[0]} by {image[1]} has no pixels")
        return (batch, channels, *self.output_shape)

    def cells(self, input: Array) -> Sequence[Sequence[slice]]:
        """The rows and the columns that the cells cover."""
        image = input.shape[2:]
        if 0 in image:
            raise ValueError(f"input: an image of {image[0]} by {image[1]} has no pixels")
        return [cells(size, count) for size, count in zip(image, self.output_shape, strict=True)]

    def even_windows(self) -> tuple[int, ...] | None:
        """Height and width of the cells, if they are all alike."""
        image = static(shape_of(self.input)[2:])
        pairs = list(zip(image, self.output_shape, strict=True))
        if any(count == 0 or size % count for size, count in pairs):
            return None
        return tuple(size // count for size, count in pairs)


@operator("ADAPTIVE_AVERAGE_POOL_2D")
class AdaptiveAveragePool2D(AdaptivePool2D):
    """The mean of each cell of a grid of `output_shape` (height, width) laid over the image.

    Cell `i` of `n` covers the rows from `floor(i * H / n)` to before `ceil((i + 1) * H / n)`, and
    likewise the columns; cells can overlap by one pixel, and a grid can be finer than the image.
    An image without pixels is refused, one without channels may be. Sums are in the element type,
    in any order. Where cells are not all of one size, all of a channel of an image that has a pixel
    that is not finite is not specified. Sources: NNAdapter's ADAPTIVE_AVERAGE_POOL_2D; Paddle's and
    PyTorch's adaptive_avg_pool2d.
    """

    __slots__ = ()

    def infer_shape(self) -> Shape:
        return self.pooled_shape()

    def reference(self, input: Array) -> Array:
        rows, columns = self.cells(input)
        output = np.empty((*input.shape[:2], *self.output_shape), input.dtype)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                output[:, :, i, j] = input[:, :, row, column].mean(axis=(2, 3))
        return output

    def decompose(self, b: Builder) -> Operand:
        """The mean of all, or of windows if cells are alike, or products with what averages."""
        if self.output_shape == (1, 1):
            return b.add(ReduceMean, self.input, (2, 3), keepdim=True)
        window = self.even_windows()
        if window is not None:
            return b.add(AveragePool2D, self.input, kernel_shape=window, strides=window)
        dtype = self.input.type.element_type.dtype
        rows, columns = (
            _averaging(size, count).astype(dtype)
            for size, count in zip(static(shape_of(self.input)[2:]), self.output_shape, strict=True)
        )
        return b.add(MatMul, b.add(MatMul, b.constant(rows), self.input), columns, transpose_y=True)


@operator("ADAPTIVE_MAX_POOL_2D")
class AdaptiveMaxPool2D(AdaptivePool2D):
    """The maximum of each cell of a grid of `output_shape` (height, width) laid over the image.

    The cells are those of `ADAPTIVE_AVERAGE_POOL_2D`. With `return_indices` there is a second
    output, of type `return_indices_dtype` (int32 or int64): where the maximum is, as an offset
    into the [H, W] image, the first in row order if there are several. NaN and minus infinity as
    in `MAX_POOL_2D`. An image without pixels is refused, one without channels may be. Sources:
    NNAdapter's ADAPTIVE_MAX_POOL_2D; Paddle's and PyTorch's adaptive_max_pool2d.
    """

    __slots__ = ()
    return_indices = flag(False)
    return_indices_dtype = index_type(ElementType.INT32)

    def output_count(self) -> int:
        return 2 if self.return_indices else 1

    def infer_shape(self) -> Sequence[Shape]:
        return [self.pooled_shape()] * self.output_count()

    def infer_element_type(self) -> Sequence[ElementType]:
        (slot, input), *_ = self.filled()
        return [slot.element_type(input), self.return_indices_dtype][: self.output_count()]

    def reference(self, input: Array) -> Sequence[Array]:
        rows, columns = self.cells(input)
        output = np.empty((*input.shape[:2], *self.output_shape), input.dtype)
        places = np.empty(output.shape, np.int64)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                cell = input[:, :, row, column]
                flat = cell.reshape(*cell.shape[:2], cell.shape[2] * cell.shape[3])
                y, x = np.divmod(flat.argmax(axis=2), cell.shape[3])
                output[:, :, i, j] = flat.max(axis=2)
                places[:, :, i, j] = (row.start + y) * input.shape[3] + column.start + x
        return [output, places][: 2 if self.return_indices else 1]

    def decompose(self, b: Builder) -> Sequence[Operand]:
        """By windows if cells are alike, else with every cell filled up to one size."""
        if 0 in self.output_shape:
            return self._without_cells(b)
        if self.output_shape == (1, 1) and not self.return_indices:
            return [b.add(ReduceMax, self.input, (2, 3), keepdim=True)]
        window = self.even_windows()
        if window is not None:
            return b.add_all(
                MaxPool2D,
                self.input,
                kernel_shape=window,
                strides=window,
                return_indices=self.return_indices,
                return_indices_dtype=self.return_indices_dtype,
            )
        return self._filled_up(b)

    def _without_cells(self, b: Builder) -> Sequence[Operand]:
        sizes = Sizes(b, self.input)
        shape = sizes((*sizes.shape[:2], *self.output_shape))
        nothing = (np.zeros((), element_type.dtype) for element_type in self.infer_element_type())
        return [b.add(Fill, shape, zero) for zero in nothing]

    def _filled_up(self, b: Builder) -> Sequence[Operand]:
        image = static(shape_of(self.input)[2:])
        grid = [cells(*pair) for pair in zip(image, self.output_shape, strict=True)]
        (height, rows), (width, columns) = map(_sources, grid)
        across = b.add(Gather, b.add(Gather, self.input, rows, axis=2), columns, axis=4)
        lying = b.add(Transpose, across, (0, 1, 2, 4, 3, 5))
        flat = b.add(Reshape, lying, (0, 0, *self.output_shape, height * width))
        greatest = b.add(ReduceMax, flat, (-1,), keepdim=False)
        if not self.return_indices:
            return [greatest]
        # A pixel that fills a cell up comes after itself, so that it is never the first maximum.
        first = b.add(ArgMax, flat, -1, keepdim=False, dtype=ElementType.INT64)
        y = b.add(Div, first, np.array(width))
        x = b.add(Sub, first, b.add(Mul, y, np.array(width)))
        starts = [np.array([cell.start for cell in axis]) for axis in grid]
        corner = starts[0][:, None] * image[1] + starts[1]
        place = b.add(Add, b.add(Add, b.add(Mul, y, np.array(image[1])), x), corner)
        return [greatest, b.add(Cast, place, self.return_indices_dtype)]


def cells(size: int, count: int) -> list[slice]:
    """The pixels of each of `count` cells that cover an axis."""
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _averaging(size: int, count: int) -> Array:
    """The [count, size] matrix that makes the means of cells."""
    matrix = np.zeros((count, size))
    for row, cell in zip(matrix, cells(size, count), strict=True):
        row[cell] = 1 / (cell.stop - cell.start)
    return matrix


def _sources(axis: Sequence[slice]) -> tuple[int, Array]:
    """The size of the largest cell, and the pixels of each, with the last again where it ends."""
    size = max((cell.stop - cell.start for cell in axis), default=0)
    pixels = [np.minimum(cell.start + np.arange(size), cell.stop - 1) for cell in axis]
    return size, np.array(pixels, np.int64).reshape(len(axis), size)
