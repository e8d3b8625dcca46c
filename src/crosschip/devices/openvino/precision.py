"""Products of bytes in the form that OpenVINO recognizes, and their precision on this processor."""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import Any

import numpy as np
import openvino
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.graph import Graph, Value
from crosschip.ir import Array, ElementType, Model
from crosschip.ir.types import NARROW_INTEGERS
from crosschip.ops.standard.matrix import MatMulNBits
from crosschip.ops.standard.quantization import Dequantize, DequantizeBlocks

_BYTES = {ElementType.INT8, ElementType.UINT8}
_LENGTH = 64
_INT8 = 4
"""The accuracy level at which a product may quantize its other factor to int8."""
_GROUPS = (16, 32)
"""The least and the greatest number of elements that share a scale in OpenVINO."""


@cache
def multiplies_bytes() -> bool:
    """Return whether sums of products of bytes are exact, tested with the largest products.

    Quirk `products-of-bytes-cut-off`: only processors with VNNI are exact.
    """
    g = Graph([])
    x = ops.parameter([1, _LENGTH], openvino.Type.f32)
    y = as_weights(g, np.full((_LENGTH, 1), 127))
    model = openvino.Model([ops.matmul(as_bytes(g, x, np.dtype(np.uint8)), y, False, False)], [x])
    hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = openvino.Core().compile_model(model, "CPU", hints)
    result = compiled(np.full((1, _LENGTH), 255, np.float32))[0]
    return bool(result.item() == 255 * 127 * _LENGTH)


def as_bytes(g: Graph, numbers: Value, dtype: np.dtype[Any]) -> Node:
    """Mark whole numbers as bytes, by a `FakeQuantize` that does not change them."""
    limits = np.iinfo(dtype)
    least, greatest = (g.constant(np.array(n, np.float32)) for n in (limits.min, limits.max))
    return ops.fake_quantize(numbers, least, greatest, least, greatest, 256)


def as_weights(g: Graph, numbers: Array) -> Node:
    """Create int8 weights in the form that OpenVINO keeps as int8."""
    one = g.constant(np.array(1, np.float32))
    return ops.multiply(ops.convert(g.constant(numbers.astype(np.int8)), "f32"), one)


def activations(model: Model) -> dict[str, Any]:
    """Return the setting that makes OpenVINO quantize the other factor of packed weights to int8.

    The setting applies to the whole model, so all its products must allow int8.
    """
    blocks = []
    for operation in model.operations:
        if isinstance(operation, MatMulNBits):
            if operation.accuracy_level != _INT8:
                return {}
            blocks.append(operation.block_size)
        elif isinstance(operation, DequantizeBlocks):
            if operation.input.type.element_type not in NARROW_INTEGERS:
                return {}
            blocks.append(operation.block_size)
        elif isinstance(operation, Dequantize) and operation.input.is_constant:
            return {}
    size = gcd(*blocks, _GROUPS[1])
    return {"DYNAMIC_QUANTIZATION_GROUP_SIZE": size} if blocks and size >= _GROUPS[0] else {}


def exact_bytes(model: Model) -> dict[str, Any]:
    """Return the setting to multiply quantized numbers as floats, if products of bytes are inexact.

    Quirk `products-of-bytes-cut-off`.
    """
    is_quantized = any(
        operand is not None and operand.type.element_type in _BYTES
        for operation in model.operations
        for operand in operation.inputs
    )
    return {"LP_TRANSFORMS_MODE": "NO"} if is_quantized and not multiplies_bytes() else {}
