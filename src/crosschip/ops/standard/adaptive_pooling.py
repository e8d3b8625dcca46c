"""Pooling of [N, C, …] images over a grid of cells of a given size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes
from crosschip.ops.definition.shapes import require_rank
from crosschip.ops.definition.slots import axis_integers, flag, index_type, tensor
from crosschip.ops.definition.spatial import build_planar, build_planes
from crosschip.ops.definition.windows import Place, SpatialOperator, static
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Flatten, Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean
from crosschip.ops.standard.searching import ArgMax


class AdaptivePool(SpatialOperator):
    """Base class of pooling over the cells of a grid on the image."""

    __slots__ = ()
    input = tensor(FLOATS)
    output_shape = axis_integers()

    def pooled_shape(self) -> Shape:
        batch, channels, *image = require_rank(shape_of(self.input), 2 + self.spatial_rank, "input")
        if min(self.output_shape) < 0:
            raise ValueError(f"output_shape: {list(self.output_shape)} has a negative size")
        _require_pixels(image)
        return (batch, channels, *self.output_shape)

    def cells(self, input: Array) -> Iterator[tuple[Place, Array, tuple[int, ...]]]:
        """Yield each cell's index in the grid, its [N, C, …] pixels, and their position."""
        image = input.shape[2:]
        _require_pixels(image)
        grid = [cells(size, count) for size, count in zip(image, self.output_shape, strict=True)]
        for cell_index in product(*map(range, self.output_shape)):
            cell = tuple(axis[index] for axis, index in zip(grid, cell_index, strict=True))
            starts = tuple(part.start for part in cell)
            yield cell_index, input[:, :, *cell], starts

    def is_global(self) -> bool:
        """Return whether the whole image is one cell."""
        return set(self.output_shape) == {1}

    def image_axes(self) -> tuple[int, ...]:
        """Return the spatial axes of the input."""
        return tuple(range(2, 2 + self.spatial_rank))

    def even_windows(self) -> tuple[int, ...] | None:
        """Return the size of the cells if all have the same size, else `None`."""
        image = static(shape_of(self.input)[2:])
        pairs = list(zip(image, self.output_shape, strict=True))
        if any(count == 0 or size % count for size, count in pairs):
            return None
        return tuple(size // count for size, count in pairs)

    def build_empty(self, b: Builder, element_types: Sequence[ElementType]) -> Sequence[Operand]:
        """Build the outputs of a grid without cells."""
        sizes = Sizes(b, self.input)
        shape = sizes((*sizes.shape[:2], *self.output_shape))
        return [b.add(Fill, shape, np.zeros((), each.dtype)) for each in element_types]


class AdaptiveAveragePool(AdaptivePool):
    """Base class of the means of cells."""

    __slots__ = ()

    def infer_shape(self) -> Shape:
        return self.pooled_shape()

    def reference(self, input: Array) -> Array:
        output = np.empty((*input.shape[:2], *self.output_shape), input.dtype)
        for cell_index, pixels, _ in self.cells(input):
            output[_index_of_cell(cell_index)] = pixels.mean(axis=self.image_axes())
        return output


@operator("ADAPTIVE_AVERAGE_POOL_2D")
class AdaptiveAveragePool2D(AdaptiveAveragePool, spatial_rank=2):
    """The mean of each cell of a grid of `output_shape` (height, width) on the image.

    Cell `i` of `n` covers the rows from `floor(i * H / n)` to before `ceil((i + 1) * H / n)`, and
    the columns likewise; cells can overlap by one pixel, and a grid can be finer than the image. An
    image without pixels is rejected, one without channels may be. Sums are in the element type, in
    any order. If the cells have different sizes, channels of an image with a pixel that is not
    finite are unspecified. Sources: NNAdapter's ADAPTIVE_AVERAGE_POOL_2D; Paddle's and PyTorch's
    adaptive_avg_pool2d.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Operand:
        """Decompose into a mean of the image, a pooling over windows, or matrix products."""
        if self.is_global():
            return b.add(ReduceMean, self.input, (2, 3), keepdim=True)
        window = self.even_windows()
        if window is not None:
            return b.add(AveragePool2D, self.input, kernel_shape=window, strides=window)
        dtype = self.input.type.element_type.dtype
        rows, columns = (
            _averaging_matrix(size, count).astype(dtype)
            for size, count in zip(static(shape_of(self.input)[2:]), self.output_shape, strict=True)
        )
        return b.add(MatMul, b.add(MatMul, b.constant(rows), self.input), columns, transpose_y=True)


@operator("ADAPTIVE_AVERAGE_POOL_1D")
class AdaptiveAveragePool1D(AdaptiveAveragePool, spatial_rank=1):
    """The mean of each of `output_shape` cells along an [N, C, W] signal.

    It is `ADAPTIVE_AVERAGE_POOL_2D` of images of height 1, and equal to it in all other respects.
    If the cells have different sizes, channels of a signal with a pixel that is not finite are
    unspecified. Sources: Paddle's and PyTorch's adaptive_avg_pool1d; ONNX's GlobalAveragePool.
    """

    __slots__ = ()

    def decomposition(self, b: Builder) -> tuple[Operand, ...] | None:
        """Decompose into the pooling of an image of height 1, also if quantized."""
        return build_planar(b, self, AdaptiveAveragePool2D)


@operator("ADAPTIVE_AVERAGE_POOL_3D")
class AdaptiveAveragePool3D(AdaptiveAveragePool, spatial_rank=3):
    """The mean of each cell of a grid of `output_shape` (depth, height, width) on the volume.

    It is `ADAPTIVE_AVERAGE_POOL_2D` with another axis, and equal to it in all other respects. If
    the cells have different sizes, channels of a volume with a pixel that is not finite are
    unspecified. Sources: Paddle's and PyTorch's adaptive_avg_pool3d; ONNX's GlobalAveragePool.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Operand | Sequence[Operand]:
        """Decompose into a mean of the volume, or a pooling of planes and one along the depth."""
        if self.is_global():
            return b.add(ReduceMean, self.input, self.image_axes(), keepdim=True)
        if 0 in self.output_shape:
            return self.build_empty(b, [self.input.type.element_type])
        return build_planes(b, self, AdaptiveAveragePool2D)


class AdaptiveMaxPool(AdaptivePool):
    """Base class of the maxima of cells."""

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
        output = np.empty((*input.shape[:2], *self.output_shape), input.dtype)
        indices = np.empty(output.shape, np.int64)
        for cell_index, pixels, starts in self.cells(input):
            flat = pixels.reshape(*pixels.shape[:2], int(np.prod(pixels.shape[2:])))
            first = np.unravel_index(flat.argmax(axis=2), pixels.shape[2:])
            output[_index_of_cell(cell_index)] = flat.max(axis=2)
            position = tuple(map(np.add, first, starts))
            indices[_index_of_cell(cell_index)] = np.ravel_multi_index(position, input.shape[2:])
        return [output, indices][: self.output_count()]


@operator("ADAPTIVE_MAX_POOL_2D")
class AdaptiveMaxPool2D(AdaptiveMaxPool, spatial_rank=2):
    """The maximum of each cell of a grid of `output_shape` (height, width) on the image.

    The cells are those of `ADAPTIVE_AVERAGE_POOL_2D`. With `return_indices` there is a second
    output, of type `return_indices_dtype` (int32 or int64): the offset of the maximum in the [H, W]
    image, of the first in row order if there are several. NaN and minus infinity as in
    `MAX_POOL_2D`. An image without pixels is rejected, one without channels may be. Sources:
    NNAdapter's ADAPTIVE_MAX_POOL_2D; Paddle's and PyTorch's adaptive_max_pool2d.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Sequence[Operand]:
        """Decompose into a pooling over windows, or over cells that are padded to one size."""
        if 0 in self.output_shape:
            return self.build_empty(b, self.infer_element_type())
        if self.is_global():
            return self._pool_image(b)
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
        return self._pool_padded_cells(b)

    def _pool_image(self, b: Builder) -> Sequence[Operand]:
        maxima = b.add(ReduceMax, self.input, (2, 3), keepdim=True)
        if not self.return_indices:
            return [maxima]
        flat, dtype = b.add(Flatten, self.input, 2, 3), self.return_indices_dtype
        return [
            maxima,
            b.add(Unsqueeze, b.add(ArgMax, flat, -1, keepdim=True, dtype=dtype), (3,)),
        ]

    def _pool_padded_cells(self, b: Builder) -> Sequence[Operand]:
        image = static(shape_of(self.input)[2:])
        grid = [cells(*pair) for pair in zip(image, self.output_shape, strict=True)]
        (height, rows), (width, columns) = map(_padded_cells, grid)
        gathered = b.add(Gather, b.add(Gather, self.input, rows, axis=2), columns, axis=4)
        transposed = b.add(Transpose, gathered, (0, 1, 2, 4, 3, 5))
        flat = b.add(Reshape, transposed, (0, 0, *self.output_shape, height * width))
        maxima = b.add(ReduceMax, flat, (-1,), keepdim=False)
        if not self.return_indices:
            return [maxima]
        # Padding repeats the last pixel after it, so it is never the first maximum.
        first = b.add(ArgMax, flat, -1, keepdim=False, dtype=ElementType.INT64)
        y = b.add(Div, first, np.array(width))
        x = b.add(Sub, first, b.add(Mul, y, np.array(width)))
        starts = [np.array([cell.start for cell in axis]) for axis in grid]
        corner = starts[0][:, None] * image[1] + starts[1]
        offset = b.add(Add, b.add(Add, b.add(Mul, y, np.array(image[1])), x), corner)
        return [maxima, b.add(Cast, offset, self.return_indices_dtype)]


@operator("ADAPTIVE_MAX_POOL_1D")
class AdaptiveMaxPool1D(AdaptiveMaxPool, spatial_rank=1):
    """The maximum of each of `output_shape` cells along an [N, C, W] signal.

    It is `ADAPTIVE_MAX_POOL_2D` of images of height 1, and equal to it in all other respects;
    indices are offsets in [W]. NaN and minus infinity are treated as in
    `ADAPTIVE_MAX_POOL_2D`. Sources: Paddle's and PyTorch's adaptive_max_pool1d.
    """

    __slots__ = ()

    def decomposition(self, b: Builder) -> tuple[Operand, ...] | None:
        """Decompose into the pooling of an image of height 1, also if quantized."""
        return build_planar(b, self, AdaptiveMaxPool2D)


@operator("ADAPTIVE_MAX_POOL_3D")
class AdaptiveMaxPool3D(AdaptiveMaxPool, spatial_rank=3):
    """The maximum of each cell of a grid of `output_shape` (depth, height, width) on the volume.

    It is `ADAPTIVE_MAX_POOL_2D` with another axis, and equal to it in all other respects; indices
    are offsets in [D, H, W]. NaN and minus infinity are treated as in `ADAPTIVE_MAX_POOL_2D`.
    Sources: Paddle's and PyTorch's adaptive_max_pool3d.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Sequence[Operand]:
        """Decompose into the maxima of planes, and their maxima along the depth."""
        if 0 in self.output_shape:
            return self.build_empty(b, self.infer_element_type())
        return build_planes(b, self, AdaptiveMaxPool2D)


def _require_pixels(image: Sequence[Dim]) -> None:
    """Raise `ValueError` if an image is empty."""
    if 0 in image:
        raise ValueError(f"input: an image of {' by '.join(map(str, image))} has no pixels")


def _index_of_cell(cell_index: Place) -> tuple[slice | int, ...]:
    """Return the array index of a cell in all images and channels."""
    return (slice(None), slice(None), *cell_index)


def cells(size: int, count: int) -> list[slice]:
    """Return the pixels of each of `count` cells that cover an axis of `size` pixels."""
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _averaging_matrix(size: int, count: int) -> Array:
    """Return the [count, size] matrix whose product with an axis is the means of its cells."""
    matrix = np.zeros((count, size))
    for row, cell in zip(matrix, cells(size, count), strict=True):
        row[cell] = 1 / (cell.stop - cell.start)
    return matrix


def _padded_cells(axis: Sequence[slice]) -> tuple[int, Array]:
    """Return the largest cell size, and the pixels of each cell, its last one repeated."""
    size = max((cell.stop - cell.start for cell in axis), default=0)
    pixels = [np.minimum(cell.start + np.arange(size), cell.stop - 1) for cell in axis]
    return size, np.array(pixels, np.int64).reshape(len(axis), size)
