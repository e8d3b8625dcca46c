"""The operations of preprocessing, on pixels [N, height, width, channels]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand
from crosschip.ir.types import INTEGERS
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.arithmetic import Add, Clip, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Or, Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Floor, Round
from crosschip.preprocessing.resampling import Axis, copied_pixels, linear_taps, weighted_taps
from crosschip.preprocessing.settings import Numbers, as_pair
from crosschip.preprocessing.value import Value

if TYPE_CHECKING:
    from crosschip.preprocessing.preprocess import Preprocess

_LUMA = (0.299, 0.587, 0.114)
"""The weights of red, green and blue in gray (ITU-R BT.601), of OpenCV, Pillow and torchvision."""

_HEIGHT, _WIDTH, _CHANNELS = 1, 2, 3
"""The axes of pixels."""


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
    pixels = _padded(b, _resampled(b, picture, axes, settings), axes, settings)
    pixels = _normalized(b, pixels, settings)
    channels = _CHANNELS
    if settings.layout == "NCHW":
        pixels, channels = b.add(Transpose, pixels, (0, 3, 1, 2)), 1
    if settings.color == "BGR":  # last, where engines copy whole planes
        pixels = b.add(Gather, pixels, b.constant(np.array([2, 1, 0], np.int32)), channels)
    return _converted(b, pixels, settings)


def _axes(b: Builder, picture: Operand, settings: Preprocess) -> tuple[Axis, Axis]:
    """Return height and width as they are resized, padded and cropped."""
    sizes = [Value.of_size(b, picture, axis) for axis in (_HEIGHT, _WIDTH)]
    resized = _resized_sizes(b, sizes, settings)
    height, width = (
        _axis(b, number, sizes[number], resized[number], settings) for number in (0, 1)
    )
    return height, width


def _axis(b: Builder, number: int, size: Value, resized: Value, settings: Preprocess) -> Axis:
    """Return one axis as it is padded and cropped; `number` is its index in sizes."""
    resize, crop = as_pair("resize", settings.resize), as_pair("crop", settings.crop)
    output, offset, least, pads = resized, Value(b, 0), resized.number, False
    if resize is not None:
        least = resize[number]
        if settings.fit == "longer":
            pads, output = True, Value(b, least)
            if settings.position == "center":
                offset = -((output - resized) // 2)
    if crop is not None:
        side = crop[number]
        offset = offset + _crop_offset(output, side)
        output = Value(b, side)
        pads = pads or least is None or least < side
    return Axis(size, resized, output, offset, pads)


def _resized_sizes(b: Builder, sizes: Sequence[Value], settings: Preprocess) -> Sequence[Value]:
    """Return the height and width of the resized picture."""
    box = as_pair("resize", settings.resize)
    if box is None:
        return sizes
    if settings.fit == "stretch":
        return [Value(b, side) for side in box]
    resized = []
    for number, (size, other) in enumerate(zip(sizes, sizes[::-1], strict=True)):
        side, other_side = box[number], box[1 - number]
        if settings.fit == "shorter":
            resized.append((size * other_side // other).at_least(side))
        else:
            nearest = (size * (2 * other_side) + other) // (other * 2)
            resized.append(nearest.at_most(side).at_least(1))
    return resized


def _crop_offset(size: Value, crop: int) -> Value:
    """Return where a centered crop begins: half the difference, as torchvision rounds it."""
    more, fewer = (size - crop).at_least(0), (-size + crop).at_least(0)
    half = more // 2
    is_odd = half - half // 2 * 2
    return (more + is_odd) // 2 - fewer // 2


def _resampled(
    b: Builder, picture: Operand, axes: tuple[Axis, Axis], settings: Preprocess
) -> Operand:
    """Return the pixels of the output, as whole numbers in float32."""
    method = settings.interpolation, settings.antialias
    rows, columns = (copied_pixels(axis, *method) for axis in axes)
    if rows is not None and columns is not None:
        for number, axis, indices in zip((_HEIGHT, _WIDTH), axes, (rows, columns), strict=True):
            if axis.output is not axis.size:
                picture = b.add(Gather, picture, indices.integers, number)
        return _real(b, picture, settings)
    if method == ("linear", False):
        return _rounded(b, _bilinear(b, picture, axes, settings))
    if method == ("cubic", True):  # as in torchvision: the order matters, since values saturate
        pixels = _weighted_sums(b, picture, _WIDTH, axes[1], settings)
        pixels = _saturated(b, _rounded(b, pixels))
        pixels = _weighted_sums(b, pixels, _HEIGHT, axes[0], settings)
    else:
        pixels = _weighted_sums(b, picture, _HEIGHT, axes[0], settings)
        pixels = _weighted_sums(b, pixels, _WIDTH, axes[1], settings)
    pixels = _rounded(b, pixels)
    return _saturated(b, pixels) if settings.interpolation == "cubic" else pixels


def _bilinear(
    b: Builder, picture: Operand, axes: tuple[Axis, Axis], settings: Preprocess
) -> Operand:
    """Return the bilinear interpolation between the four pixels around each output pixel.

    The pixels are gathered as bytes, so that only those that are needed become reals.
    """
    above, below, down = linear_taps(axes[0])
    left, right, across = linear_taps(axes[1])
    rows = [b.add(Gather, picture, indices.integers, _HEIGHT) for indices in (above, below)]
    columns = []
    for indices in (left.integers, right.integers):
        first, second = (_real(b, b.add(Gather, row, indices, _WIDTH), settings) for row in rows)
        columns.append(_between(b, first, second, down.shaped(1, -1, 1, 1)))
    return _between(b, columns[0], columns[1], across.shaped(1, 1, -1, 1))


def _between(b: Builder, first: Operand, second: Operand, weight: Value) -> Operand:
    """Return the weighted mean of two operands, with the weight of the second."""
    change = b.add(Mul, b.add(Sub, second, first), weight.operand)
    return b.add(Add, first, change)


def _weighted_sums(
    b: Builder, pixels: Operand, number: int, axis: Axis, settings: Preprocess
) -> Operand:
    """Return the sums of the weighted taps along an axis, as products of matrices.

    The axis comes first, so that the taps of a pixel are rows; a width is transposed before.
    """
    indices, weights = weighted_taps(axis, settings.interpolation, settings.antialias)
    order = (0, 2, 3, 1) if number == _WIDTH else (0, 1, 2, 3)
    if number == _WIDTH:
        pixels = b.add(Transpose, _real(b, pixels, settings), order)
    gathered = _real(b, b.add(Gather, pixels, indices.integers, 1), settings)
    rows = b.add(Reshape, gathered, (0, 0, 0, -1))  # [N, output, taps, pixels of a row]
    sums = b.add(MatMul, b.add(Unsqueeze, weights.operand, (1,)), rows)
    if number == _WIDTH:
        sums = b.add(Reshape, sums, (0, 0, settings.channels, -1))
        return b.add(Transpose, sums, (0, 3, 1, 2))
    return b.add(Reshape, sums, (0, 0, -1, settings.channels))


def _rounded(b: Builder, pixels: Operand) -> Operand:
    """Return the nearest whole numbers, a half up."""
    return b.add(Floor, b.add(Add, pixels, 0.5))


def _saturated(b: Builder, pixels: Operand) -> Operand:
    return b.add(Clip, pixels, 0.0, 255.0)


def _real(b: Builder, pixels: Operand, settings: Preprocess) -> Operand:
    """Return bytes [..., 3] as float32, and in gray if the model takes gray; float32 as it is."""
    if pixels.type.element_type is ElementType.FLOAT32:
        return pixels
    real = b.add(Cast, pixels, ElementType.FLOAT32)
    if settings.color != "GRAY":
        return real
    assert real.type.shape is not None, "its rank is known"
    channels = len(real.type.shape) - 1
    weighted = b.add(Mul, real, np.array(_LUMA, np.float32))
    return _rounded(b, b.add(ReduceSum, weighted, (channels,), True))


def _padded(b: Builder, pixels: Operand, axes: tuple[Axis, Axis], settings: Preprocess) -> Operand:
    """Return the pixels with the value of padding outside the picture."""
    masks = []
    for axis, shape in zip(axes, ((1, -1, 1, 1), (1, 1, -1, 1)), strict=True):
        if axis.pads:
            is_outside = (axis.pixels() - axis.inside()).magnitude().at_most(1)
            masks.append(b.add(Cast, is_outside.shaped(*shape).operand, ElementType.BOOL))
    if not masks:
        return pixels
    is_padding = b.add(Or, *masks) if len(masks) > 1 else masks[0]
    return b.add(Where, is_padding, _per_channel(settings, settings.pad_value), pixels)


def _normalized(b: Builder, pixels: Operand, settings: Preprocess) -> Operand:
    """Return `(pixels - mean) * scale`, as one multiplication and one addition."""
    scale = np.array(settings.scale)
    bias = -np.array(settings.mean) * scale
    if (scale != 1).any():
        pixels = b.add(Mul, pixels, _per_channel(settings, scale))
    return b.add(Add, pixels, _per_channel(settings, bias)) if bias.any() else pixels


def _per_channel(settings: Preprocess, numbers: Numbers) -> Array:
    """Return numbers for the model's channels as [1, 1, 1, channels] of the picture's order."""
    in_order = np.array(numbers, np.float32).reshape(1, 1, 1, -1)
    return np.ascontiguousarray(in_order[..., ::-1]) if settings.color == "BGR" else in_order


def _converted(b: Builder, pixels: Operand, settings: Preprocess) -> Operand:
    """Return the result in its element type: rounded and saturated if that is an integer type."""
    element_type = settings.element_type
    assert isinstance(element_type, ElementType), "it is resolved"
    if element_type is ElementType.FLOAT32:
        return pixels
    if element_type in INTEGERS:
        pixels = b.add(Clip, b.add(Round, pixels), *map(float, limits(element_type)))
    return b.add(Cast, pixels, element_type)
