"""The operations of preprocessing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crosschip.ir import Builder, ElementType, Operand
from crosschip.ir.types import INTEGERS
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.arithmetic import Add, Clip, Mul
from crosschip.ops.standard.comparison import NotEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Transpose, Unsqueeze
from crosschip.ops.standard.logical import Or, Where
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Floor, Round
from crosschip.preprocessing.resampling import Axis, taps
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
    padding = _padding(b, axes)
    if padding is not None:
        value = np.array(settings.pad_value, np.float32)
        value = value[::-1].copy() if settings.color == "BGR" else value
        pixels = b.add(Where, padding, b.constant(value), pixels)
    axis = 3
    if settings.layout == "NCHW":
        pixels, axis = b.add(Transpose, pixels, (0, 3, 1, 2)), 1
    if settings.color == "BGR":
        pixels = b.add(Gather, pixels, b.constant(np.array([2, 1, 0])), axis)
    return _converted(b, _normalized(b, pixels, axis, settings), settings)


def _axes(b: Builder, picture: Operand, settings: Preprocess) -> tuple[Axis, Axis]:
    """Return height and width as they are resized, padded and cropped."""
    sizes = [Value.of_size(b, picture, axis) for axis in (1, 2)]
    resized = _resized_sizes(b, sizes, settings)
    axes = []
    for number, (size, new) in enumerate(zip(sizes, resized, strict=True)):
        output, offset, least = new, Value(b, np.array([0])), new.number
        if settings.resize is not None:
            box = Value(b, np.array([settings.resize[number]]))
            least = settings.resize[number]
            if settings.fit == "longer":
                output = box
                if settings.position == "center":
                    offset = offset - (box - new) // 2
        pads = settings.fit == "longer" and settings.resize is not None
        if settings.crop is not None:
            crop = settings.crop[number]
            offset = offset + _crop_offset(output, crop)
            output = Value(b, np.array([crop]))
            pads = pads or least is None or least < crop
        axes.append(Axis(size, new, output, offset, pads))
    return axes[0], axes[1]


def _resized_sizes(b: Builder, sizes: Sequence[Value], settings: Preprocess) -> Sequence[Value]:
    """Return the height and width of the resized picture."""
    if settings.resize is None:
        return sizes
    box = [Value(b, np.array([number])) for number in settings.resize]
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
    fewer = (size * -1 + crop).at_least(0)
    half = more // 2
    is_odd_half = half - half // 2 * 2
    return (more + is_odd_half) // 2 - fewer // 2


def _resampled(
    b: Builder, picture: Operand, axes: tuple[Axis, Axis], settings: Preprocess
) -> Operand:
    """Return the pixels of the output in whole numbers, float32 [N, height, width, channels]."""
    numbers: Sequence[int] = (1, 2)
    if settings.interpolation == "cubic" and settings.antialias:
        numbers = (2, 1)  # Pillow saturates after the width, so the order matters
    pixels, is_real = picture, False
    for number in numbers:
        axis = axes[number - 1]
        if axis.output is axis.size:
            continue
        indices, weights = taps(b, axis, settings.interpolation, settings.antialias)
        pixels = b.add(Gather, pixels, indices.operand, number)
        if weights is not None:
            pixels = pixels if is_real else _real(b, pixels, settings)
            pixels, is_real = _weighted(b, pixels, weights.operand, number + 1), True
            if settings.interpolation == "cubic" and settings.antialias:
                pixels = b.add(Clip, b.add(Floor, b.add(Add, pixels, 0.5)), 0.0, 255.0)
    if not is_real:
        return _real(b, pixels, settings)
    pixels = b.add(Floor, b.add(Add, pixels, 0.5))
    return b.add(Clip, pixels, 0.0, 255.0) if settings.interpolation == "cubic" else pixels


def _weighted(b: Builder, pixels: Operand, weights: Operand, axis: int) -> Operand:
    """Return sums along an axis, weighted by weights for the axis before and this one."""
    assert pixels.type.shape is not None, "pictures have four axes"
    after = range(2, 2 + len(pixels.type.shape) - axis - 1)
    factors = b.add(Unsqueeze, weights, tuple(after))
    return b.add(ReduceSum, b.add(Mul, pixels, factors), (axis,), False)


def _real(b: Builder, pixels: Operand, settings: Preprocess) -> Operand:
    """Return uint8 pixels [..., 3] as float32 with the channels of the output, but in RGB."""
    real = b.add(Cast, pixels, ElementType.FLOAT32)
    if settings.color != "GRAY":
        return real
    assert real.type.shape is not None, "pictures have four axes"
    gray = b.add(ReduceSum, b.add(Mul, real, _LUMA), (len(real.type.shape) - 1,), True)
    return b.add(Floor, b.add(Add, gray, 0.5))


def _padding(b: Builder, axes: tuple[Axis, Axis]) -> Operand | None:
    """Return which output pixels are padding, as booleans [height, width, 1], if any may be."""
    masks = []
    for axis, shape in zip(axes, ((1, 2), (0, 2)), strict=True):
        if axis.pads:
            pixels = axis.pixels()
            inside = pixels.at_least(0).at_most(axis.resized - 1)
            masks.append(b.add(Unsqueeze, b.add(NotEqual, pixels.operand, inside.operand), shape))
    return b.add(Or, *masks) if len(masks) == 2 else next(iter(masks), None)


def _normalized(b: Builder, pixels: Operand, axis: int, settings: Preprocess) -> Operand:
    """Return `(pixels - mean) * scale`, as one multiplication and one addition."""
    scale = np.array(settings.scale, np.float64)
    bias = -np.array(settings.mean) * scale
    for operator, parameter, neutral in ((Mul, scale, 1), (Add, bias, 0)):
        if (parameter != neutral).any():
            shape = (-1,) + (1,) * (3 - axis)
            pixels = b.add(operator, pixels, parameter.astype(np.float32).reshape(shape))
    return pixels


def _converted(b: Builder, pixels: Operand, settings: Preprocess) -> Operand:
    """Return the result in its element type: rounded and saturated if that is an integer type."""
    element_type = settings.element_type
    assert isinstance(element_type, ElementType), "it is resolved"
    if element_type is ElementType.FLOAT32:
        return pixels
    if element_type in INTEGERS:
        pixels = b.add(Clip, b.add(Round, pixels), *map(float, limits(element_type)))
    return b.add(Cast, pixels, element_type)
