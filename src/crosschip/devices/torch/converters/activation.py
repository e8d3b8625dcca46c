"""Activation functions."""

from __future__ import annotations

from functools import partial

import torch
from torch.nn import functional

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts, same
from crosschip.ops.standard import activation

converts(activation.Sigmoid)(same(torch.sigmoid))
converts(activation.Tanh)(same(torch.tanh))
converts(activation.Relu, narrow=True)(same(torch.relu))
converts(activation.Relu6)(same(functional.relu6))
converts(activation.Swish)(same(functional.silu))
converts(activation.Softsign)(same(functional.softsign))
converts(activation.Mish)(same(functional.mish))

_LINEAR_FROM = 80.0
"""Above it, `log(1 + e ** x)` is `x` in float64, and `e ** x` does not overflow float32."""


@converts(activation.LeakyRelu)
def leaky_relu(op: activation.LeakyRelu) -> Kernel:
    return partial(functional.leaky_relu, negative_slope=op.alpha)


@converts(activation.PRelu)
def prelu(op: activation.PRelu) -> Kernel:
    def run(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
        after = max(0, x.ndim - 2) if slope.ndim == 1 else 0
        return torch.where(x < 0, slope.reshape(slope.shape + (1,) * after) * x, x)

    return run


@converts(activation.HardSigmoid)
def hard_sigmoid(op: activation.HardSigmoid) -> Kernel:
    alpha, beta = op.alpha, op.beta
    return lambda x: torch.clamp(alpha * x + beta, 0, 1)


@converts(activation.HardSwish)
def hard_swish(op: activation.HardSwish) -> Kernel:
    alpha, beta = op.alpha, op.beta
    return lambda x: x * torch.clamp(alpha * x + beta, 0, 1)


@converts(activation.ThresholdedRelu)
def thresholded_relu(op: activation.ThresholdedRelu) -> Kernel:
    alpha = op.alpha
    return lambda x: torch.where(x > alpha, x, 0)


@converts(activation.Shrink)
def shrink(op: activation.Shrink) -> Kernel:
    bias, limit = op.bias, op.lambd

    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x < -limit, x + bias, torch.where(x > limit, x - bias, 0))

    return run


@converts(activation.Gelu)
def gelu(op: activation.Gelu) -> Kernel:
    return partial(functional.gelu, approximate="tanh" if op.approximate else "none")


@converts(activation.Softplus)
def softplus(op: activation.Softplus) -> Kernel:
    threshold = min(op.threshold, _LINEAR_FROM)
    return partial(functional.softplus, beta=op.beta, threshold=threshold)


@converts(activation.Elu)
def elu(op: activation.Elu) -> Kernel:
    return partial(functional.elu, alpha=op.alpha)


@converts(activation.Selu)
def selu(op: activation.Selu) -> Kernel:
    alpha, gamma = op.alpha, op.gamma
    return lambda x: gamma * functional.elu(x, alpha)


@converts(activation.Celu)
def celu(op: activation.Celu) -> Kernel:
    alpha = op.alpha
    return lambda x: torch.where(x > 0, x, alpha * torch.expm1(x / alpha))


@converts(activation.Softmax)
def softmax(op: activation.Softmax) -> Kernel:
    return partial(torch.softmax, dim=op.axis)


@converts(activation.LogSoftmax)
def log_softmax(op: activation.LogSoftmax) -> Kernel:
    return partial(torch.log_softmax, dim=op.axis)


@converts(activation.Hardmax)
def hardmax(op: activation.Hardmax) -> Kernel:
    axis = op.axis

    def run(x: torch.Tensor) -> torch.Tensor:
        if not x.numel():
            return x
        return torch.zeros_like(x).scatter(axis, torch.argmax(x, axis, keepdim=True), 1)

    return run
