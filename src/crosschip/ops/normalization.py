"""Normalization by given or computed statistics."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.elementwise import Div, Elementwise, Mul, Sub
from crosschip.ops.examples import Sample, example, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.layout import Reshape, ShapeOf
from crosschip.ops.operator import operator, shape_of
from crosschip.ops.shapes import axis_in
from crosschip.ops.slots import integer, optional_tensor, real, tensor
from crosschip.ops.statistics import (
    affine,
    check_broadcast,
    check_channels,
    deviation,
    normal,
    normalized,
    rank,
    scaled,
)

_CHANNELS_LAST = "Channels are last there: a TRANSPOSE before and one after."
_HALF = Quantization((0.02,))


def _bytes(*shape: int) -> Sample:
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128, quantization=_HALF)


@operator(
    "BATCH_NORMALIZATION",
    nnadapter=NNAdapter(9),
    nnrt=[
        NNRt(
            *(3, "BATCH_NORM", ("input", "scale", "bias", "mean", "variance")),
            {"EPSILON": "epsilon"},
            f"{_CHANNELS_LAST} EPSILON is 1e-4 by default.",
        )
    ],
    hdi=[NodeType.FUSED_BATCH_NORM],
    onnx=["BatchNormalization"],
)
class BatchNormalization(Elementwise):
    """`output = scale * (input - mean) / sqrt(variance + epsilon) + bias`, a channel (axis 1) each.

    The input is [N, C, …]; `scale`, `bias`, `mean` and `variance` are [C] and given, not computed
    from the input. It may be computed as `input * factor + (bias - mean * factor)`, where
    `factor = scale / sqrt(variance + epsilon)`. A variance below `-epsilon` gives NaN.

    Source: Ioffe and Szegedy, "Batch Normalization", https://arxiv.org/abs/1502.03167 (inference).
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = tensor(FLOATS)
    bias = tensor(FLOATS, like="scale")
    mean = tensor(FLOATS, like="scale")
    variance = tensor(FLOATS, like="scale")
    epsilon = real(1e-5, least=0)
    examples = tuple(
        example(
            input=input,
            scale=random(3),
            bias=random(3),
            mean=random(3),
            variance=random(3, low=0.5),
            **more,
        )
        for input, more in (
            (random(2, 3), {}),
            (random(2, 3, 4, 5), {"epsilon": 0.01}),
            (random(2, 3, 4, dtype=ElementType.FLOAT16), {}),
            (_bytes(2, 3, 4), {"quantization": Quantization((0.05,))}),
        )
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 2")
        for slot in ("scale", "bias", "mean", "variance"):
            check_channels(slot, self.operand(slot), shape[1])
        return shape

    def reference(
        self,
        input: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        variance: Array,
        epsilon: float,
    ) -> Array:
        factor = scale / np.sqrt(variance + epsilon)
        along = (-1,) + (1,) * (input.ndim - 2)
        return input * factor.reshape(along) + (bias - mean * factor).reshape(along)

    def decompose(self, b: Builder) -> Operand:
        factor = b.add(Div, self.scale, deviation(b, self.variance, self.epsilon))
        shift = b.add(Sub, self.bias, b.add(Mul, self.mean, factor))
        return affine(b, self.input, factor, shift, (-1,) + (1,) * (rank(self.input) - 2))


@operator(
    "LAYER_NORMALIZATION",
    nnadapter=NNAdapter(39),
    nnrt=[
        NNRt(
            *(49, "LAYER_NORM", ("input", "scale", "bias")),
            {
                "BEGIN_NORM_AXIS": "begin_norm_axis",
                "EPSILON": "epsilon",
                "BEGIN_PARAM_AXIS": "",
                "ELEMENTWISE_AFFINE": "",
            },
            "BEGIN_NORM_AXIS is 1 by default, EPSILON 1e-7. BEGIN_PARAM_AXIS must be the axis too; "
            "ELEMENTWISE_AFFINE is refused there.",
        )
    ],
    hdi=[NodeType.LAYER_NORM_FUSION],
    onnx=["LayerNormalization"],
)
class LayerNormalization(Elementwise):
    """`output = scale * (input - m) / sqrt(v + epsilon) + bias`.

    `m` and `v` are mean and (biased) variance over the axes from `begin_norm_axis` on, which counts
    from the last axis if negative. `scale` and `bias` broadcast to the input without making it
    larger; mostly they have the shape of the normalized axes. Left out, they are 1 and 0.

    Source: Ba, Kiros and Hinton, "Layer Normalization", https://arxiv.org/abs/1607.06450.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = optional_tensor(FLOATS)
    bias = optional_tensor(FLOATS)
    begin_norm_axis = integer(-1)
    epsilon = real(1e-5, least=0)
    examples = (
        example(input=random(2, 3, 4), scale=random(4), bias=random(4)),
        example(input=random(2, 3, 4), scale=random(3, 4), begin_norm_axis=1, epsilon=0.1),
        example(input=random(2, 3, 4), scale=random(2, 1, 4), bias=random(1), begin_norm_axis=2),
        example(input=random(2, 3, 4), begin_norm_axis=0),
        example(input=random(2, 8, dtype=ElementType.FLOAT16), scale=random(8), bias=random(8)),
        example(
            input=_bytes(2, 8),
            scale=random(8),
            bias=random(8),
            quantization=Quantization((0.05,)),
        ),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axis_in(self.begin_norm_axis, len(shape), "begin_norm_axis")
        check_broadcast("scale", self.scale, shape)
        check_broadcast("bias", self.bias, shape)
        return shape

    def reference(
        self,
        input: Array,
        scale: Array | None,
        bias: Array | None,
        begin_norm_axis: int,
        epsilon: float,
    ) -> Array:
        axes = range(begin_norm_axis % input.ndim, input.ndim)
        return scaled(normalized(input, axes, epsilon), scale, bias)

    def decompose(self, b: Builder) -> Operand:
        count = rank(self.input)
        axes = range(self.begin_norm_axis % count, count)
        return affine(b, normal(b, self.input, axes, self.epsilon), self.scale, self.bias)


@operator("GROUP_NORMALIZATION", nnadapter=NNAdapter(35), onnx=["GroupNormalization"])
class GroupNormalization(Elementwise):
    """`output = scale * (input - m) / sqrt(v + epsilon) + bias`, a group of channels each.

    The input is [N, C, …]. Its channels are divided into `groups` groups of C / groups in a row;
    `m` and `v` are mean and (biased) variance over a group of an image. `scale` and `bias` are [C];
    left out, they are 1 and 0. A C that `groups` does not divide is an error.

    Source: Wu and He, "Group Normalization", https://arxiv.org/abs/1803.08494.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = optional_tensor(FLOATS)
    bias = optional_tensor(FLOATS)
    epsilon = real(1e-5, least=0)
    groups = integer()
    examples = (
        example(input=random(2, 4, 3, 5), scale=random(4), bias=random(4), groups=2),
        example(input=random(2, 6, 3), scale=random(6), groups=3, epsilon=0.1),
        example(input=random(2, 4), groups=1),
        example(input=random(1, 4, 6, dtype=ElementType.FLOAT16), groups=2),
        example(
            **{"input": _bytes(1, 4, 6), "scale": random(4), "bias": random(4), "groups": 4},
            quantization=Quantization((0.05,)),
        ),
    )

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

    def reference(
        self,
        input: Array,
        scale: Array | None,
        bias: Array | None,
        epsilon: float,
        groups: int,
    ) -> Array:
        batch, channels, *image = input.shape
        grouped = input.reshape(batch, groups, channels // groups, *image)
        whole = normalized(grouped, range(2, grouped.ndim), epsilon).reshape(input.shape)
        return scaled(whole, scale, bias, (-1,) + (1,) * (input.ndim - 2))

    def decompose(self, b: Builder) -> Operand:
        grouped = b.add(Reshape, self.input, (0, self.groups, -1))
        each = normal(b, grouped, (2,), self.epsilon)
        whole = b.add(Reshape, each, b.add(ShapeOf, self.input))
        return affine(b, whole, self.scale, self.bias, (-1,) + (1,) * (rank(self.input) - 2))


@operator(
    "INSTANCE_NORMALIZATION",
    nnadapter=NNAdapter(38),
    nnrt=[
        NNRt(
            *(67, "INSTANCE_NORM", ("input", "scale", "bias")),
            {"EPSILON": "epsilon"},
            f"{_CHANNELS_LAST} EPSILON is 0 by default.",
        )
    ],
    onnx=["InstanceNormalization"],
)
class InstanceNormalization(Elementwise):
    """`output = scale * (input - m) / sqrt(v + epsilon) + bias`, a channel of an image each.

    The input is [N, C, …], with at least one axis after the channels; `m` and `v` are mean and
    (biased) variance over those axes. `scale` and `bias` are [C]; left out, they are 1 and 0.

    Source: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization",
    https://arxiv.org/abs/1607.08022.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = optional_tensor(FLOATS)
    bias = optional_tensor(FLOATS)
    epsilon = real(1e-5, least=0)
    examples = (
        example(input=random(2, 3, 4, 5), scale=random(3), bias=random(3)),
        example(input=random(2, 3, 6), bias=random(3), epsilon=0.1),
        example(input=random(2, 3, 2, 2, 2)),
        example(input=random(1, 3, 6, dtype=ElementType.FLOAT16), scale=random(3)),
        example(
            input=_bytes(2, 3, 6),
            scale=random(3),
            bias=random(3),
            quantization=Quantization((0.05,)),
        ),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 3:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 3")
        check_channels("scale", self.scale, shape[1])
        check_channels("bias", self.bias, shape[1])
        return shape

    def reference(
        self, input: Array, scale: Array | None, bias: Array | None, epsilon: float
    ) -> Array:
        whole = normalized(input, range(2, input.ndim), epsilon)
        return scaled(whole, scale, bias, (-1,) + (1,) * (input.ndim - 2))

    def decompose(self, b: Builder) -> Operand:
        count = rank(self.input)
        whole = normal(b, self.input, range(2, count), self.epsilon)
        return affine(b, whole, self.scale, self.bias, (-1,) + (1,) * (count - 2))
