"""Sessions of ONNX Runtime whose products of bytes are exact, as oracles.

On x86 processors without VNNI, ONNX Runtime adds products of unsigned and signed bytes in 16 bits,
and cuts off what is more. It is exact if both are unsigned: here signed weights are moved by 128,
and so are their zero points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

from crosschip.devices.onnxruntime.precision import saturates

_OFFSET = 128


class _Weight(NamedTuple):
    """The positions of a weight and of its zero point among a node's inputs."""

    weight: int
    zero_point: int


_WEIGHTS: dict[str, tuple[_Weight, ...]] = {
    "ConvInteger": (_Weight(1, 3),),
    "DynamicQuantizeLSTM": (_Weight(1, 9), _Weight(2, 11)),
    "DynamicQuantizeMatMul": (_Weight(1, 3),),
    "MatMulInteger": (_Weight(1, 3),),
    "MatMulIntegerToFloat": (_Weight(1, 5),),
    "QAttention": (_Weight(1, 7),),
    "QLinearConv": (_Weight(3, 5),),
    "QLinearMatMul": (_Weight(3, 5),),
}


def exact_session(
    model: ModelProto | bytes | str, options: onnxruntime.SessionOptions | None = None
) -> onnxruntime.InferenceSession:
    """Return a session of a model, or of a file, whose products of bytes are exact."""
    if saturates():
        proto = ModelProto()
        if isinstance(model, ModelProto):
            proto.CopyFrom(model)
        else:
            proto = onnx.load(model) if isinstance(model, str) else onnx.load_from_string(model)
        _make_unsigned(proto)
        model = proto
    content = model.SerializeToString() if isinstance(model, ModelProto) else model
    return _session(content, options)


def _session(
    model: bytes | str, options: onnxruntime.SessionOptions | None
) -> onnxruntime.InferenceSession:
    if options is None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
    # With its optimizer, ONNX Runtime then moves the weights of quantized networks itself.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _make_unsigned(proto: ModelProto) -> None:
    """Move the signed weights of a model's products by 128."""
    inferred = shape_inference.infer_shapes(proto).graph
    values = [*inferred.input, *inferred.value_info]
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    types |= {tensor.name: tensor.data_type for tensor in proto.graph.initializer}
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    for index, node in enumerate(nodes):
        for weight in _WEIGHTS.get(node.op_type, ()):
            first, second = (types.get(node.input[each]) for each in (0, weight.weight))
            # Products of two signed bytes are exact.
            if first != TensorProto.INT8 and second == TensorProto.INT8:
                for moved in _move(node, weight, f"unsigned.{index}.{weight.weight}"):
                    if isinstance(moved, TensorProto):
                        proto.graph.initializer.append(moved)
                    else:
                        proto.graph.node.append(moved)
        proto.graph.node.append(node)


def _move(node: NodeProto, weight: _Weight, prefix: str) -> Iterator[NodeProto | TensorProto]:
    """Yield the nodes and constants that move a weight and its zero point, and change the node."""
    yield numpy_helper.from_array(np.array(_OFFSET, np.int32), f"{prefix}.offset")
    node.input.extend([""] * (weight.zero_point + 1 - len(node.input)))
    for position in weight:
        name, result = node.input[position], f"{prefix}.{position}"
        node.input[position] = result
        if name:
            yield from _moved(name, result, f"{prefix}.offset")
        else:
            yield numpy_helper.from_array(np.array(_OFFSET, np.uint8), result)


def _moved(name: str, result: str, offset: str) -> Iterator[NodeProto]:
    """Yield the nodes that add 128 to an int8 value."""
    attributes: dict[str, Any] = {"to": TensorProto.INT32}
    yield helper.make_node("Cast", [name], [f"{result}.wide"], **attributes)
    yield helper.make_node("Add", [f"{result}.wide", offset], [f"{result}.sum"])
    yield helper.make_node("Cast", [f"{result}.sum"], [result], to=TensorProto.UINT8)
