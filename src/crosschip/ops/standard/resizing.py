"""Resampling of [N, C, H, W] images to another height and width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape, unknown
from crosschip.ir.types import BOOLEANS, FLOATS, INTEGERS
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import require_rank
from crosschip.ops.definition.slots import (
    ComputedParameter,
    Parameter,
    choice,
    flag,
    optional_integers,
    optional_reals,
    real,
    tensor,
)
from crosschip.ops.definition.windows import static
from crosschip.ops.numerics.resampling import (
    AlignMode,
    Axis,
    Neighbours,
    Rounding,
    axes_of,
    extrapolation_mask,
    nearest,
    neighbours,
    scaled_size,
)
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import MatMul


class _Resize(Operator):
    """Base class of resampling to `shape` (height, width), or by `scales` without `shape`."""

    __slots__ = ()
    input = tensor(FLOATS)
    shape = optional_integers(2)
    scales = optional_reals(2)
    align_corners = flag(False)
    align_mode: Parameter[AlignMode]
    roi: Parameter[tuple[float, ...] | None]
    extrapolation_value: Parameter[float]

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return 0 if axes[0] == 0 and set(axes[1:]) <= {None} else None

    def infer_shape(self) -> Shape:
        batch, channels, *image = require_rank(shape_of(self.input), 4, "input")
        if self.operand("shape") is None and self.operand("scales") is None:
            raise ValueError("shape: either it or scales must be given")
        if self.align_mode is AlignMode.CROP:
            region = self.operand("roi")
            if region is None:
                raise ValueError("roi: must be given with align_mode CROP")
            if region.value is not None and not np.isfinite(region.value.astype(np.float64)).all():
                raise ValueError(f"roi: {region.value.tolist()} has a number that is not finite")
        try:
            sizes = self._sizes(image)
        except ComputedParameter:
            return (batch, channels, unknown(), unknown())
        self._check_extrapolation()
        for size, new in zip(image, sizes, strict=True):
            if isinstance(new, int) and new < 0:
                raise ValueError(f"shape: {list(sizes)} has a negative size")
            if size == 0 and new != 0:
                raise ValueError(f"input: an image of {image[0]} by {image[1]} has no pixels")
        return (batch, channels, *sizes)

    def _sizes(self, image: Sequence[Dim]) -> Sequence[Dim]:
        if self.operand("shape") is not None:
            return self.shape or ()
        return [
            scaled_size(size, scale) for size, scale in zip(image, self.scales or (), strict=True)
        ]

    def _check_extrapolation(self) -> None:
        """Raise ValueError unless the extrapolation value is of the image's element type."""
        (slot, input), *_ = self.filled()
        element_type = slot.element_type(input)
        if self.operand("extrapolation_value") is None or element_type not in INTEGERS | BOOLEANS:
            return
        value = self.extrapolation_value
        least, greatest = (0, 1) if element_type in BOOLEANS else limits(element_type)
        if value != value or not least <= value <= greatest:
            raise ValueError(f"extrapolation_value: {value:g} is not of the type {element_type}")

    def static_axes(self) -> list[Axis]:
        """Return height and width as resampled axes, if they are known at compile time."""
        return self.axes(static(shape_of(self.input)[2:]))

    def axes(self, image: Sequence[int]) -> list[Axis]:
        """Return height and width as resampled axes."""
        return axes_of(
            image, self.shape, self.scales, self.align_corners, self.align_mode, self.roi
        )

    def build_extrapolation(self, b: Builder, output: Operand, axes: Sequence[Axis]) -> Operand:
        """Build the output with `extrapolation_value` for pixels outside the source."""
        outside = extrapolation_mask(axes)
        if not outside.any():
            return output
        dtype = output.type.element_type.dtype
        return b.add(Where, b.constant(outside), np.array(self.extrapolation_value, dtype), output)


@operator("RESIZE_NEAREST")
class ResizeNearest(_Resize):
    """The nearest pixel of an [N, C, H, W] image, for an image of another height and width.

    The new size is `shape` (height, width), or, without `shape`, `floor(size * scale)` for each of
    `scales`. The source coordinate is, with `align_corners`, `target * ((size - 1) / (new - 1))` (0
    where `new` is 1), else by `align_mode`, with `ratio = size / new` if `shape` is present, else
    `1 / scale`:

    - `HALF_PIXEL`: `(target + 0.5) * ratio - 0.5`; `ASYMMETRIC`: `target * ratio`;
    - `PYTORCH_HALF_PIXEL`: like `HALF_PIXEL`, but 0 where `new` is 1;
    - `SYMMETRIC_HALF_PIXEL`: like `HALF_PIXEL`, plus `(size - new / scale) / 2`;
    - `WHOLE_HALF_PIXEL`: `(target + 0.5) * ratio`;
    - `CROP`: `(start + target * (end - start) / (new - 1)) * (size - 1)`, the middle of that where
      `new` is 1; `roi` is the starts, then the ends of height and width; a coordinate outside `[0,
      size - 1]` gives `extrapolation_value`;
    - `SCALED_CORNERS`: `target * ((size - 1) / (size * scale - 1))`, 0 where `size * scale` is 1.

    All of this is in float32. `rounding` maps a coordinate to a pixel: `DOWN` and `UP` always round
    down or up, `DOWN_AT_HALF` and `UP_AT_HALF` round to nearest, `USUAL` is `UP_AT_HALF` with
    `align_corners`, else `DOWN`. The pixel is clamped to the image. Elements are copied unchanged,
    NaN included. An image without pixels is an error unless the new image has none either.

    Sources: NNAdapter's RESIZE_NEAREST, Paddle's nearest_interp_v2, ONNX's Resize.
    """

    __slots__ = ()
    moves = True
    input = tensor(FLOATS | INTEGERS | BOOLEANS)
    align_mode = choice(AlignMode, AlignMode.ASYMMETRIC)
    rounding = choice(Rounding, Rounding.USUAL)
    roi = optional_reals(4)
    extrapolation_value = real(0.0)

    def reference(self, input: Array) -> Array:
        axes = self.axes(input.shape[2:])
        rows, columns = (nearest(axis, self.rounding, self.align_corners) for axis in axes)
        output = input[:, :, rows[:, None], columns]
        return np.where(
            extrapolation_mask(axes), np.array(self.extrapolation_value, input.dtype), output
        )

    @property
    def moves_integers(self) -> bool:
        # The extrapolation value is a real, so its quantized value differs.
        return super().moves_integers and not self._may_extrapolate()

    def _may_extrapolate(self) -> bool:
        try:
            return self.align_mode is AlignMode.CROP
        except ComputedParameter:
            return True

    def decompose(self, b: Builder) -> Operand:
        axes, output = self.static_axes(), self.input
        for number, axis in enumerate(axes):
            pixels = nearest(axis, self.rounding, self.align_corners)
            output = b.add(Gather, output, pixels, axis=2 + number)
        return self.build_extrapolation(b, output, axes)


class _Interpolation(_Resize):
    """Base class of resampling in which a pixel is a weighted sum of neighbours, axis by axis."""

    __slots__ = ()
    align_mode = choice(AlignMode, AlignMode.HALF_PIXEL)
    exclude_outside: Parameter[bool]
    antialias: Parameter[bool]

    def neighbours(self, axis: Axis) -> Neighbours:
        """Return the source pixels that contribute to each target pixel."""
        raise NotImplementedError

    def reference(self, input: Array) -> Array:
        axes, output = self.axes(input.shape[2:]), input
        for number, axis in ((2, axes[0]), (3, axes[1])):
            pixels, weights = self.neighbours(axis)
            along = (-1,) + (1,) * (3 - number)
            output = sum(
                (
                    np.take(output, pixel, number) * weight.astype(input.dtype).reshape(along)
                    for pixel, weight in zip(pixels.T, weights.T, strict=True)
                ),
                np.zeros((), input.dtype),
            )
        return np.where(
            extrapolation_mask(axes), np.array(self.extrapolation_value, input.dtype), output
        )

    def decompose(self, b: Builder) -> Operand:
        axes = self.static_axes()
        dtype = self.input.type.element_type.dtype
        rows, columns = (self.neighbours(a).matrix(a.size).astype(dtype) for a in axes)
        tall = b.add(MatMul, b.constant(rows), self.input)
        return self.build_extrapolation(b, b.add(MatMul, tall, columns, transpose_y=True), axes)


@operator("RESIZE_LINEAR")
class ResizeLinear(_Interpolation):
    """Bilinear interpolation of an [N, C, H, W] image to another height and width.

    Sizes, `ratio` and coordinates are as in `RESIZE_NEAREST`; the default `align_mode` is
    `HALF_PIXEL`. Along each axis the pixel at coordinate `p` is `(1 - t) * source[i] + t * source[i
    + 1]` with `i = floor(p)`, `t = p - i`; pixels outside the image have the value of the border
    pixel (or, with `exclude_outside`, weight 0: the other weights are divided by their sum).

    With `antialias`, and if the target is smaller, `ratio = 1 / scale` pixels on both sides
    contribute, pixel `i` with the weight `max(0, 1 - abs(i - p) / ratio)` divided by the sum of all
    weights.

    Weights have float32's precision. A channel of an image that contains NaN or an infinity is
    unspecified. A size of 0 gives an image without pixels, or an error. Sources: NNAdapter's
    RESIZE_LINEAR, Paddle's bilinear_interp_v2, NNRt's RESIZE_BILINEAR, ONNX's Resize.
    """

    __slots__ = ()
    exclude_outside = flag(False)
    antialias = flag(False)
    roi = optional_reals(4)
    extrapolation_value = real(0.0)

    def neighbours(self, axis: Axis) -> Neighbours:
        def triangle(distance: Array) -> Array:
            return np.maximum(0, 1 - np.abs(distance))

        return neighbours(axis, triangle, 1, self.antialias, self.exclude_outside)


@operator("RESIZE_CUBIC")
class ResizeCubic(_Interpolation):
    """Bicubic interpolation of an [N, C, H, W] image to another height and width.

    Sizes, `ratio` and coordinates are as in `RESIZE_LINEAR`. Along each axis four pixels around
    coordinate `p` contribute, pixel `i` with the weight `w(abs(i - p))`, where, with `a =
    coefficient`, `w(x) = (a + 2) * x ** 3 - (a + 3) * x ** 2 + 1` for `x <= 1`, `a * (x ** 3 - 5 *
    x ** 2 + 8 * x - 4)` for `x < 2`, else 0 (R. Keys, Cubic convolution interpolation for digital
    image processing, 1981). Pixels outside the image have the value of the border pixel (or, with
    `exclude_outside`, weight 0: the other weights are divided by their sum).

    With `antialias`, and if the target is smaller, the weights are `w(abs(i - p) / ratio)` divided
    by their sum, for `2 * ratio` pixels on both sides. NaN, infinity and sizes of 0 as in
    `RESIZE_LINEAR`.

    Sources: ONNX's Resize; Paddle's bicubic_interp_v2 and PyTorch have -0.75 as `coefficient`.
    """

    __slots__ = ()
    coefficient = real(-0.75)
    exclude_outside = flag(False)
    antialias = flag(False)
    roi = optional_reals(4)
    extrapolation_value = real(0.0)

    def neighbours(self, axis: Axis) -> Neighbours:
        a = self.coefficient

        def cubic(distance: Array) -> Array:
            x = np.abs(distance)
            near = ((a + 2) * x - (a + 3)) * x * x + 1
            return np.where(x <= 1, near, np.where(x < 2, a * (((x - 5) * x + 8) * x - 4), 0))

        return neighbours(axis, cubic, 2, self.antialias, self.exclude_outside)
