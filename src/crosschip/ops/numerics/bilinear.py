"""Interpolation of images at arbitrary coordinates, in NumPy or built from simpler operators.

Coordinates are in pixels: (0, 0) is the centre of the first pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import product

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.arithmetic import Add, Max, Min, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import GatherND
from crosschip.ops.standard.layout import Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.unary import Floor, Round

_FAR = 2.0**24
_A = -0.75


class Kernel(IntEnum):
    """Interpolation kernel (NNAdapterInterpolateMode, which ends at 2)."""

    BILINEAR = 1
    NEAREST = 2
    BICUBIC = 3


_POLYNOMIALS: dict[Kernel, dict[int, list[float]]] = {
    Kernel.NEAREST: {0: [0, 1]},
    Kernel.BILINEAR: {0: [-1, 1], 1: [1, 0]},
    Kernel.BICUBIC: {
        -1: [_A, -2 * _A, _A, 0],
        0: [_A + 2, -_A - 3, 0, 1],
        1: [-_A - 2, 2 * _A + 3, -_A, 0],
        2: [-_A, _A, 0, 0],
    },
}
"""Coefficients of each pixel's weight, by its offset from the first pixel.

The weight is a polynomial in the coordinate's distance from the first pixel.
"""


def coordinate_type(operand: Operand) -> ElementType:
    """Return the type to compute a tensor's coordinates in: at least float32."""
    element_type = operand.type.element_type
    return element_type if element_type is ElementType.FLOAT64 else ElementType.FLOAT32


@dataclass(frozen=True, slots=True)
class Sampler:
    """Interpolation of images at coordinates.

    Attributes:
        image: height and width.
        kernel: the interpolation kernel.
        padding: the values outside the image: zeros, reflections of the image, or its border
            pixels.
        at_centres: whether reflection is at the centres of the border pixels, so that these are not
            repeated.
    """

    image: Sequence[int]
    kernel: Kernel = Kernel.BILINEAR
    padding: PadMode = PadMode.CONSTANT
    at_centres: bool = False

    def sample(self, images: Array, rows: Array, columns: Array) -> Array:
        """Interpolate [N, C, H * W] images at [N, P] coordinates; return [N, C, P]."""
        values = np.zeros((*images.shape[:2], rows.shape[1]), images.dtype)
        for (y, y_weight), (x, x_weight) in product(
            self._weighted_pixels(rows, 0), self._weighted_pixels(columns, 1)
        ):
            pixels = np.take_along_axis(images, (y * self.image[1] + x)[:, None], axis=2)
            values += pixels * (y_weight * x_weight)[:, None].astype(images.dtype)
        return values

    def build(self, b: Builder, images: Operand, rows: Operand, columns: Operand) -> Operand:
        """Build `sample` from operators; coordinates are float32 or float64."""
        pixels = b.add(Transpose, images, (0, 2, 1))
        dtype = images.type.element_type
        axes = [self._build_weighted_pixels(b, rows, 0), self._build_weighted_pixels(b, columns, 1)]
        parts = []
        for (y, y_weight), (x, x_weight) in product(*axes):
            index = b.add(Add, b.add(Mul, y, np.array(self.image[1])), x)
            pixel = b.add(GatherND, pixels, b.add(Unsqueeze, index, (2,)), 1)
            weight = b.add(Cast, b.add(Mul, y_weight, x_weight), dtype)
            parts.append(b.add(Mul, pixel, b.add(Unsqueeze, weight, (2,))))
        total = parts[0]
        for part in parts[1:]:
            total = b.add(Add, total, part)
        return b.add(Transpose, total, (0, 2, 1))

    def _weighted_pixels(self, coordinates: Array, axis: int) -> list[tuple[Array, Array]]:
        """Return the pixels along one axis that contribute to each coordinate, with weights."""
        size = self.image[axis]
        clipped = np.clip(coordinates, -_FAR, _FAR)
        first = np.rint(clipped) if self.kernel is Kernel.NEAREST else np.floor(clipped)
        weighted = []
        for offset, polynomial in _POLYNOMIALS[self.kernel].items():
            index = (first + offset).astype(np.int64)
            weight = np.polyval(polynomial, clipped - first).astype(coordinates.dtype)
            if self._has_zero_outside:
                weight = np.where((index >= 0) & (index < size), weight, 0)
            elif self.padding is PadMode.REFLECT:
                last, period = self._mirror(size)
                index = index % period
                index = np.minimum(index, last - index)
            weighted.append((np.clip(index, 0, size - 1), weight))
        return weighted

    def _build_weighted_pixels(
        self, b: Builder, coordinates: Operand, axis: int
    ) -> list[tuple[Operand, Operand]]:
        """Build `_weighted_pixels` from operators."""
        size, dtype = self.image[axis], coordinates.type.element_type.dtype
        clipped = b.add(Min, b.add(Max, coordinates, -_FAR), _FAR)
        first = b.add(Round if self.kernel is Kernel.NEAREST else Floor, clipped)
        part = b.add(Sub, clipped, first)
        start = b.add(Cast, first, ElementType.INT64)
        weighted = []
        for offset, (leading, *polynomial) in _POLYNOMIALS[self.kernel].items():
            index = b.add(Add, start, np.array(offset))
            weight = b.constant(np.array(leading, dtype))
            for coefficient in polynomial:
                weight = b.add(Add, b.add(Mul, weight, part), coefficient)
            if self._has_zero_outside:
                low, high = b.constant(np.array(-1)), b.constant(np.array(size))
                inside = b.add(And, b.add(Less, low, index), b.add(Less, index, high))
                weight = b.add(Where, inside, weight, b.constant(np.array(0, dtype)))
            elif self.padding is PadMode.REFLECT:
                last, period = self._mirror(size)
                index = b.add(Mod, index, np.array(period))
                index = b.add(Min, index, b.add(Sub, b.constant(np.array(last)), index))
            pixel = b.add(Min, b.add(Max, index, np.array(0)), np.array(size - 1))
            weighted.append((pixel, weight))
        return weighted

    @property
    def _has_zero_outside(self) -> bool:
        """Return whether pixels outside the image have weight 0."""
        return self.padding in (PadMode.NONE, PadMode.CONSTANT)

    def _mirror(self, size: int) -> tuple[int, int]:
        """Return the sum of the indices of mirrored pixels, and the period of reflections."""
        if self.at_centres:
            return 2 * size - 2, max(1, 2 * size - 2)
        return 2 * size - 1, 2 * size
