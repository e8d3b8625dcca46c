"""Normalization by given or computed statistics."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, Operand, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.elementwise import Add, Elementwise, Mul
from crosschip.ops.operator import operator, shape_of
from crosschip.ops.shapes import axis_in, same
from crosschip.ops.slots import integer, real, tensor


@operator("BATCH_NORMALIZATION")
class BatchNormalization(Elementwise):
    """`output = scale * (input - mean) / sqrt(variance + epsilon) + bias`, a channel (axis 1) each.

    Source: Ioffe and Szegedy, "Batch Normalization", https://arxiv.org/abs/1502.03167 (inference).
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = tensor(FLOATS)
    bias = tensor(FLOATS, like="scale")
    mean = tensor(FLOATS, like="scale")
    variance = tensor(FLOATS, like="scale")
    epsilon = real(1e-5)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 2")
        for slot, operand in list(self.named_inputs())[1:5]:
            if operand.type.shape is not None:
                if len(operand.type.shape) != 1:
                    raise ValueError(f"{slot}: must have one number a channel")
                same(operand.type.shape[0], shape[1], f"{slot}: its size, and the channels")
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

    def decompose(self, b: Builder) -> Operand | None:
        statistics = [o.value for o in (self.scale, self.bias, self.mean, self.variance)]
        scale, bias, mean, variance = statistics
        if scale is None or bias is None or mean is None or variance is None:
            return None
        dtype = self.input.type.element_type.dtype
        along = (-1,) + (1,) * (len(shape_of(self.input)) - 2)
        with np.errstate(all="ignore"):  # as when it runs whole
            factor = scale / np.sqrt(variance + np.asarray(self.epsilon, variance.dtype))
            shift = (bias - mean * factor).astype(dtype)
            scaled = b.add(Mul, self.input, factor.astype(dtype).reshape(along))
        return b.add(Add, scaled, shift.reshape(along))


@operator("LAYER_NORMALIZATION")
class LayerNormalization(Elementwise):
    """`output = scale * (input - m) / sqrt(v + epsilon) + bias`.

    `m` and `v` are mean and (biased) variance over the axes from `begin_norm_axis` on; `scale`
    and `bias` have the shape of those axes.
    Source: Ba, Kiros and Hinton, "Layer Normalization", https://arxiv.org/abs/1607.06450.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    scale = tensor(FLOATS)
    bias = tensor(FLOATS, like="scale")
    begin_norm_axis = integer(-1)
    epsilon = real(1e-5)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axis = axis_in(self.begin_norm_axis, len(shape), "begin_norm_axis")
        for slot, operand in (("scale", self.scale), ("bias", self.bias)):
            if operand.type.shape is not None:
                if len(operand.type.shape) != len(shape) - axis:
                    raise ValueError(f"{slot}: must have the shape of the normalized axes")
                for own, normalized in zip(operand.type.shape, shape[axis:], strict=True):
                    same(own, normalized, f"{slot}: its size, and that of the input")
        return shape

    def reference(
        self, input: Array, scale: Array, bias: Array, begin_norm_axis: int, epsilon: float
    ) -> Array:
        axes = tuple(range(begin_norm_axis % input.ndim, input.ndim))
        centred = input - input.mean(axis=axes, keepdims=True)
        variance = np.square(centred).mean(axis=axes, keepdims=True)
        return centred / np.sqrt(variance + epsilon) * scale + bias
