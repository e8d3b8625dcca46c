"""Pooling of [N, C, …] images over windows of a fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import require_rank
from crosschip.ops.definition.slots import (
    Parameter,
    axis_integers,
    choice,
    flag,
    fuse,
    index_type,
    tensor,
)
from crosschip.ops.definition.spatial import build_planar, build_planes
from crosschip.ops.definition.windows import (
    AutoPad,
    SpatialOperator,
    Windows,
    is_static,
    static,
)
from crosschip.ops.standard.arithmetic import Div
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.slicing import Slice

_BYTES = frozenset({ElementType.INT8, ElementType.UINT8})


class Pool(SpatialOperator):
    """Base class of pooling over windows of a fixed size, for one to three spatial axes.

    `size_out = floor((size + before + after - (dilation * (kernel - 1) + 1)) / stride) + 1` on each
    axis; `ceil` instead of `floor` with `ceil_mode`. With `inside`, a last window that `ceil_mode`
    adds is dropped if it would start after the image and the padding before it, as in ONNX and
    PyTorch (NNAdapter and Paddle keep it). With `auto_pad` `SAME`, `size_out = ceil(size /
    stride)`.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    auto_pad = choice(AutoPad, AutoPad.NONE)
    pads = axis_integers(0, 2)
    kernel_shape = axis_integers()
    strides = axis_integers(1)
    ceil_mode = flag(False)
    dilations: Parameter[tuple[int, ...]]
    inside: Parameter[bool]

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
        batch, channels, *image = require_rank(shape_of(self.input), 2 + self.spatial_rank, "input")
        return (batch, channels, *self.windows.counts(image))


class AveragePool(Pool):
    """Base class of the means of windows."""

    __slots__ = ()
    count_include_pad = flag(False)
    fuse_code = fuse()
    dilations = axis_integers(1)
    inside = flag(False)

    def infer_shape(self) -> Shape:
        return self.pooled_shape()

    def reference(self, input: Array) -> Array:
        windows = self.windows
        total = np.stack([pixels for _, pixels in windows.sliding_windows(input, 0)]).sum(axis=0)
        population = windows.population(input.shape[2:], with_padding=self.count_include_pad)
        return total / population.astype(input.dtype)


@operator("AVERAGE_POOL_2D")
class AveragePool2D(AveragePool, spatial_rank=2):
    """The mean of each [kernel_h, kernel_w] window of an [N, C, H, W] image.

    `pads` are top, bottom, left, right. `H_out = floor((H + top + bottom - (dilation_h * (kernel_h
    - 1) + 1)) / stride_h) + 1`, with `ceil` instead of `floor` with `ceil_mode`, and the width
    likewise. With `inside`, a last window that `ceil_mode` adds is dropped if it would start after
    the
    image and the padding before it, as in ONNX and PyTorch (NNAdapter and Paddle keep it). With
    `auto_pad` `SAME`, `H_out = ceil(H / stride_h)`.

    With `count_include_pad`, padding counts as zeros; otherwise the divisor is the number of image
    pixels in the window. Pixels of a `ceil_mode` window after the padding never count. A window
    without anything to count gives NaN. Sums are in the element type, in any order. For images
    without channels or pixels nothing is specified, and an error is accepted.

    Sources: NNAdapter's AVERAGE_POOL_2D, NNRt's AVG_POOL, ONNX's AveragePool (opset 22).
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Operand | None:
        """Decompose into a convolution with ones, divided by the pixels of each window."""
        windows, image = self.windows, shape_of(self.input)[2:]
        channels = static(shape_of(self.input)[1:2])[0]
        if not channels:
            return None
        dtype = self.input.type.element_type.dtype
        if self.ceil_mode and not self.auto_pad.keeps_size:
            windows = windows.rounded_down(static(image))
        ones = np.ones((channels, 1, *self.kernel_shape), dtype)
        sums = b.add(Conv2D, self.input, ones, **_window_arguments(windows), group=channels)
        return b.add(Div, sums, self._count_pixels(b, image))

    def _count_pixels(self, b: Builder, image: Shape) -> Operand:
        """Add the number of pixels of each window; one number if all are equal and known."""
        dtype = self.input.type.element_type.dtype
        if is_static(image):
            population = self.windows.population(static(image), with_padding=self.count_include_pad)
            return b.constant(population.astype(dtype))
        if self.count_include_pad or self.auto_pad is AutoPad.VALID:
            return b.constant(np.array(np.prod(self.kernel_shape), dtype))
        sizes = b.add(Slice, b.add(ShapeOf, self.input), axes=(0,), starts=(2,), ends=(4,))
        shape = b.add(Concat, parts=[b.constant(np.ones(2, np.int64)), sizes], axis=0)
        ones = b.add(Fill, shape, np.array(1, dtype))
        weights = np.ones((1, 1, *self.kernel_shape), dtype)
        return b.add(Conv2D, ones, weights, **_window_arguments(self.windows))


@operator("AVERAGE_POOL_1D")
class AveragePool1D(AveragePool, spatial_rank=1):
    """The mean of each window of an [N, C, W] signal.

    It is `AVERAGE_POOL_2D` of images of height 1, and equal to it in all other respects, including
    quantization; `pads` are left, right. A window without anything to count gives NaN. For signals
    without channels or pixels nothing is specified, and an error is accepted. Source: ONNX's
    AveragePool (opset 22).
    """

    __slots__ = ()

    def decomposition(self, b: Builder) -> tuple[Operand, ...] | None:
        """Decompose into the pooling of an image of height 1, also if quantized or fused."""
        return build_planar(b, self, AveragePool2D)


@operator("AVERAGE_POOL_3D")
class AveragePool3D(AveragePool, spatial_rank=3):
    """The mean of each [kernel_d, kernel_h, kernel_w] window of an [N, C, D, H, W] volume.

    It is `AVERAGE_POOL_2D` with another axis, and equal to it in all other respects, including
    quantization; `pads` are front, back, top, bottom, left, right. A window without anything to
    count gives NaN. For volumes without channels or pixels nothing is specified, and an error is
    accepted. Source: ONNX's AveragePool (opset 22).
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Sequence[Operand]:
        """Decompose into the means of planes, and their means along the depth."""
        return build_planes(b, self, AveragePool2D)


class MaxPool(Pool):
    """Base class of the maxima of windows."""

    __slots__ = ()
    input = tensor(FLOATS | _BYTES)
    return_indices = flag(False)
    return_indices_dtype = index_type(ElementType.INT32)
    fuse_code = fuse()
    dilations = axis_integers(1)
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
        image = input.shape[2:]
        offsets = np.arange(np.prod(image)).reshape(1, 1, *image)
        indices_in_windows = np.stack(
            [indices_in_windows for _, indices_in_windows in windows.sliding_windows(offsets, -1)]
        )
        # Padding is as small as the least pixel can be, but never where the maximum is.
        inside_image = (indices_in_windows >= 0).argmax(axis=0)
        best = np.where(pixels.max(axis=0) == least, inside_image, pixels.argmax(axis=0))
        indices = np.take_along_axis(
            np.broadcast_to(indices_in_windows, pixels.shape), best[None], axis=0
        )
        return [pixels.max(axis=0), indices[0]]


@operator("MAX_POOL_2D", core=True)
class MaxPool2D(MaxPool, spatial_rank=2):
    """The maximum of each [kernel_h, kernel_w] window of an [N, C, H, W] image.

    `pads` are top, bottom, left, right. `H_out = floor((H + top + bottom - (dilation_h * (kernel_h
    - 1) + 1)) / stride_h) + 1`, with `ceil` instead of `floor` with `ceil_mode`, and the width
    likewise. With `inside`, a last window that `ceil_mode` adds is dropped if it would start after
    the
    image and the padding before it, as in ONNX and PyTorch (NNAdapter and Paddle keep it). With
    `auto_pad` `SAME`, `H_out = ceil(H / stride_h)`.

    Padding is never the maximum; a window without an image pixel gives the least value of the
    element type. For a window with a NaN the result is the device's choice: NaN, one of the pixels,
    or the least value; minus infinity may be the least finite number; the index is the device's
    choice then, too. (ONNX, NNAdapter and NNRt do not specify NaN: PyTorch gives NaN, OpenVINO and
    ONNX's evaluator the greatest number, ONNX Runtime either, depending on the position of the
    NaN.) For images without channels or pixels nothing is specified, and an error is accepted.

    With `return_indices` there is a second output, of type `return_indices_dtype` (int32 or int64):
    the offset of the maximum in the [H, W] image without padding, of the first in row order if
    there are several, -1 for a window without a pixel.

    Sources: NNAdapter's MAX_POOL_2D, NNRt's MAX_POOL, ONNX's MaxPool (whose indices count through
    all of [N, C, H, W]).
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Sequence[Operand] | None:
        """Decompose into the pooling with explicit padding, or of a padded image."""
        image = static(shape_of(self.input)[2:])
        if 0 in image:
            return None
        if self.auto_pad is not AutoPad.NONE and not self.ceil_mode:
            return self._max_pool(b, self.input, self.windows.sides(image))
        pads = self.windows.padding(image)
        all_windows_have_pixels = self.windows.population(image, with_padding=False).all()
        stored = self.input.type.element_type
        # Engines merge zeros around bytes into the pooling again.
        if (
            self.return_indices
            or not any(pads)
            or not all_windows_have_pixels
            or stored not in FLOATS
        ):
            return None
        least = np.array(-np.inf, stored.dtype)
        padded = b.add(Pad, self.input, (0, 0, 0, 0, *pads), PadMode.CONSTANT, least)
        return self._max_pool(b, padded, (0, 0, 0, 0))

    def _max_pool(self, b: Builder, image: Operand, pads: Sequence[int]) -> Sequence[Operand]:
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


@operator("MAX_POOL_1D")
class MaxPool1D(MaxPool, spatial_rank=1):
    """The maximum of each window of an [N, C, W] signal.

    It is `MAX_POOL_2D` of images of height 1, and equal to it in all other respects, including
    quantization; `pads` are left, right, and indices are offsets in [W]. NaN and minus infinity
    are treated as in `MAX_POOL_2D`. For signals without channels or pixels nothing is specified,
    and an error is accepted. Source: ONNX's MaxPool.
    """

    __slots__ = ()

    def decomposition(self, b: Builder) -> tuple[Operand, ...] | None:
        """Decompose into the pooling of an image of height 1, also if quantized or fused."""
        return build_planar(b, self, MaxPool2D)


@operator("MAX_POOL_3D")
class MaxPool3D(MaxPool, spatial_rank=3):
    """The maximum of each [kernel_d, kernel_h, kernel_w] window of an [N, C, D, H, W] volume.

    It is `MAX_POOL_2D` with another axis, and equal to it in all other respects, including
    quantization; `pads` are front, back, top, bottom, left, right, and indices are offsets in [D,
    H, W]. NaN and minus infinity are treated as in `MAX_POOL_2D`. For volumes
    without channels or pixels nothing is specified, and an error is accepted. Source: ONNX's
    MaxPool.
    """

    __slots__ = ()

    def decompose(self, b: Builder) -> Sequence[Operand]:
        """Decompose into the maxima of planes, and their maxima along the depth."""
        return build_planes(b, self, MaxPool2D)


def _window_arguments(windows: Windows) -> dict[str, Any]:
    """Return the arguments of a convolution over the same windows."""
    return {
        "auto_pad": windows.auto_pad,
        "pads": windows.pads,
        "strides": windows.strides,
        "dilations": windows.dilations,
    }
