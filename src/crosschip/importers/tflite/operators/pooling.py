"""Pooling of images with their channels last."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.enumerations import Padding
from crosschip.flatbuffer.schemas.tflite.options import Pool2DOptions
from crosschip.importers.tflite.node import Node, imports
from crosschip.importers.tflite.operators.convolution import PADDINGS
from crosschip.ir import ElementType, Operand, Quantization
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.unary import Sqrt, Square

_BYTES = (ElementType.INT8, ElementType.UINT8)
_STORED = Quantization((1.0,))
_AWAY_FROM_ZERO = Quantization((1 / (1 + 2**-16),))
"""Scale that moves a mean of integers that lies between two of them to the greater magnitude."""


@imports("AVERAGE_POOL_2D")
def average_pool_2d(node: Node) -> Operand:
    """Import the mean. LiteRT computes it of the stored integers and rounds halves away from 0."""
    if node[0].type.element_type not in _BYTES:  # the scale would move more than halves
        return _pool(node, AveragePool2D, node[0])
    stored = node.reinterpret(node[0], _STORED)
    return _pool(node, AveragePool2D, stored, quantization=_AWAY_FROM_ZERO)


@imports("MAX_POOL_2D")
def max_pool_2d(node: Node) -> Operand:
    return _pool(node, MaxPool2D, node[0])


@imports("L2_POOL_2D")
def l2_pool_2d(node: Node) -> Operand:
    """Import the root of the mean of squares."""
    options = node.options(Pool2DOptions)
    mean = _pool(node, AveragePool2D, node.add(Square, node[0]), activated=False)
    return node.activate(node.add(Sqrt, mean), options.fused_activation_function)


def _pool(
    node: Node,
    operator: type[Operator],
    input: Operand,
    activated: bool = True,
    quantization: Quantization | None = None,
) -> Operand:
    options = node.options(Pool2DOptions)
    pooled = node.add(
        operator,
        node.channels_first(input),
        auto_pad=PADDINGS[Padding(options.padding)],
        kernel_shape=(options.filter_height, options.filter_width),
        strides=(options.stride_h, options.stride_w),
        quantization=quantization,
    )
    if activated:
        pooled = node.fit(pooled, node.output())
        pooled = node.activate(pooled, options.fused_activation_function)
    return node.channels_last(pooled)
