"""Normalization by given or computed statistics, or by a norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Operand, Shape
from crosschip.ir.dimension import exact_quotient, product
from crosschip.ir.types import FLOATS, HALF_FLOATS
from crosschip.ops.definition.kinds import Elementwise, aligned_row_axis
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, reshape
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.definition.slots import integer, optional_tensor, real, tensor
from crosschip.ops.numerics.statistics import (
    build_deviation,
    build_normalize,
    build_scale_and_shift,
    check_broadcast,
    check_channel_count,
    check_channels,
    mean,
    normalize,
    rank,
    scale_and_shift,
)
from crosschip.ops.standard.arithmetic import Add, Div, FloorDiv, Mul, Pow, Sub, Sum
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.reduction import (
    ReduceL1,
    ReduceL2,
    ReduceMean,
    cast_like,
    cast_wide,
)
from crosschip.ops.standard.slicing import Slice


@operator("BATCH_NORMALIZATION")
class BatchNormalization(Elementwise):
    """`output = scale * (input - mean) / sqrt(variance + epsilon) + bias` per channel (axis 1).

    The input is [N, C, …]; `scale`, `bias`, `mean` and `variance` are [C] and inputs, not computed.
    A device may compute `input * factor + (bias - mean * factor)`, where `factor = scale /
    sqrt(variance + epsilon)`. A variance below `-epsilon` gives NaN. A channel is unspecified if
    one of its four parameters is NaN or infinite, or its variance is `-epsilon`.

    Source: Ioffe and Szegedy, "Batch Normalization", https://arxiv.org/abs/1502.03167 (inference).
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = tensor(FLOATS)
    bias = tensor(FLOATS, like="scale")
    mean = tensor(FLOATS, like="scale")
    variance = tensor(FLOATS, like="scale")
    epsilon = real(1e-5, least=0)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 2")
        for slot in ("scale", "bias", "mean", "variance"):
            check_channels(slot, self.operand(slot), shape[1])
        return shape

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return axes[0] if axes[0] != 1 and set(axes[1:]) <= {None} else None

    def reference(
        self, input: Array, scale: Array, bias: Array, mean: Array, variance: Array
    ) -> Array:
        factor = scale / np.sqrt(variance + self.epsilon)
        along = (-1,) + (1,) * (input.ndim - 2)
        return input * factor.reshape(along) + (bias - mean * factor).reshape(along)

    def decompose(self, b: Builder) -> Operand:
        vectors = [self.scale, self.bias, self.mean, self.variance]
        scale_type, dtype = self.scale.type.element_type, self.input.type.element_type
        if scale_type in HALF_FLOATS and dtype not in HALF_FLOATS:
            vectors = [b.add(Cast, vector, dtype) for vector in vectors]
        scale, bias, mean, variance = (
            check_channel_count(b, vector, self.input) for vector in vectors
        )
        factor = b.add(Div, scale, build_deviation(b, variance, self.epsilon))
        shift = b.add(Sub, bias, b.add(Mul, mean, factor))
        return build_scale_and_shift(b, self.input, factor, shift, channels=True)


@operator("LAYER_NORMALIZATION")
class LayerNormalization(Elementwise):
    """`output = scale * (input - m) / sqrt(v + epsilon) + bias`.

    `m` and `v` are mean and (biased) variance over the axes from `begin_norm_axis` on, which counts
    from the last axis if negative. `scale` (default 1) and `bias` (default 0) broadcast to the
    input without enlarging it; usually they have the shape of the normalized axes. A device may
    compute the variance in one pass, from the squares. Elements with a scale or bias that is NaN or
    infinite are unspecified. If the input is empty, so is the output, or the device reports an
    error.

    Source: Ba, Kiros and Hinton, "Layer Normalization", https://arxiv.org/abs/1607.06450.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = optional_tensor(FLOATS)
    bias = optional_tensor(FLOATS)
    begin_norm_axis = integer(-1)
    epsilon = real(1e-5, least=0)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        normalize_axis(self.begin_norm_axis, len(shape), "begin_norm_axis")
        check_broadcast("scale", self.scale, shape)
        check_broadcast("bias", self.bias, shape)
        return shape

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        first = normalize_axis(self.begin_norm_axis, len(shape_of(self.input)), "begin_norm_axis")
        return _row_axis_before(self, axes, first)

    def reference(self, input: Array, scale: Array | None, bias: Array | None) -> Array:
        axes = range(self.begin_norm_axis % input.ndim, input.ndim)
        return scale_and_shift(normalize(input, axes, self.epsilon), scale, bias)

    def decompose(self, b: Builder) -> Operand:
        count = rank(self.input)
        axes = range(self.begin_norm_axis % count, count)
        normal = build_normalize(b, self.input, axes, self.epsilon)
        return build_scale_and_shift(b, normal, self.scale, self.bias, channels=False)


@operator("GROUP_NORMALIZATION")
class GroupNormalization(Elementwise):
    """`output = scale * (input - m) / sqrt(v + epsilon) + bias` per group of channels.

    The input is [N, C, …]. Its channels are divided into `groups` groups of C / groups consecutive
    ones; `m` and `v` are mean and (biased) variance over a group of an image. `scale` (default 1)
    and `bias` (default 0) are [C]. A C that `groups` does not divide is an error. A device may
    compute the variance in one pass, from the squares. A channel with a scale or bias that is NaN
    or infinite is unspecified.

    Source: Wu and He, "Group Normalization", https://arxiv.org/abs/1803.08494.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = optional_tensor(FLOATS)
    bias = optional_tensor(FLOATS)
    epsilon = real(1e-5, least=0)
    groups = integer()

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return 0 if axes[0] == 0 and set(axes[1:]) <= {None} else None

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 2")
        if self.groups < 1:
            raise ValueError(f"groups: {self.groups} is not positive")
        if isinstance(shape[1], int) and shape[1] % self.groups:
            raise ValueError(f"groups: {self.groups} does not divide {shape[1]} channels")
        check_channels("scale", self.scale, shape[1])
        check_channels("bias", self.bias, shape[1])
        return shape

    def reference(self, input: Array, scale: Array | None, bias: Array | None) -> Array:
        batch, channels, *image = input.shape
        grouped = input.reshape(batch, self.groups, channels // self.groups, *image)
        normal = normalize(grouped, range(2, grouped.ndim), self.epsilon).reshape(input.shape)
        return scale_and_shift(normal, scale, bias, (-1,) + (1,) * (input.ndim - 2))

    def decompose(self, b: Builder) -> Operand:
        image, sizes = self.input, Sizes(b, self.input)
        batch, channels, *rest = sizes.shape
        if not isinstance(channels, int):
            image = b.add(Reshape, image, self._grouped_shape(b), allow_zero=True)
        elements = exact_quotient(product((channels, *rest)), self.groups)
        shape = (batch, self.groups, elements)
        grouped = reshape(b, image, sizes, sizes.shape, shape)
        normal_groups = build_normalize(b, grouped, (2,), self.epsilon)
        normal = b.add(Reshape, normal_groups, b.add(ShapeOf, self.input), allow_zero=True)
        return build_scale_and_shift(b, normal, self.scale, self.bias, channels=True)

    def _grouped_shape(self, b: Builder) -> Operand:
        """Build [N, groups, C // groups, …], which RESHAPE rejects unless groups divide C."""
        shape = b.add(ShapeOf, self.input)
        groups = b.constant(np.array([self.groups]))
        each = b.add(FloorDiv, b.add(Slice, shape, (0,), (1,), (2,)), groups)
        image = b.add(Slice, shape, (0,), (2,), (2**31 - 1,))
        return b.add(Concat, [b.add(Slice, shape, (0,), (0,), (1,)), groups, each, image], 0)


@operator("INSTANCE_NORMALIZATION")
class InstanceNormalization(Elementwise):
    """`output = scale * (input - m) / sqrt(v + epsilon) + bias` per channel of an image.

    The input is [N, C, …], with at least one axis after the channels; `m` and `v` are mean and
    (biased) variance over those axes. `scale` (default 1) and `bias` (default 0) are [C]. A device
    may compute the variance in one pass, from the squares. A channel with a scale or bias that is
    NaN or infinite is unspecified.

    Source: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization",
    https://arxiv.org/abs/1607.08022.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = optional_tensor(FLOATS)
    bias = optional_tensor(FLOATS)
    epsilon = real(1e-5, least=0)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return 0 if axes[0] == 0 and set(axes[1:]) <= {None} else None

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 3:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 3")
        check_channels("scale", self.scale, shape[1])
        check_channels("bias", self.bias, shape[1])
        return shape

    def reference(self, input: Array, scale: Array | None, bias: Array | None) -> Array:
        normal = normalize(input, range(2, input.ndim), self.epsilon)
        return scale_and_shift(normal, scale, bias, (-1,) + (1,) * (input.ndim - 2))

    def decompose(self, b: Builder) -> Operand:
        count = rank(self.input)
        normal = build_normalize(b, self.input, range(2, count), self.epsilon)
        return build_scale_and_shift(b, normal, self.scale, self.bias, channels=True)


@operator("RMS_NORMALIZATION")
class RMSNormalization(Elementwise):
    """`output = scale * input / sqrt(q + epsilon)`.

    `q` is the mean of the squares over the axes from `begin_norm_axis` on, which counts from the
    last axis if negative. `scale` broadcasts to the input without enlarging it.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization",
    https://arxiv.org/abs/1910.07467.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = tensor(FLOATS)
    begin_norm_axis = integer(-1)
    epsilon = real(1e-5, least=0)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        normalize_axis(self.begin_norm_axis, len(shape), "begin_norm_axis")
        check_broadcast("scale", self.scale, shape)
        return shape

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        first = normalize_axis(self.begin_norm_axis, len(shape_of(self.input)), "begin_norm_axis")
        return _row_axis_before(self, axes, first)

    def reference(self, input: Array, scale: Array) -> Array:
        axes = range(self.begin_norm_axis % input.ndim, input.ndim)
        return input / np.sqrt(mean(input * input, axes) + self.epsilon) * scale

    def decompose(self, b: Builder) -> Operand:
        count = rank(self.input)
        axes = tuple(range(self.begin_norm_axis % count, count))
        wide = cast_wide(b, self.input)
        squares = b.add(ReduceMean, b.add(Mul, wide, wide), axes)
        divided = b.add(Div, wide, build_deviation(b, squares, self.epsilon))
        normal = cast_like(b, divided, self.input)
        return build_scale_and_shift(b, normal, self.scale, None, channels=False)


def _row_axis_before(operation: Operator, axes: Sequence[int | None], first: int) -> int | None:
    """Return the axis of rows of shapes aligned at their ends, if it is before axis `first`."""
    aligned = aligned_row_axis(operation, axes)
    return aligned if aligned is not None and aligned == axes[0] and aligned < first else None


class _SkipNormalization(Operator):
    """Base class of normalizations over the last axis that also output the sum of the inputs."""

    __slots__ = ()

    def output_count(self) -> int:
        return 2

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return _row_axis_before(self, axes, len(shape_of(self.outputs[0])) - 1)


@operator("SKIP_LAYER_NORMALIZATION")
class SkipLayerNormalization(_SkipNormalization):
    """The sum of a tensor and a skip connection, and its layer normalization over the last axis.

    `sum = input + skip + skip_bias` is the second output, and `output = scale * (sum - m) / sqrt(v
    + epsilon) + bias` the first; `m` and `v` are mean and (biased) variance of the sum over the
    last axis. All other inputs broadcast to `input` without enlarging it; `skip_bias` and `bias`
    are 0 by default. A device may compute the variance in one pass, from the squares. Elements with
    a scale or bias that is NaN or infinite are unspecified. If the input is empty, so are the
    outputs, or the device reports an error.

    Source: ONNX Runtime's SkipLayerNormalization.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    skip = tensor(FLOATS, like="input")
    scale = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    skip_bias = optional_tensor(FLOATS, like="input")
    epsilon = real(1e-12, least=0)

    def infer_shape(self) -> Sequence[Shape]:
        return _skip_shapes(self, "skip", "scale", "bias", "skip_bias")

    def reference(
        self, input: Array, skip: Array, scale: Array, bias: Array | None, skip_bias: Array | None
    ) -> Sequence[Array]:
        total = input + skip if skip_bias is None else input + skip + skip_bias
        normal = normalize(total, (total.ndim - 1,), self.epsilon)
        return [scale_and_shift(normal, scale, bias), total]

    def decompose(self, b: Builder) -> Sequence[Operand]:
        total = _sum_with_skip(b, self.input, self.skip, self.skip_bias)
        epsilon = self.epsilon
        return [b.add(LayerNormalization, total, self.scale, self.bias, -1, epsilon), total]


@operator("SKIP_RMS_NORMALIZATION")
class SkipRMSNormalization(_SkipNormalization):
    """The sum of a tensor and a skip connection, and its RMS normalization over the last axis.

    `sum = input + skip + skip_bias` is the second output, and `output = scale * sum / sqrt(q +
    epsilon)` the first; `q` is the mean of the squares of the sum over the last axis. All other
    inputs broadcast to `input` without enlarging it; `skip_bias` is 0 by default.

    Source: ONNX Runtime's SkipSimplifiedLayerNormalization.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    skip = tensor(FLOATS, like="input")
    scale = tensor(FLOATS, like="input")
    skip_bias = optional_tensor(FLOATS, like="input")
    epsilon = real(1e-12, least=0)

    def infer_shape(self) -> Sequence[Shape]:
        return _skip_shapes(self, "skip", "scale", "skip_bias")

    def reference(
        self, input: Array, skip: Array, scale: Array, skip_bias: Array | None
    ) -> Sequence[Array]:
        total = input + skip if skip_bias is None else input + skip + skip_bias
        return [total / np.sqrt(mean(total * total, (-1,)) + self.epsilon) * scale, total]

    def decompose(self, b: Builder) -> Sequence[Operand]:
        total = _sum_with_skip(b, self.input, self.skip, self.skip_bias)
        return [b.add(RMSNormalization, total, self.scale, -1, self.epsilon), total]


def _skip_shapes(operation: Operator, *slots: str) -> Sequence[Shape]:
    """Return the shapes of both outputs; raise ValueError if a slot does not fit the input."""
    shape = shape_of(operation.inputs[0])  # type: ignore[arg-type]  # it is required
    if not shape:
        raise ValueError("input: has no axes, but must have at least 1")
    for slot in slots:
        check_broadcast(slot, operation.operand(slot), shape)
    return [shape, shape]


def _sum_with_skip(b: Builder, input: Operand, skip: Operand, bias: Operand | None) -> Operand:
    total = build_scale_and_shift(b, input, None, skip, channels=False)
    return build_scale_and_shift(b, total, None, bias, channels=False)


@operator("LP_NORMALIZATION")
class LpNormalization(Elementwise):
    """Division by the `p` norm along `axis`.

    `output = input / (sum(abs(input)) + epsilon)` for a `p` of 1, and `output = input /
    (sqrt(sum(input * input)) + epsilon)` for a `p` of 2; 0 where the divisor is 0. A negative
    `axis` counts from the last one; another `p` is an error.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    axis = integer(1)
    p = integer(2)
    epsilon = real(1e-5, least=0)

    def infer_shape(self) -> Shape:
        if self.p not in (1, 2):
            raise ValueError(f"p: {self.p} is neither 1 nor 2")
        normalize_axis(self.axis, len(shape_of(self.input)))
        return shape_of(self.input)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        axis = normalize_axis(self.axis, len(shape_of(self.input)))
        return axes[0] if axes[0] != axis else None

    def reference(self, input: Array) -> Array:
        powers = np.abs(input) if self.p == 1 else input * input
        total = powers.sum(self.axis, keepdims=True)
        divisor = (total if self.p == 1 else np.sqrt(total)) + np.asarray(self.epsilon, input.dtype)
        return input / np.where(divisor == 0, 1, divisor)

    def decompose(self, b: Builder) -> Operand:
        reduce = ReduceL1 if self.p == 1 else ReduceL2
        wide = cast_wide(b, self.input)
        divisor = b.add(Add, b.add(reduce, wide, (self.axis,)), self.epsilon)
        zero = b.add(Equal, divisor, 0.0)
        one = b.constant(np.ones((), wide.type.element_type.dtype))
        return cast_like(b, b.add(Div, wide, b.add(Where, zero, one, divisor)), self.input)


@operator("LRN")
class LRN(Elementwise):
    """Local response normalization across channels (axis 1).

    `output[n, c, …] = input[n, c, …] / (bias + alpha * s) ** beta`, where `s` is the sum of the
    squares of `input[n, i, …]` for channels `i` from `c - (size - 1) // 2` to `c + size // 2`.
    `alpha` is not divided by `size` (in ONNX it is). All channels of a pixel are unspecified if one
    of them is NaN or infinite; so is an element whose divisor overflows float32.

    Source: Krizhevsky, Sutskever and Hinton, "ImageNet Classification with Deep Convolutional
    Neural Networks", 2012.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    size = integer(5)
    bias = real(1.0)
    alpha = real(1e-4)
    beta = real(0.75)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 2")
        if self.size < 1:
            raise ValueError(f"size: {self.size} is not positive")
        return shape

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return axes[0] if axes[0] != 1 else None

    def reference(self, input: Array) -> Array:
        return input / self.divisor(input)

    def divisor(self, input: Array) -> Array:
        """Return the divisor of each element."""
        squares, channels = input * input, input.shape[1]
        total = np.zeros_like(squares)
        for shift in range(-((self.size - 1) // 2), self.size // 2 + 1):
            first, last = max(0, -shift), min(channels, channels - shift)
            if first < last:
                total[:, first:last] += squares[:, first + shift : last + shift]
        return (self.bias + self.alpha * total) ** self.beta

    def decompose(self, b: Builder) -> Operand:
        wide = cast_wide(b, self.input)
        pads = [0] * (2 * rank(wide))
        pads[2:4] = [(self.size - 1) // 2, self.size // 2]
        padded = b.add(Pad, b.add(Mul, wide, wide), pads)
        parts = [self._part(b, padded, start) for start in range(self.size)]
        scaled = b.add(Mul, b.add(Sum, parts), self.alpha)
        output = b.add(Div, wide, b.add(Pow, b.add(Add, scaled, self.bias), self.beta))
        return cast_like(b, output, self.input)

    def _part(self, b: Builder, padded: Operand, start: int) -> Operand:
        """Build the squares of the channels at one distance."""
        end = start + 1 - self.size
        return b.add(Slice, padded, (1,), (start,), (end if end < 0 else 2**31 - 1,))
