"""Products of bytes as OpenVINO finds them, and their precision: the processor's matter."""

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
"""The accuracy at which a product with weights of few bits may take its other factor as int8."""
_GROUPS = (16, 32)
"""The least and the greatest number of elements to which OpenVINO gives a scale."""


@cache
def multiplies_bytes() -> bool:
    """Tell whether sums of products of bytes are exact, and none is cut off at 16 bits.

    They are on x86 processors with VNNI. It is tried out with the largest products there are.
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
    """Whole numbers, which are in the range of bytes, as OpenVINO knows by it."""
    limits = np.iinfo(dtype)
    least, greatest = (g.constant(np.array(n, np.float32)) for n in (limits.min, limits.max))
    return ops.fake_quantize(numbers, least, greatest, least, greatest, 256)


def as_weights(g: Graph, numbers: Array) -> Node:
    """Constants in int8, as OpenVINO keeps them."""
    one = g.constant(np.array(1, np.float32))
    return ops.multiply(ops.convert(g.constant(numbers.astype(np.int8)), "f32"), one)


def activations(model: Model) -> dict[str, Any]:
    """The setting by which OpenVINO takes the other factor of weights of few bits as int8.

    It holds for all of a model, so all products of it must allow that.
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
    """The setting by which OpenVINO multiplies quantized numbers as reals where bytes are cut off.

    See quirk `products-of-bytes-cut-off`.
    """
    is_quantized = any(
        operand is not None and operand.type.element_type in _BYTES
        for operation in model.operations
        for operand in operation.inputs
    )
    return {"LP_TRANSFORMS_MODE": "NO"} if is_quantized and not multiplies_bytes() else {}
