"""The operations of preprocessing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crosschip.ir import Builder, ElementType, Operand
from crosschip.ir.builder import OperatorClass
from crosschip.ir.types import INTEGERS
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.arithmetic import Add, Clip, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Transpose, Unsqueeze
from crosschip.ops.standard.logical import Or, Where
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Floor, Round
from crosschip.preprocessing.resampling import (
    Axis,
    copied_pixels,
    linear_taps,
    weighted_taps,
)
from crosschip.preprocessing.value import Value

if TYPE_CHECKING:
    from crosschip.preprocessing.preprocess import Preprocess

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""The weights of red, green and blue in gray (ITU-R BT.601), of OpenCV, Pillow and torchvision."""


def preprocess(b: Builder, picture: Operand, settings: Preprocess) -> Operand:
    """Add the operations that preprocess a picture.

    Args:
        b: the builder.
        picture: uint8 [N, height, width, 3].
        settings: the settings, of which `element_type` is set.

    Returns:
        The result, as the settings describe it.
    """
    axes = _axes(b, picture, settings)
    pixels = _resampled(b, picture, axes, settings)
    pixels = _padded(b, pixels, axes, settings)
    if settings.color == "BGR":
        reverse = b.constant(np.array([2, 1, 0], np.int32))
        pixels = pixels.then(b, Gather, reverse, pixels.order.index("C"))
    pixels = _normalized(b, pixels, settings).arranged(b, settings.layout)
    return _converted(b, pixels.operand, settings)


class _Pixels(NamedTuple):
    """Pixels, and the order of their axes, such as `NHWC`."""

    operand: Operand
    order: str

    def then(self, b: Builder, operator: OperatorClass, *parameters: object) -> _Pixels:
        """Return the output of an operator that keeps the order of the axes."""
        return _Pixels(b.add(operator, self.operand, *parameters), self.order)

    def arranged(self, b: Builder, order: str) -> _Pixels:
        """Return the pixels with another order of the axes."""
        if order == self.order:
            return self
        perm = [self.order.index(axis) for axis in order]
        return _Pixels(b.add(Transpose, self.operand, perm), order)

    def led_by(self, b: Builder, axis: str) -> _Pixels:
        """Return the pixels with an axis after N, so that what is gathered of it is contiguous.

        The others follow in cyclic order, so that the transposition is one of a matrix.
        """
        at = self.order.index(axis)
        return self.arranged(b, "N" + self.order[at:] + self.order[1:at])

    def across(self, values: Value, *axes: str) -> Operand:
        """Return numbers along some axes in a shape that broadcasts to the pixels."""
        sizes = [-1 if axis in axes else 1 for axis in self.order.lstrip("N")]
        return values.shaped(*sizes).operand


def _axes(b: Builder, picture: Operand, settings: Preprocess) -> tuple[Axis, Axis]:
    """Return height and width as they are resized, padded and cropped."""
    sizes = [Value.of_size(b, picture, axis) for axis in (1, 2)]
    resized = _resized_sizes(b, sizes, settings)
    axes = []
    for number, (size, new) in enumerate(zip(sizes, resized, strict=True)):
        output, offset, least = new, Value(b, 0), new.number
        if settings.resize is not None:
            box = Value(b, settings.resize[number])
            least = settings.resize[number]
            if settings.fit == "longer":
                output = box
                if settings.position == "center":
                    offset = offset - (box - new) // 2
        pads = settings.fit == "longer" and settings.resize is not None
        if settings.crop is not None:
            crop = settings.crop[number]
            offset = offset + _crop_offset(output, crop)
            output = Value(b, crop)
            pads = pads or least is None or least < crop
        axes.append(Axis(size, new, output, offset, pads))
    return axes[0], axes[1]


def _resized_sizes(b: Builder, sizes: Sequence[Value], settings: Preprocess) -> Sequence[Value]:
    """Return the height and width of the resized picture."""
    if settings.resize is None:
        return sizes
    box = [Value(b, number) for number in settings.resize]
    if settings.fit == "stretch":
        return box
    resized = []
    for size, other, side, other_side in zip(sizes, sizes[::-1], box, box[::-1], strict=True):
        if settings.fit == "shorter":
            resized.append((other_side * size // other.at_least(1)).at_least(side))
        else:
            nearest = (other_side * size * 2 + other) // (other * 2).at_least(1)
            resized.append(nearest.at_most(side).at_least(1))
    return resized


def _crop_offset(size: Value, crop: int) -> Value:
    """Return where a centered crop begins: half the difference, as torchvision rounds it."""
    more = (size - crop).at_least(0)
    fewer = (-size + crop).at_least(0)
    half = more // 2
    is_odd_half = half - half // 2 * 2
    return (more + is_odd_half) // 2 - fewer // 2


def _resampled(
    b: Builder, picture: Operand, axes: tuple[Axis, Axis], settings: Preprocess
) -> _Pixels:
    """Return the pixels of the output, as whole numbers in float32."""
    method = settings.interpolation, settings.antialias
    pixels = _Pixels(picture, "NHWC")
    copied = [copied_pixels(axis, *method) for axis in axes]
    if copied[0] is not None and copied[1] is not None:
        for letter, axis, indices in zip("HW", axes, copied, strict=True):
            if axis.output is not axis.size:
                pixels = pixels.led_by(b, letter).then(b, Gather, indices.integers, 1)
        return _real(b, pixels, settings)
    if method == ("linear", False):
        return _rounded(b, _between_four(b, pixels, axes, settings), False)
    if method == ("cubic", True):  # as in Pillow, where the order matters as values saturate
        return _weighted_sums(b, pixels, "WH", axes[::-1], settings)
    return _weighted_sums(b, pixels, "HW", axes, settings)


def _between_four(
    b: Builder, pixels: _Pixels, axes: tuple[Axis, Axis], settings: Preprocess
) -> _Pixels:
    """Return the bilinear interpolation between the four pixels around each output pixel."""
    above, below, down = linear_taps(axes[0])
    left, right, across = linear_taps(axes[1])
    rows = [
        pixels.then(b, Gather, indices.integers, 1).led_by(b, "W") for indices in (above, below)
    ]
    columns = []
    for indices in (left.integers, right.integers):
        ends = (_real(b, row.then(b, Gather, indices, 1), settings) for row in rows)
        columns.append(_between(b, *ends, down, "H"))
    return _between(b, *columns, across, "W")


def _between(b: Builder, first: _Pixels, second: _Pixels, weight: Value, axis: str) -> _Pixels:
    """Return the weighted mean of two pixels, with weights of the second along an axis."""
    difference = second.then(b, Sub, first.operand)
    return difference.then(b, Mul, first.across(weight, axis)).then(b, Add, first.operand)


def _weighted_sums(
    b: Builder, pixels: _Pixels, letters: str, axes: Sequence[Axis], settings: Preprocess
) -> _Pixels:
    """Return the sums of the weighted taps along one axis and then the other, rounded."""
    saturates = settings.interpolation == "cubic"
    for letter, axis in zip(letters, axes, strict=True):
        indices, weights = weighted_taps(axis, settings.interpolation, settings.antialias)
        leading = pixels.led_by(b, letter)
        gathered = b.add(Gather, leading.operand, indices.integers, 1)  # [N, output, taps, …]
        real = _real(b, _Pixels(gathered, f"N{letter}T{leading.order[2:]}"), settings)
        products = real.then(b, Mul, b.add(Unsqueeze, weights.operand, (2, 3)))
        pixels = _Pixels(b.add(ReduceSum, products.operand, (2,), False), leading.order)
        if letter == letters[-1] or (saturates and settings.antialias):
            pixels = _rounded(b, pixels, saturates)
    return pixels


def _rounded(b: Builder, pixels: _Pixels, saturates: bool) -> _Pixels:
    """Return the nearest whole numbers, a half up, and within 0 to 255."""
    whole = pixels.then(b, Add, 0.5).then(b, Floor)
    return whole.then(b, Clip, 0.0, 255.0) if saturates else whole


def _real(b: Builder, pixels: _Pixels, settings: Preprocess) -> _Pixels:
    """Return pixels in float32, and in gray if the model takes gray; the same if they are so."""
    if pixels.operand.type.element_type is ElementType.FLOAT32:
        return pixels
    real = pixels.then(b, Cast, ElementType.FLOAT32)
    if settings.color != "GRAY":
        return real
    weighted = real.then(b, Mul, real.across(Value(b, _LUMA), "C"))
    gray = weighted.then(b, ReduceSum, (real.order.index("C"),), True)
    return _rounded(b, gray, False)


def _padded(b: Builder, pixels: _Pixels, axes: tuple[Axis, Axis], settings: Preprocess) -> _Pixels:
    """Return the pixels with the value of padding outside the picture."""
    masks = []
    for letter, axis in zip("HW", axes, strict=True):
        if axis.pads:
            is_outside = (axis.pixels() - axis.inside()).magnitude().at_most(1)
            masks.append(b.add(Cast, pixels.across(is_outside, letter), ElementType.BOOL))
    if not masks:
        return pixels
    is_padding = b.add(Or, *masks) if len(masks) > 1 else masks[0]
    value = settings.pad_value[::-1] if settings.color == "BGR" else settings.pad_value
    padding = pixels.across(Value(b, np.array(value)), "C")
    return _Pixels(b.add(Where, is_padding, padding, pixels.operand), pixels.order)


def _normalized(b: Builder, pixels: _Pixels, settings: Preprocess) -> _Pixels:
    """Return `(pixels - mean) * scale`, as one multiplication and one addition."""
    scale = np.array(settings.scale)
    bias = -np.array(settings.mean) * scale
    if (scale != 1).any():
        pixels = pixels.then(b, Mul, pixels.across(Value(b, scale), "C"))
    return pixels.then(b, Add, pixels.across(Value(b, bias), "C")) if bias.any() else pixels


def _converted(b: Builder, pixels: Operand, settings: Preprocess) -> Operand:
    """Return the result in its element type: rounded and saturated if that is an integer type."""
    element_type = settings.element_type
    assert isinstance(element_type, ElementType), "it is resolved"
    if element_type is ElementType.FLOAT32:
        return pixels
    if element_type in INTEGERS:
        pixels = b.add(Clip, b.add(Round, pixels), *map(float, limits(element_type)))
    return b.add(Cast, pixels, element_type)
