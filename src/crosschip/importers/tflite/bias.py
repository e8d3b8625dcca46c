"""Biases of quantized convolutions and fully connected layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosschip.importers.tflite.node import Node
from crosschip.ir import ElementType, Operand, Quantization, UnsupportedError, constant

_INT32 = np.iinfo(np.int32)


def accumulated_bias(
    node: Node, bias: Operand | None, input: Operand, filter: Operand
) -> Operand | None:
    """Return a bias that is added to integer sums: its scale is the input's times the filter's.

    LiteRT adds the integers, whatever scale the file declares.

    Raises:
        UnsupportedError: an integer of a 64-bit bias does not fit into 32 bits.
    """
    unit, scales = input.type.quantization, filter.type.quantization
    if bias is None or unit is None or scales is None:
        return bias
    scale = np.float32(unit.scale[0]) * np.array(scales.scale, np.float32)
    axis = None if scales.axis is None else 0
    quantization = Quantization(tuple(scale.tolist()), (0,), axis)
    if bias.type.element_type is ElementType.INT64:
        if bias.value is None or ((bias.value < _INT32.min) | (bias.value > _INT32.max)).any():
            raise UnsupportedError("a bias of 64-bit integers does not fit into 32 bits")
        bias = constant(bias.value.astype(np.int32), bias.name)
    if bias.is_constant:
        return Operand(bias.name, replace(bias.type, quantization=quantization), bias.content)
    return node.reinterpret(bias, quantization)
