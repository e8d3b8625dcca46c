"""Normalization by magnitude: elements are divided by a norm of their like, and not centred."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.comparison import Equal
from crosschip.ops.elementwise import Add, Div, Elementwise, Mul, Pow, Sum
from crosschip.ops.examples import example, given, random
from crosschip.ops.faces import NNAdapter, NNRt
from crosschip.ops.logical import Where
from crosschip.ops.norms import ReduceL1, ReduceL2
from crosschip.ops.operator import operator, shape_of
from crosschip.ops.padding import Pad
from crosschip.ops.reduction import ReduceMean
from crosschip.ops.shapes import axis_in
from crosschip.ops.slicing import Slice
from crosschip.ops.slots import integer, real, tensor
from crosschip.ops.statistics import affine, check_broadcast, deviation, mean, rank


@operator("RMS_NORMALIZATION", onnx=["RMSNormalization"])
class RMSNormalization(Elementwise):
    """`output = scale * input / sqrt(q + epsilon)`.

    `q` is the mean of the squares over the axes from `begin_norm_axis` on, which counts from the
    last axis if negative. `scale` broadcasts to the input without making it larger.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization",
    https://arxiv.org/abs/1910.07467.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = tensor(FLOATS)
    begin_norm_axis = integer(-1)
    epsilon = real(1e-5, least=0)
    examples = (
        example(input=random(2, 3, 4), scale=random(4)),
        example(input=random(2, 3, 4), scale=random(3, 1), begin_norm_axis=1, epsilon=0.1),
        example(input=random(2, 8, dtype=ElementType.FLOAT16), scale=random(8)),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axis_in(self.begin_norm_axis, len(shape), "begin_norm_axis")
        check_broadcast("scale", self.scale, shape)
        return shape

    def reference(self, input: Array, scale: Array, begin_norm_axis: int, epsilon: float) -> Array:
        axes = range(begin_norm_axis % input.ndim, input.ndim)
        return input / np.sqrt(mean(input * input, axes) + epsilon) * scale

    def decompose(self, b: Builder) -> Operand:
        count = rank(self.input)
        axes = tuple(range(self.begin_norm_axis % count, count))
        squares = b.add(ReduceMean, b.add(Mul, self.input, self.input), axes)
        divided = b.add(Div, self.input, deviation(b, squares, self.epsilon))
        return affine(b, divided, self.scale, None)


@operator(
    "LP_NORMALIZATION",
    nnadapter=NNAdapter(45),
    nnrt=[
        NNRt(
            *(94, "L2_NORMALIZE", ("input",)),
            {"AXIS": "axis", "EPSILON": "epsilon", "ACTIVATION_TYPE": ""},
            "AXIS is -1 by default, EPSILON 1e-6, p is 2. An ACTIVATION_TYPE becomes an operator "
            "after this.",
        )
    ],
    onnx=["LpNormalization"],
)
class LpNormalization(Elementwise):
    """Divides by the `p` norm along `axis`.

    `output = input / (sum(abs(input)) + epsilon)` for a `p` of 1, and
    `output = input / (sqrt(sum(input * input)) + epsilon)` for a `p` of 2; 0 where the divisor is
    0. A negative `axis` counts from the last one; another `p` is an error.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    axis = integer(1)
    p = integer(2)
    epsilon = real(1e-5, least=0)
    examples = (
        example(input=random(2, 3, 4)),
        example(input=random(2, 3, 4), axis=-1, p=1, epsilon=0.1),
        example(input=random(5), axis=0, epsilon=0.0),
        example(input=given([[0.0, 0.0], [3.0, -4.0]]), epsilon=0.0),
        example(input=random(2, 8, dtype=ElementType.FLOAT16), axis=1),
        example(
            input=random(
                *(2, 8),
                dtype=ElementType.INT8,
                low=-128,
                high=128,
                quantization=Quantization((0.02,)),
            ),
            quantization=Quantization((1 / 128,)),
        ),
    )

    def infer_shape(self) -> Shape:
        if self.p not in (1, 2):
            raise ValueError(f"p: {self.p} is neither 1 nor 2")
        axis_in(self.axis, len(shape_of(self.input)))
        return shape_of(self.input)

    def reference(self, input: Array, axis: int, p: int, epsilon: float) -> Array:
        powers = np.abs(input) if p == 1 else input * input
        total = powers.sum(axis, keepdims=True)
        divisor = (total if p == 1 else np.sqrt(total)) + np.asarray(epsilon, input.dtype)
        return input / np.where(divisor == 0, 1, divisor)

    def decompose(self, b: Builder) -> Operand:
        reduce = ReduceL1 if self.p == 1 else ReduceL2
        divisor = b.add(Add, b.add(reduce, self.input, (self.axis,)), self.epsilon)
        zero = b.add(Equal, divisor, 0.0)
        one = b.constant(np.ones((), self.input.type.element_type.dtype))
        return b.add(Div, self.input, b.add(Where, zero, one, divisor))


@operator(
    "LRN",
    nnadapter=NNAdapter(46),
    nnrt=[
        NNRt(
            *(96, "LRN", ("input",)),
            {
                "DEPTH_RADIUS": "size",
                "BIAS": "bias",
                "ALPHA": "alpha",
                "BETA": "beta",
                "NORM_REGION": "",
            },
            "size is 2 * DEPTH_RADIUS + 1. BIAS and ALPHA are 1 by default, BETA 0.5; NORM_REGION "
            "must be 0, across channels. Channels are last there: a TRANSPOSE before and after.",
        )
    ],
    onnx=["LRN"],
)
class LRN(Elementwise):
    """Local response normalization across channels (axis 1).

    `output[n, c, …] = input[n, c, …] / (bias + alpha * s) ** beta`, where `s` is the sum of the
    squares of `input[n, i, …]` for those `i` from `c - (size - 1) // 2` to `c + size // 2` that are
    channels. `alpha` is not divided by `size` (ONNX does that).

    Source: Krizhevsky, Sutskever and Hinton, "ImageNet Classification with Deep Convolutional
    Neural Networks", 2012.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    size = integer(5)
    bias = real(1.0)
    alpha = real(1e-4)
    beta = real(0.75)
    examples = (
        example(input=random(2, 7, 3, 2), alpha=0.1),
        example(input=random(1, 6, 4), size=4, alpha=0.5, beta=0.5, bias=2.0),
        example(input=random(2, 3, 2, 2), size=9, alpha=1.0),
        example(input=random(2, 3, 2, 2, dtype=ElementType.FLOAT16), size=1),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 2")
        if self.size < 1:
            raise ValueError(f"size: {self.size} is not positive")
        return shape

    def reference(self, input: Array, size: int, bias: float, alpha: float, beta: float) -> Array:
        squares, channels = input * input, input.shape[1]
        total = np.zeros_like(squares)
        for shift in range(-((size - 1) // 2), size // 2 + 1):
            first, last = max(0, -shift), min(channels, channels - shift)
            if first < last:
                total[:, first:last] += squares[:, first + shift : last + shift]
        return input / (bias + alpha * total) ** beta

    def decompose(self, b: Builder) -> Operand:
        around = [0] * (2 * rank(self.input))
        around[2:4] = [(self.size - 1) // 2, self.size // 2]
        padded = b.add(Pad, b.add(Mul, self.input, self.input), around)
        parts = [self._part(b, padded, start) for start in range(self.size)]
        scaled = b.add(Mul, b.add(Sum, parts), self.alpha)
        return b.add(Div, self.input, b.add(Pow, b.add(Add, scaled, self.bias), self.beta))

    def _part(self, b: Builder, padded: Operand, start: int) -> Operand:
        """The squares of the channels at one distance."""
        end = start + 1 - self.size
        return b.add(Slice, padded, (1,), (start,), (end if end < 0 else 2**31 - 1,))
