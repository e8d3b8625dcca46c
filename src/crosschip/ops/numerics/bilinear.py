"""Interpolation of images at any place, computed with NumPy or built from simpler operators.

Places are in pixels: (0, 0) is the centre of the first pixel.
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
    """The weights of the pixels around a place (NNAdapterInterpolateMode, which ends at 2)."""

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
"""The weight of each pixel, by its distance from the first one, as a polynomial in the distance of
the place from that one."""


def type_of_places(operand: Operand) -> ElementType:
    """The type in which the places that a tensor names are computed: float32 at least."""
    own = operand.type.element_type
    return own if own is ElementType.FLOAT64 else ElementType.FLOAT32


@dataclass(frozen=True, slots=True)
class Sampler:
    """Picks values of images at places.

    Attributes:
        image: height and width.
        kernel: how pixels are weighed.
        border: what is outside of the image: zeros, the image mirrored, or its outermost pixels.
        at_centres: whether the image is mirrored at the centres of its outermost pixels, so that
            they are not repeated.
    """

    image: Sequence[int]
    kernel: Kernel = Kernel.BILINEAR
    border: PadMode = PadMode.CONSTANT
    at_centres: bool = False

    def sample(self, images: Array, rows: Array, columns: Array) -> Array:
        """The values of [N, C, H * W] images at [N, P] places, as [N, C, P]."""
        values = np.zeros((*images.shape[:2], rows.shape[1]), images.dtype)
        for (y, y_weight), (x, x_weight) in product(
            self._weighted_pixels(rows, 0), self._weighted_pixels(columns, 1)
        ):
            pixels = np.take_along_axis(images, (y * self.image[1] + x)[:, None], axis=2)
            values += pixels * (y_weight * x_weight)[:, None].astype(images.dtype)
        return values

    def build(self, b: Builder, images: Operand, rows: Operand, columns: Operand) -> Operand:
        """Like `sample`, from operators; places are float32 or float64."""
        pixels = b.add(Transpose, images, (0, 2, 1))
        dtype = images.type.element_type
        axes = [self._build_weighted_pixels(b, rows, 0), self._build_weighted_pixels(b, columns, 1)]
        parts = []
        for (y, y_weight), (x, x_weight) in product(*axes):
            place = b.add(Add, b.add(Mul, y, np.array(self.image[1])), x)
            pixel = b.add(GatherND, pixels, b.add(Unsqueeze, place, (2,)), 1)
            weight = b.add(Cast, b.add(Mul, y_weight, x_weight), dtype)
            parts.append(b.add(Mul, pixel, b.add(Unsqueeze, weight, (2,))))
        total = parts[0]
        for part in parts[1:]:
            total = b.add(Add, total, part)
        return b.add(Transpose, total, (0, 2, 1))

    def _weighted_pixels(self, places: Array, axis: int) -> list[tuple[Array, Array]]:
        """On one axis, each pixel that counts for each place, and its weight."""
        size = self.image[axis]
        clipped = np.clip(places, -_FAR, _FAR)
        first = np.rint(clipped) if self.kernel is Kernel.NEAREST else np.floor(clipped)
        weighted = []
        for offset, polynomial in _POLYNOMIALS[self.kernel].items():
            wanted = (first + offset).astype(np.int64)
            weight = np.polyval(polynomial, clipped - first).astype(places.dtype)
            if self._cuts:
                weight = np.where((wanted >= 0) & (wanted < size), weight, 0)
            elif self.border is PadMode.REFLECT:
                last, period = self._mirror(size)
                wanted = wanted % period
                wanted = np.minimum(wanted, last - wanted)
            weighted.append((np.clip(wanted, 0, size - 1), weight))
        return weighted

    def _build_weighted_pixels(
        self, b: Builder, places: Operand, axis: int
    ) -> list[tuple[Operand, Operand]]:
        """Like `_weighted_pixels`, from operators."""
        size, dtype = self.image[axis], places.type.element_type.dtype
        clipped = b.add(Min, b.add(Max, places, -_FAR), _FAR)
        first = b.add(Round if self.kernel is Kernel.NEAREST else Floor, clipped)
        part = b.add(Sub, clipped, first)
        start = b.add(Cast, first, ElementType.INT64)
        weighted = []
        for offset, (leading, *polynomial) in _POLYNOMIALS[self.kernel].items():
            wanted = b.add(Add, start, np.array(offset))
            weight = b.constant(np.array(leading, dtype))
            for coefficient in polynomial:
                weight = b.add(Add, b.add(Mul, weight, part), coefficient)
            if self._cuts:
                low, high = b.constant(np.array(-1)), b.constant(np.array(size))
                inside = b.add(And, b.add(Less, low, wanted), b.add(Less, wanted, high))
                weight = b.add(Where, inside, weight, b.constant(np.array(0, dtype)))
            elif self.border is PadMode.REFLECT:
                last, period = self._mirror(size)
                wanted = b.add(Mod, wanted, np.array(period))
                wanted = b.add(Min, wanted, b.add(Sub, b.constant(np.array(last)), wanted))
            pixel = b.add(Min, b.add(Max, wanted, np.array(0)), np.array(size - 1))
            weighted.append((pixel, weight))
        return weighted

    @property
    def _cuts(self) -> bool:
        """Tell whether pixels outside of the image count nothing."""
        return self.border in (PadMode.NONE, PadMode.CONSTANT)

    def _mirror(self, size: int) -> tuple[int, int]:
        """The sum of two pixels that mirror each other, and after how many pixels all repeats."""
        if self.at_centres:
            return 2 * size - 2, max(1, 2 * size - 2)
        return 2 * size - 1, 2 * size
