"""Pooling of [N, C, H, W] images over windows of a fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.convolution import Conv2D
from crosschip.ops.creation import Fill
from crosschip.ops.elementwise import Div
from crosschip.ops.examples import example, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.joining import Concat
from crosschip.ops.layout import ShapeOf
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.padding import Pad, PadMode
from crosschip.ops.quantized import limits
from crosschip.ops.shapes import of_rank
from crosschip.ops.slicing import Slice
from crosschip.ops.slots import Parameter, choice, element_type, flag, fuse, integers, tensor
from crosschip.ops.windows import AutoPad, Windows, is_static, static

_WINDOW_OPERANDS = ("input", "auto_pad", "pads", "kernel_shape", "strides", "ceil_mode")
_NNRT_PARAMETERS = {
    "KERNEL_SIZE": "kernel_shape",
    "STRIDE": "strides",
    "PAD_MODE": "auto_pad",
    "PAD": "pads",
    "ACTIVATION_TYPE": "fuse_code",
    "ROUND_MODE": "ceil_mode",
    "GLOBAL": "",
}
_NNRT_TRANSLATION = (
    "input and output are NHWC; PAD_MODE 0 is SAME, 1 and 2 are VALID; with PAD, auto_pad is NONE; "
    "with GLOBAL, kernel_shape is the image's"
)
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

    @property
    def windows(self) -> Windows:
        """Where the windows lie."""
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
        batch, channels, *image = of_rank(shape_of(self.input), 4, "input")
        return (batch, channels, *self.windows.counts(image))


@operator(
    "AVERAGE_POOL_2D",
    nnadapter=NNAdapter(8, operands=(*_WINDOW_OPERANDS, "count_include_pad", "fuse_code")),
    nnrt=(NNRt(2, "AVG_POOL", parameters=_NNRT_PARAMETERS, translation=_NNRT_TRANSLATION),),
    hdi=(NodeType.AVGPOOL_FUSION,),
    onnx=("AveragePool",),
)
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
    element type, in any order.

    Sources: NNAdapter's AVERAGE_POOL_2D, NNRt's AVG_POOL, ONNX's AveragePool (opset 22).
    """

    __slots__ = ()
    count_include_pad = flag(False)
    fuse_code = fuse()
    dilations = _dilations()
    inside = flag(False)

    examples = (
        example(input=random(2, 3, 6, 7), kernel_shape=(2, 3), strides=(2, 1)),
        example(input=random(1, 2, 6, 7), kernel_shape=(3, 3), pads=(1, 1, 0, 2)),
        example(
            input=random(1, 2, 6, 7), kernel_shape=(3, 2), pads=(1, 1, 1, 0), count_include_pad=True
        ),
        example(input=random(1, 2, 7, 6), kernel_shape=(3, 3), strides=(2, 2), ceil_mode=True),
        example(
            input=random(1, 2, 6, 6),
            kernel_shape=(2, 2),
            strides=(3, 3),
            pads=(0, 1, 1, 1),
            ceil_mode=True,
            count_include_pad=True,
            inside=True,
        ),
        example(input=random(1, 2, 5, 6), kernel_shape=(3, 3), strides=(2, 2), auto_pad=1),
        example(input=random(1, 2, 6, 7), kernel_shape=(2, 2), dilations=(2, 3), fuse_code=1),
        example(
            input=random(
                1, 2, 4, 5, dtype=ElementType.UINT8, low=0, high=256,
                quantization=Quantization((0.05,), (128,)),
            ),
            kernel_shape=(2, 2),
            quantization=Quantization((0.04,), (120,)),
        ),
    )  # fmt: skip

    def infer_shape(self) -> Shape:
        return self.pooled_shape()

    def reference(
        self,
        input: Array,
        auto_pad: AutoPad,
        pads: Sequence[int],
        kernel_shape: Sequence[int],
        strides: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        dilations: Sequence[int],
        inside: bool,
    ) -> Array:
        windows = Windows(kernel_shape, strides, dilations, auto_pad, pads, ceil_mode, inside)
        total = np.stack([pixels for _, _, pixels in windows.taps(input, 0)]).sum(axis=0)
        population = windows.population(input.shape[2:], with_padding=count_include_pad)
        return total / population.astype(input.dtype)

    def decompose(self, b: Builder) -> Operand | None:
        """Sums by a convolution with ones, over how many there are in each."""
        windows, image = self.windows, shape_of(self.input)[2:]
        channels = static(shape_of(self.input)[1:2])[0]
        dtype = self.input.type.element_type.dtype
        if self.ceil_mode and not self.auto_pad.keeps_size:
            windows = windows.rounded_down(static(image))
        ones = np.ones((channels, 1, *self.kernel_shape), dtype)
        sums = b.add(Conv2D, self.input, ones, **_convolving(windows), group=channels)
        return b.add(Div, sums, self._population(b, image))

    def _population(self, b: Builder, image: Shape) -> Operand:
        """How many pixels each window has, all of them one number if that is known."""
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


@operator(
    "MAX_POOL_2D",
    nnadapter=NNAdapter(
        49, operands=(*_WINDOW_OPERANDS, "return_indices", "return_indices_dtype", "fuse_code")
    ),
    nnrt=(NNRt(21, "MAX_POOL", parameters=_NNRT_PARAMETERS, translation=_NNRT_TRANSLATION),),
    hdi=(NodeType.MAX_POOL_FUSION,),
    onnx=("MaxPool",),
    core=True,
)
class MaxPool2D(Pool2D):
    """The maximum of each [kernel_h, kernel_w] window of an [N, C, H, W] image.

    `pads` are top, bottom, left, right. `H_out = floor((H + top + bottom - (dilation_h * (kernel_h
    - 1) + 1)) / stride_h) + 1`, with `ceil` in place of `floor` where `ceil_mode` is set, and
    likewise the width. With `inside`, a last window that `ceil_mode` adds is left out if it would
    start beyond the image and the padding before it, as ONNX and PyTorch have it (NNAdapter and
    Paddle keep it). With `auto_pad` `SAME`, `H_out = ceil(H / stride_h)`.

    Padding never is the maximum; a window without a pixel of the image gives the least value of
    the element type, minus infinity if it has one. NaN is greater than any number.

    With `return_indices` there is a second output, of type `return_indices_dtype` (int32 or
    int64): where the maximum is, as an offset into the [H, W] image without padding, the first in
    row order if there are several, -1 for a window without a pixel.

    Sources: NNAdapter's MAX_POOL_2D, NNRt's MAX_POOL, ONNX's MaxPool (whose indices count through
    all of [N, C, H, W]).
    """

    __slots__ = ()
    input = tensor(FLOATS | _BYTES)
    return_indices = flag(False)
    return_indices_dtype = element_type(ElementType.INT32)
    fuse_code = fuse()
    dilations = _dilations()
    inside = flag(False)

    examples = (
        example(input=random(2, 3, 6, 7), kernel_shape=(2, 3), strides=(2, 1)),
        example(
            input=random(1, 2, 6, 7),
            kernel_shape=(3, 3),
            pads=(1, 1, 0, 2),
            return_indices=True,
        ),
        example(
            input=random(1, 2, 7, 6),
            kernel_shape=(2, 2),
            strides=(2, 2),
            ceil_mode=True,
            return_indices=True,
            return_indices_dtype=ElementType.INT64,
        ),
        example(
            input=random(1, 2, 6, 6),
            kernel_shape=(2, 2),
            strides=(3, 3),
            pads=(0, 1, 1, 1),
            ceil_mode=True,
            inside=True,
        ),
        example(input=random(1, 2, 5, 6), kernel_shape=(3, 3), strides=(2, 2), auto_pad=1),
        example(input=random(1, 2, 7, 8), kernel_shape=(2, 3), dilations=(2, 3), fuse_code=1),
        example(
            input=random(1, 2, 4, 4, dtype=ElementType.UINT8, low=0, high=256), kernel_shape=(2, 2)
        ),
        example(
            input=random(1, 2, 4, 4, dtype=ElementType.FLOAT16), kernel_shape=(2, 2), auto_pad=3
        ),
        example(
            input=random(
                1, 2, 4, 5, dtype=ElementType.INT8, low=-128, high=128,
                quantization=Quantization((0.05,)),
            ),
            kernel_shape=(2, 2),
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
        auto_pad: AutoPad,
        pads: Sequence[int],
        kernel_shape: Sequence[int],
        strides: Sequence[int],
        ceil_mode: bool,
        return_indices: bool,
        return_indices_dtype: ElementType,
        dilations: Sequence[int],
        inside: bool,
    ) -> Sequence[Array]:
        windows = Windows(kernel_shape, strides, dilations, auto_pad, pads, ceil_mode, inside)
        least = -np.inf if input.dtype.kind == "f" else limits(ElementType.of(input.dtype))[0]
        pixels = np.stack([pixels for _, _, pixels in windows.taps(input, least)])
        if not return_indices:
            return [pixels.max(axis=0)]
        height, width = input.shape[2:]
        offsets = np.arange(height * width).reshape(1, 1, height, width)
        places = np.stack([places for _, _, places in windows.taps(offsets, -1)])
        # Padding is as small as the least pixel can be, but never where the maximum is.
        inside_image = (places >= 0).argmax(axis=0)
        best = np.where(pixels.max(axis=0) == least, inside_image, pixels.argmax(axis=0))
        found = np.take_along_axis(np.broadcast_to(places, pixels.shape), best[None], axis=0)
        return [pixels.max(axis=0), found[0]]

    def decompose(self, b: Builder) -> Sequence[Operand] | None:
        """The same with explicit padding, or on an image that has been padded."""
        image = static(shape_of(self.input)[2:])
        if self.auto_pad is not AutoPad.NONE and not self.ceil_mode:
            return self._pooled(b, self.input, self.windows.sides(image))
        pads = self.windows.reach(image)
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
