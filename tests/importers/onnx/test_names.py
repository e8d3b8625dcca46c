"""The names that operators have in ONNX are those that the importer makes them of."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.importers.onnx.backend_cases import cases

import crosschip
from crosschip.importers.onnx.operators import TABLE
from crosschip.mapping.opsets import opset_mapping
from crosschip.ops import operators

OTHERS = {
    "Gemm": "MAT_MUL and ADD, of which a pass makes FULLY_CONNECTED",
    "GlobalMaxPool": "REDUCE_MAX, for any number of axes",
    "Identity": "nothing: its output is its input",
    "Sum": "ADD, which broadcasts",
}
"""The names that become something else, which says the same."""

NAMES = sorted(
    (name, type_)
    for type_, cls in operators().items()
    for name in opset_mapping(cls).onnx
    if name not in OTHERS
)


@cache
def models() -> dict[str, list[onnx.ModelProto]]:
    """Return the ONNX project's test models of one node, by its operator."""
    found: dict[str, list[onnx.ModelProto]] = defaultdict(list)
    for case in cases():
        if len(case.model.graph.node) == 1:
            found[case.model.graph.node[0].op_type].append(case.model)
    for model in _more():
        found[model.graph.node[0].op_type].append(model)
    found.update((name, [_contributed(name)]) for name in CONTRIBUTED)
    return found


CONTRIBUTED: dict[str, tuple[list[list[int]], dict[str, Any]]] = {
    "SimplifiedLayerNormalization": ([[2, 4], [4]], {}),
    "com.microsoft.Attention": ([[2, 3, 4], [4, 12]], {"num_heads": 2}),
    "com.microsoft.BiasGelu": ([[2, 4], [4]], {}),
    "com.microsoft.FastGelu": ([[2, 4]], {}),
    "com.microsoft.FusedMatMul": ([[2, 4], [4, 3]], {"transA": 0}),
    "com.microsoft.Gelu": ([[2, 4]], {}),
    "com.microsoft.GroupQueryAttention": (
        [[2, 1, 8], [2, 1, 4], [2, 1, 4], [2, 1, 3, 4], [2, 1, 3, 4], [2], []],
        {"num_heads": 2, "kv_num_heads": 1},
    ),
    "com.microsoft.MultiHeadAttention": ([[2, 3, 4]] * 3, {"num_heads": 2}),
    "com.microsoft.RotaryEmbedding": ([[2, 3, 8], [2, 3], [5, 2], [5, 2]], {}),
    "com.microsoft.SkipLayerNormalization": ([[2, 3, 4], [2, 3, 4], [4]], {}),
    "com.microsoft.SkipSimplifiedLayerNormalization": ([[2, 3, 4], [2, 3, 4], [4]], {}),
}
"""Operators of ONNX Runtime: the shapes of their inputs, and attributes."""


def _contributed(name: str) -> onnx.ModelProto:
    shapes, attributes = CONTRIBUTED[name]
    domain, _, kind = name.rpartition(".")
    names = [f"x{index}" for index in range(len(shapes))]
    node = helper.make_node(kind, names, ["y"], domain=domain, **attributes)
    integers = {"RotaryEmbedding": {"x1"}, "GroupQueryAttention": {"x5", "x6"}}.get(kind, set())
    read = [
        helper.make_tensor_value_info(
            name, TensorProto.INT64 if name in integers else TensorProto.FLOAT, shape
        )
        for name, shape in zip(names, shapes, strict=True)
    ]
    written = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], kind, read, written), opset_imports=opsets)


def _more() -> list[onnx.ModelProto]:
    """Models of what the project tests only with computed scales, or with all sizes known."""
    info = helper.make_tensor_value_info
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    zero = numpy_helper.from_array(np.array(1, np.int8), "zero")
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")
    real, stored = TensorProto.FLOAT, TensorProto.INT8
    upsample = helper.make_node("Upsample", ["x", "scales"], ["y"], mode="linear")
    quantize = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])
    dequantize = helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["y"])
    parts = [
        (upsample, info("x", real, [1, 1, 2, 2]), info("y", real, [1, 1, 4, 4]), [scales], 9),
        (quantize, info("x", real, [3]), info("y", stored, [3]), [scale, zero], 19),
        (
            helper.make_node("Shape", ["x"], ["y"]),
            info("x", real, ["N"]),
            info("y", TensorProto.INT64, [1]),
            [],
            19,
        ),
    ]
    made = [
        helper.make_model(
            helper.make_graph([node], node.op_type, [read], [written], constants),
            opset_imports=[helper.make_opsetid("", opset)],
        )
        for node, read, written, constants, opset in parts
    ]
    weights = numpy_helper.from_array(np.array([1, 2, 3], np.int8), "x")
    graph = helper.make_graph(
        [dequantize], "weights", [], [info("y", real, [3])], [weights, scale, zero]
    )
    return [
        *made,
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)]),
        *(_convolution(rank, quantized) for rank in (1, 3) for quantized in (False, True)),
        *(_without_attributes("GlobalAveragePool", [2, 3, *[4] * rank]) for rank in (1, 3)),
        *(
            _without_attributes("ConvInteger", [2, 3, *[4] * rank], [2, 3, *[2] * rank])
            for rank in (1, 3)
        ),
    ]


def _without_attributes(type_: str, *shapes: list[int]) -> onnx.ModelProto:
    """A node of inputs of some shapes, of bytes if it is of integers."""
    kind = TensorProto.UINT8 if type_.endswith("Integer") else TensorProto.FLOAT
    inputs = [
        helper.make_tensor_value_info(f"x{index}", kind, shape)
        for index, shape in enumerate(shapes)
    ]
    written = TensorProto.INT32 if type_.endswith("Integer") else TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(type_, [value.name for value in inputs], ["y"])],
        "node",
        inputs,
        [helper.make_tensor_value_info("y", written, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])


def _convolution(rank: int, quantized: bool) -> onnx.ModelProto:
    """Return a convolution of an image of some axes, of reals or of bytes."""
    kind = np.int8 if quantized else np.float32
    element_type = TensorProto.INT8 if quantized else TensorProto.FLOAT
    numbers = {"w": np.ones((3, 2, *[2] * rank), kind)}
    inputs, type_ = ["x", "w"], "Conv"
    if quantized:
        numbers |= {"scale": np.array(0.5, np.float32), "zero": np.array(0, np.int8)}
        inputs, type_ = ["x", "scale", "zero", "w", "scale", "zero", "scale", "zero"], "QLinearConv"
    graph = helper.make_graph(
        [helper.make_node(type_, inputs, ["y"])],
        "convolution",
        [helper.make_tensor_value_info("x", element_type, [1, 2, *[5] * rank])],
        [helper.make_tensor_value_info("y", element_type, None)],
        [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])


@pytest.mark.parametrize(("name", "type_"), NAMES)
def test_becomes_what_has_its_name(tmp_path: Path, name: str, type_: str) -> None:
    made: set[str] = set()
    for model in models()[name]:
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        try:
            made.update(operation.type for operation in crosschip.load(path).operations)
        except crosschip.Error:
            continue
        if type_ in made:
            return
    pytest.fail(f"{name} becomes {sorted(made)}, never {type_}")


@pytest.mark.parametrize(("name", "type_"), NAMES)
def test_they_are_imported_in_the_family_of_the_operator(name: str, type_: str) -> None:
    """Or with the others that compute with integers in the place of reals."""
    family = operators()[type_].__module__.rpartition(".")[2]
    assert TABLE[name].__module__.rpartition(".")[2] in (family, "quantization")
