"""Pooling of [N, C, H, W] images over a grid of a given size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.conversion import Cast
from crosschip.ops.elementwise import Add, Div, Mul, Sub
from crosschip.ops.examples import example, random
from crosschip.ops.faces import NNAdapter
from crosschip.ops.joining import Gather
from crosschip.ops.layout import Reshape, Transpose
from crosschip.ops.matrix import MatMul
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.reduction import ReduceMax, ReduceMean
from crosschip.ops.shapes import of_rank
from crosschip.ops.slots import element_type, flag, integers, tensor
from crosschip.ops.sorting import ArgMax
from crosschip.ops.windows import static


class AdaptivePool2D(Operator):
    """Base of poolings over the cells of a grid that is laid over the image."""

    __slots__ = ()
    input = tensor(FLOATS)
    output_shape = integers(length=2)

    def pooled_shape(self) -> Shape:
        batch, channels, *image = of_rank(shape_of(self.input), 4, "input")
        if min(self.output_shape) < 0:
            raise ValueError(f"output_shape: {list(self.output_shape)} has a negative size")
        if 0 in image:
            raise ValueError(f"input: an image of {image[0]} by {image[1]} has no pixels")
        return (batch, channels, *self.output_shape)

    def even_windows(self) -> tuple[int, ...] | None:
        """Height and width of the cells, if they are all alike."""
        image = static(shape_of(self.input)[2:])
        pairs = list(zip(image, self.output_shape, strict=True))
        if any(count == 0 or size % count for size, count in pairs):
            return None
        return tuple(size // count for size, count in pairs)


@operator(
    "ADAPTIVE_AVERAGE_POOL_2D",
    nnadapter=NNAdapter(1),
    onnx=("GlobalAveragePool",),
)
class AdaptiveAveragePool2D(AdaptivePool2D):
    """The mean of each cell of a grid of `output_shape` (height, width) laid over the image.

    Cell `i` of `n` covers the rows from `floor(i * H / n)` to before `ceil((i + 1) * H / n)`, and
    likewise the columns; cells can overlap by one pixel, and a grid can be finer than the image.
    An image without pixels is refused. Sums are in the element type, in any order. Sources:
    NNAdapter's ADAPTIVE_AVERAGE_POOL_2D; Paddle's and PyTorch's adaptive_avg_pool2d.
    """

    __slots__ = ()

    examples = (
        example(input=random(2, 3, 6, 8), output_shape=(3, 2)),
        example(input=random(1, 2, 5, 7), output_shape=(3, 4)),
        example(input=random(1, 2, 3, 2), output_shape=(5, 3)),
        example(input=random(1, 2, 5, 7), output_shape=(1, 1)),
        example(
            input=random(
                1, 2, 4, 6, dtype=ElementType.INT16, low=-30000, high=30000,
                quantization=Quantization((0.0005,)),
            ),
            output_shape=(2, 3),
            quantization=Quantization((0.0004,)),
        ),
    )  # fmt: skip

    def infer_shape(self) -> Shape:
        return self.pooled_shape()

    def reference(self, input: Array, output_shape: Sequence[int]) -> Array:
        rows, columns = (cells(input.shape[2 + axis], output_shape[axis]) for axis in range(2))
        output = np.empty((*input.shape[:2], *output_shape), input.dtype)
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


@operator("ADAPTIVE_MAX_POOL_2D", nnadapter=NNAdapter(2), onnx=("GlobalMaxPool",))
class AdaptiveMaxPool2D(AdaptivePool2D):
    """The maximum of each cell of a grid of `output_shape` (height, width) laid over the image.

    The cells are those of `ADAPTIVE_AVERAGE_POOL_2D`. With `return_indices` there is a second
    output, of type `return_indices_dtype` (int32 or int64): where the maximum is, as an offset
    into the [H, W] image, the first in row order if there are several. NaN is greater than any
    number. An image without pixels is refused. Sources: NNAdapter's ADAPTIVE_MAX_POOL_2D;
    Paddle's and PyTorch's adaptive_max_pool2d.
    """

    __slots__ = ()
    return_indices = flag(False)
    return_indices_dtype = element_type(ElementType.INT32)

    examples = (
        example(input=random(2, 3, 6, 8), output_shape=(3, 2)),
        example(input=random(2, 3, 6, 8), output_shape=(3, 2), return_indices=True),
        example(input=random(1, 2, 5, 7), output_shape=(3, 4)),
        example(
            input=random(1, 2, 5, 7),
            output_shape=(3, 4),
            return_indices=True,
            return_indices_dtype=ElementType.INT64,
        ),
        example(input=random(1, 2, 3, 2), output_shape=(5, 3), return_indices=True),
        example(input=random(1, 2, 5, 7), output_shape=(1, 1)),
        example(
            input=random(
                1, 2, 4, 6, dtype=ElementType.INT8, low=-128, high=128,
                quantization=Quantization((0.05,)),
            ),
            output_shape=(2, 3),
            quantization=Quantization((0.05,)),
        ),
    )  # fmt: skip

    def output_count(self) -> int:
        return 2 if self.return_indices else 1

    def infer_shape(self) -> Sequence[Shape]:
        return [self.pooled_shape()] * self.output_count()

    def infer_element_type(self) -> Sequence[ElementType]:
        (slot, input), *_ = self.filled()
        return [slot.element_type(input), self.return_indices_dtype][: self.output_count()]

    def reference(
        self,
        input: Array,
        output_shape: Sequence[int],
        return_indices: bool,
        return_indices_dtype: ElementType,
    ) -> Sequence[Array]:
        rows, columns = (cells(input.shape[2 + axis], output_shape[axis]) for axis in range(2))
        output = np.empty((*input.shape[:2], *output_shape), input.dtype)
        places = np.empty(output.shape, np.int64)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                cell = input[:, :, row, column]
                flat = cell.reshape(*cell.shape[:2], cell.shape[2] * cell.shape[3])
                y, x = np.divmod(flat.argmax(axis=2), cell.shape[3])
                output[:, :, i, j] = flat.max(axis=2)
                places[:, :, i, j] = (row.start + y) * input.shape[3] + column.start + x
        return [output, places][: 2 if return_indices else 1]

    def decompose(self, b: Builder) -> Sequence[Operand]:
        """By windows if cells are alike, else with every cell filled up to one size."""
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
