"""Normalization by given or computed statistics."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.standard import normalization


@converts(normalization.BatchNormalization)
def batch_normalization(op: normalization.BatchNormalization) -> Kernel:
    epsilon = op.epsilon

    def run(x: Tensor, *parameters: Tensor) -> Tensor:
        if not x.numel():
            return x
        scale, bias, mean, variance = (parameter.to(x.dtype) for parameter in parameters)
        return functional.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)

    return run


@converts(normalization.LayerNormalization)
def layer_normalization(op: normalization.LayerNormalization) -> Kernel:
    first, epsilon = op.begin_norm_axis, op.epsilon

    def run(x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
        return _layer_norm(x, x.shape[first % x.ndim :], scale, bias, epsilon)

    return run


@converts(normalization.GroupNormalization)
def group_normalization(op: normalization.GroupNormalization) -> Kernel:
    groups, epsilon = op.groups, op.epsilon

    def run(x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
        return torch.group_norm(x, groups, _like(scale, x), _like(bias, x), epsilon)

    return run


@converts(normalization.InstanceNormalization)
def instance_normalization(op: normalization.InstanceNormalization) -> Kernel:
    epsilon = op.epsilon

    def run(x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
        if not x.numel():
            return x
        return torch.group_norm(x, x.shape[1], _like(scale, x), _like(bias, x), epsilon)

    return run


@converts(normalization.RMSNormalization)
def rms_normalization(op: normalization.RMSNormalization) -> Kernel:
    first, epsilon = op.begin_norm_axis, op.epsilon
    return lambda x, scale: _rms_norm(x, x.shape[first % x.ndim :], scale, epsilon)


@converts(normalization.SkipLayerNormalization)
def skip_layer_normalization(op: normalization.SkipLayerNormalization) -> Kernel:
    epsilon = op.epsilon

    def run(
        x: Tensor, skip: Tensor, scale: Tensor, bias: Tensor | None, skip_bias: Tensor | None
    ) -> Sequence[Tensor]:
        total = x + skip if skip_bias is None else x + skip + skip_bias
        return _layer_norm(total, total.shape[-1:], scale, bias, epsilon), total

    return run


@converts(normalization.SkipRMSNormalization)
def skip_rms_normalization(op: normalization.SkipRMSNormalization) -> Kernel:
    epsilon = op.epsilon

    def run(x: Tensor, skip: Tensor, scale: Tensor, skip_bias: Tensor | None) -> Sequence[Tensor]:
        total = x + skip if skip_bias is None else x + skip + skip_bias
        return _rms_norm(total, total.shape[-1:], scale, epsilon), total

    return run


def _layer_norm(
    x: Tensor, shape: Sequence[int], scale: Tensor | None, bias: Tensor | None, epsilon: float
) -> Tensor:
    """Normalize the last axes; scale and bias may have another shape than these."""
    scale, bias = _like(scale, x), _like(bias, x)
    if (scale is None or scale.shape == shape) and (bias is None or bias.shape == shape):
        return functional.layer_norm(x, shape, scale, bias, epsilon)
    normal = functional.layer_norm(x, shape, None, None, epsilon)
    normal = normal if scale is None else normal * scale
    return normal if bias is None else normal + bias


def _rms_norm(x: Tensor, shape: Sequence[int], scale: Tensor, epsilon: float) -> Tensor:
    scale = scale.to(x.dtype)
    if scale.shape == shape:
        return functional.rms_norm(x, shape, scale, epsilon)
    return functional.rms_norm(x, shape, None, epsilon) * scale


def _like(parameter: Tensor | None, x: Tensor) -> Tensor | None:
    return None if parameter is None else parameter.to(x.dtype)


@converts(normalization.LpNormalization)
def lp_normalization(op: normalization.LpNormalization) -> Kernel:
    axis, p, epsilon = op.axis, op.p, op.epsilon

    def run(x: Tensor) -> Tensor:
        powers = torch.abs(x) if p == 1 else torch.square(x)
        total = torch.sum(powers, axis, keepdim=True)
        divisor = (total if p == 1 else torch.sqrt(total)) + epsilon
        return x / torch.where(divisor == 0, 1, divisor)

    return run


@converts(normalization.LRN)
def lrn(op: normalization.LRN) -> Kernel:
    size, bias, alpha, beta = op.size, op.bias, op.alpha, op.beta

    def run(x: Tensor) -> Tensor:
        if not x.numel():
            return x
        sides = [0, 0] * (x.ndim - 2) + [(size - 1) // 2, size // 2]
        squares = torch.constant_pad_nd(torch.square(x), sides, 0)
        return x / torch.pow(bias + alpha * squares.unfold(1, size, 1).sum(-1), beta)

    return run
