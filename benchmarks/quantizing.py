"""Networks in eight and in four bits, in each of the forms that quantized models come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from benchmarks.models import model_file
from benchmarks.zoo import transformer
from crosschip.ir import Array

TRANSFORMER = "transformer, 4 layers of 512"
NETWORKS = ("ResNet50", "MobileNetV1", "MobileNetV2", "MobileNetV3-small", TRANSFORMER)

_BLOCK = 32
"""The weights of a product in four bits that share a scale."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way to quantize.

    Attributes:
        name: what it is called: the type of activations, of weights, and more.
        write: writes the network of one file in this form into another, given inputs.
        for_transformers: whether it is one for transformers.
        for_vision: whether it is one for vision.
    """

    name: str
    write: Callable[[Path, Path, Mapping[str, Array]], None]
    for_transformers: bool = True
    for_vision: bool = True


def forms(network: str) -> list[Form]:
    """The forms that models of a kind come in."""
    if network == TRANSFORMER:
        return [form for form in _FORMS if form.for_transformers]
    return [form for form in _FORMS if form.for_vision]


def prepared(network: str, path: Path) -> dict[str, Array]:
    """Write a network in float32, as it is best quantized; returns inputs for it."""
    random = np.random.default_rng(0)
    if network == TRANSFORMER:
        transformer(path, layers=4, words=128, width=512, heads=8)
        return {"x": random.standard_normal((1, 128, 512), np.float32)}
    file = model_file(network, ".onnx")
    inputs = dict(file.oracle(1).inputs)
    model = onnx.load(file.path)
    for input_ in model.graph.input:
        sizes = zip(input_.type.tensor_type.shape.dim, inputs[input_.name].shape, strict=True)
        for size, known in sizes:
            size.dim_value = known
    fixed = path.with_suffix(".fixed")
    onnx.save(model, fixed)
    # It folds normalizations into convolutions.
    quant_pre_process(fixed, path, skip_symbolic_shape=True)
    return inputs


class _Once(CalibrationDataReader):  # type: ignore[misc]  # the package has no types
    """One input to calibrate with."""

    def __init__(self, inputs: Mapping[str, Array]) -> None:
        self._left = iter([dict(inputs)])

    def get_next(self) -> dict[str, Array] | None:
        return next(self._left, None)


def _static(
    source: Path,
    path: Path,
    inputs: Mapping[str, Array],
    *,
    form: QuantFormat,
    activations: QuantType,
    per_channel: bool,
) -> None:
    quantize_static(
        source,
        path,
        _Once(inputs),
        quant_format=form,
        activation_type=activations,
        weight_type=QuantType.QInt8,
        per_channel=per_channel,
    )


def _dynamic(source: Path, path: Path, inputs: Mapping[str, Array], *, types: list[str]) -> None:
    weights = QuantType.QUInt8 if "Conv" in types else QuantType.QInt8
    quantize_dynamic(source, path, op_types_to_quantize=types, weight_type=weights)


def _four_bits(source: Path, path: Path, inputs: Mapping[str, Array], *, pairs: bool) -> None:
    """Write products with constant matrices in four bits, the furthest weight of a block -8.

    Args:
        source: the file of the network.
        path: the file to write.
        inputs: are not needed.
        pairs: as DequantizeLinear and MatMul; otherwise as MatMulNBits.
    """
    model = onnx.load(source)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in weights:
            array = numpy_helper.to_array(weights[node.input[1]])
            nodes += (_with_pairs if pairs else _packed)(model.graph, node, array)
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    read = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.opset_import[0].version = 21
    model.ir_version = 10
    model.opset_import.append(helper.make_operatorsetid("com.microsoft", 1))
    onnx.save(model, path)


def _steps(weights: Array) -> tuple[Array, Array]:
    """Integers from -8 to 7, [columns, blocks, terms of a block], and the scales of blocks."""
    blocks = weights.T.reshape(weights.shape[1], -1, _BLOCK)
    furthest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1, keepdims=True), -1)
    scale = (furthest / -8).astype(np.float32)
    return np.clip(np.rint(blocks / scale), -8, 7).astype(np.int8), scale


def _packed(graph: onnx.GraphProto, node: NodeProto, weights: Array) -> list[NodeProto]:
    steps, scale = _steps(weights)
    bytes_ = (steps + 8).astype(np.uint8)
    packed = bytes_[..., ::2] | bytes_[..., 1::2] << 4
    names = [f"{node.input[1]}.packed", f"{node.input[1]}.scales"]
    for name, array in zip(names, (packed, scale.reshape(-1)), strict=True):
        graph.initializer.append(numpy_helper.from_array(array, name))
    terms, columns = weights.shape
    named = {"K": terms, "N": columns, "bits": 4, "block_size": _BLOCK, "accuracy_level": 4}
    inputs = [node.input[0], *names]
    domain = "com.microsoft"
    return [helper.make_node("MatMulNBits", inputs, node.output, node.name, domain=domain, **named)]


def _with_pairs(graph: onnx.GraphProto, node: NodeProto, weights: Array) -> list[NodeProto]:
    steps, scale = _steps(weights)
    shape = weights.shape
    names = [f"{node.input[1]}.{part}" for part in ("steps", "scales", "reals")]
    integers = steps.reshape(shape[::-1]).T
    graph.initializer.append(
        helper.make_tensor(names[0], onnx.TensorProto.INT4, shape, integers.ravel().tolist())
    )
    scales = np.ascontiguousarray(scale[..., 0].T)
    graph.initializer.append(numpy_helper.from_array(scales, names[1]))
    real = helper.make_node(
        "DequantizeLinear", names[:2], names[2:], names[2], axis=0, block_size=_BLOCK
    )
    return [
        real,
        helper.make_node("MatMul", [node.input[0], names[2]], node.output, node.name),
    ]


def _form_static(form: QuantFormat, activations: QuantType, *, per_channel: bool) -> Form:
    bits = {QuantType.QUInt8: "U8S8", QuantType.QInt8: "S8S8"}[activations]
    scales = "per channel" if per_channel else "per tensor"
    write = partial(_static, form=form, activations=activations, per_channel=per_channel)
    return Form(f"{form.name} {bits}, {scales}", write)


_FORMS = (
    _form_static(QuantFormat.QDQ, QuantType.QUInt8, per_channel=True),
    _form_static(QuantFormat.QDQ, QuantType.QInt8, per_channel=True),
    _form_static(QuantFormat.QDQ, QuantType.QUInt8, per_channel=False),
    _form_static(QuantFormat.QOperator, QuantType.QUInt8, per_channel=True),
    Form("dynamic", partial(_dynamic, types=["MatMul", "Gemm"]), for_vision=False),
    Form("dynamic", partial(_dynamic, types=["Conv", "MatMul", "Gemm"]), for_transformers=False),
    Form("4 bits, MatMulNBits", partial(_four_bits, pairs=False), for_vision=False),
    Form("4 bits, QDQ", partial(_four_bits, pairs=True), for_vision=False),
)
