"""The precision of ONNX Runtime's products of bytes on this processor."""

from __future__ import annotations

from functools import cache

import numpy as np
from onnxruntime import InferenceSession

from crosschip.devices.onnxruntime.session import quiet_options
from crosschip.ir import ElementType, Extension, Model, Operand
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.quantization import Dequantize

_BYTES = (ElementType.INT8, ElementType.UINT8)
_LENGTH = 64


@cache
def saturates() -> bool:
    """Return whether sums of two products of an unsigned and a signed byte saturate at 16 bits.

    They do on x86 processors without VNNI. The largest products are tried.
    """
    from onnx import TensorProto, helper  # imported late: most models have no products of bytes

    unsigned, signed = np.full((1, _LENGTH), 255, np.uint8), np.full((_LENGTH, 1), 127, np.int8)
    values = [
        helper.make_tensor_value_info("x", TensorProto.UINT8, unsigned.shape),
        helper.make_tensor_value_info("y", TensorProto.INT8, signed.shape),
    ]
    sums = helper.make_tensor_value_info("sums", TensorProto.INT32, [1, 1])
    node = helper.make_node("MatMulInteger", ["x", "y"], ["sums"])
    graph = helper.make_graph([node], "trial", values, [sums])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 10)])
    options = quiet_options()
    options.intra_op_num_threads = 1
    session = InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (product,) = session.run(None, {"x": unsigned, "y": signed})
    return bool(product.item() != 255 * 127 * _LENGTH)


def multiplies_bytes(model: Model) -> bool:
    """Return whether a model has a product of two dequantized or quantized factors."""
    return any(
        isinstance(operation, MatMul)
        and all(_stands_for_bytes(factor, model) for factor in (operation.x, operation.y))
        for operation in model.operations
    )


def _stands_for_bytes(operand: Operand, model: Model) -> bool:
    return operand.type.quantization is not None or isinstance(
        model.producers.get(operand), Dequantize
    )


def has_bytes(model: Model) -> bool:
    """Return whether a model may multiply bytes: an operation reads some, or is an extension."""
    return any(
        isinstance(operation, Extension)
        or any(o is not None and o.type.element_type in _BYTES for o in operation.inputs)
        for operation in model.operations
    )
