"""Normalization along axes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import (
    LocalResponseNormalizationOptions,
    SoftmaxOptions,
)
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.standard.activation import LogSoftmax, Softmax
from crosschip.ops.standard.arithmetic import Div, Max, Mul
from crosschip.ops.standard.normalization import LRN, LpNormalization
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Sqrt, Square

_LEAST_NORM = np.float32(1e-6)
"""The smallest divisor of L2_NORMALIZATION in LiteRT."""


@imports("SOFTMAX")
def softmax(node: Node) -> Operand:
    """Import the function; the factor `beta` of a quantized input becomes part of its scale."""
    beta, input = np.float32(node.options(SoftmaxOptions).beta), node[0]
    quantization = input.type.quantization
    if quantization is not None and beta > 0:
        scale = tuple(float(beta * np.float32(each)) for each in quantization.scale)
        input = node.reinterpret(input, replace(quantization, scale=scale))
    elif beta != 1:
        real = node.dequantized(input)
        input = node.add(Mul, real, np.array(beta, real.type.element_type.dtype))
    return node.add(Softmax, input, axis=-1)


@imports("LOG_SOFTMAX")
def log_softmax(node: Node) -> Operand:
    return node.add(LogSoftmax, node[0], axis=-1)


@imports("L2_NORMALIZATION")
def l2_normalization(node: Node) -> Operand:
    if node[0].type.quantization is not None:
        return node.add(LpNormalization, node[0], axis=-1, epsilon=0.0)
    real = node[0]
    total = node.add(ReduceSum, node.add(Square, real), axes=(-1,), keepdim=True)
    norm = node.add(Max, node.add(Sqrt, total), node.constant(np.array(_LEAST_NORM)))
    return node.add(Div, real, norm)


@imports("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(node: Node) -> Operand:
    options = node.options(LocalResponseNormalizationOptions)
    normalized = node.add(
        LRN,
        node.channels_first(node[0]),
        size=2 * options.radius + 1,
        bias=options.bias,
        alpha=options.alpha,
        beta=options.beta,
    )
    return node.channels_last(normalized)
