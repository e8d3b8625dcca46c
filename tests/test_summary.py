"""Summaries of models against counts by ONNX Runtime's shapes, published ones, and by hand."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.modelling import float32, model_of

import crosschip as cc
from crosschip.ir import Builder, Model, TensorType
from crosschip.ir.dimension import symbol
from crosschip.ir.types import ElementType
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.attention import Attention
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.recurrent import LSTM
from crosschip.ops.standard.searching import NonZero

PUBLISHED = {
    "resnet50": (25_557_032, 4.089),
    "mobilenet_v2": (3_504_872, 0.301),
    "mobilenet_v3_small": (2_542_856, 0.057),
    "shufflenet_v2_x1_0": (2_278_604, 0.145),
    "squeezenet1_1": (1_235_496, 0.349),
}
"""Parameters and 10⁹ multiply-adds as torchvision publishes them with its weights."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_networks(name: str, models: Path) -> None:
    parameters, giga = PUBLISHED[name]
    summary = cc.load(models / "onnx" / f"{name}.onnx").summary({"x": [1, 3, 224, 224]})
    multiply_adds = summary.multiply_adds.known
    assert isinstance(multiply_adds, int)
    assert round(multiply_adds / 1e9, 3) == pytest.approx(giga, abs=0.0015)
    # Batch normalization has a mean and a variance in addition, which torchvision does not count.
    counted = {operator.type: operator.parameters for operator in summary.operators}
    statistics = counted.get("BATCH_NORMALIZATION", 0) // 2
    assert summary.weights["float32"][0] - statistics == pytest.approx(parameters, rel=1e-4)


def independent_count(path: Path, shape: list[int]) -> int:
    """Multiply-adds by the shapes that ONNX Runtime computes when it runs the file."""
    proto = onnx.load(path)
    names = [name for node in proto.graph.node for name in node.output if name]
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    values = session.run(names, {proto.graph.input[0].name: x})
    shapes = {name: value.shape for name, value in zip(names, values, strict=True)}
    shapes |= {each.name: tuple(each.dims) for each in proto.graph.initializer}
    total = 0
    for node in proto.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        output = prod(shapes[node.output[0]])
        if node.op_type == "Conv":
            _, channels, *kernel = shapes[node.input[1]]
            total += output * channels * prod(kernel)
        elif node.op_type == "ConvTranspose":
            total += prod(shapes[node.input[0]]) * prod(shapes[node.input[1]][1:])
        elif node.op_type == "MatMul":
            total += output * shapes[node.input[0]][-1]
        elif node.op_type == "Gemm":
            total += output * shapes[node.input[0]][0 if attributes.get("transA") else 1]
    assert not any(
        a.type == onnx.AttributeProto.GRAPH for n in proto.graph.node for a in n.attribute
    )
    return total


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("onnx/resnet50", [2, 3, 224, 224]),
        ("onnx/mobilenet_v1", [1, 3, 224, 224]),
        ("onnx/mobilenet_v3_small", [3, 3, 224, 224]),
        ("ocr-onnx/ch_PP-OCRv4_det_infer", [1, 3, 320, 448]),
        ("ocr-onnx/ch_ppocr_mobile_v2.0_cls_infer", [1, 3, 48, 192]),
    ],
)
def test_against_shapes_of_onnx_runtime(name: str, shape: list[int], models: Path) -> None:
    path = models / f"{name}.onnx"
    multiply_adds = independent_count(path, shape)
    model = cc.load(path)
    assert model.summary({"x": shape}).multiply_adds.known == multiply_adds
    # The formulas say the same, unless the file computes sizes in a way that they do not express.
    summary = model.summary()
    formula = summary.multiply_adds.known
    assert not isinstance(formula, int)
    axes = {axis: size.name for size in summary.sizes for axis in size.inputs}
    sizes = {axes[f"x axis {i}"]: n for i, n in enumerate(shape) if f"x axis {i}" in axes}
    if summary.multiply_adds.unknown:
        assert "det" in name
        assert formula.evaluate(sizes) < multiply_adds
    else:
        assert formula.evaluate(sizes) == multiply_adds


N, T = symbol("n"), symbol("t")


def open_model() -> Model:
    """A network whose sizes depend on each other."""

    def make(b: Builder, x: Any) -> Any:
        filter = b.constant(np.zeros((8, 3, 3, 3), np.float32))
        image = b.add(Relu, b.add(Conv2D, x, filter, strides=(2, 2)))
        return b.add(Reshape, image, (0, 8, -1))

    return model_of(make, TensorType(ElementType.FLOAT32, (N, 3, T, 33)))


def test_open_sizes_are_formulas() -> None:
    summary = open_model().summary()
    height = (T - 3) // 2 + 1
    assert summary.multiply_adds.known == N * height * (16 * 8 * 27)
    assert summary.activations.known == N * height * (3 * 8 * 16 * 4)
    assert summary.most_at_once is None
    (n, t) = summary.sizes
    assert (n.name, n.inputs, n.outputs) == ("n", ("x0 axis 0",), ("y0 axis 0",))
    assert t.inputs == ("x0 axis 2",)
    assert t.outputs == (f"y0 axis 2 = {height * 16}",)
    fixed = open_model().summary({"n": 2, "t": 11})
    assert fixed.multiply_adds.known == 2 * 5 * 16 * 8 * 27
    image, values = 2 * 3 * 11 * 33 * 4, 2 * 8 * 5 * 16 * 4
    assert fixed.activations.known == 3 * values
    assert fixed.most_at_once is not None
    assert fixed.most_at_once.known == max(image + values, 2 * values)
    assert (fixed.sizes, fixed.parameters, fixed.weight_bytes) == ((), 216, 864)


def test_by_hand() -> None:
    def lstm(b: Builder, x: Any) -> Any:
        weights = [np.zeros((1, 16, size), np.float32) for size in (3, 4)]
        return b.add_all(LSTM, x, *map(b.constant, weights))[0]

    summary = model_of(lstm, float32(T, 2, 3)).summary()
    assert summary.multiply_adds.known == T * (2 * 16 * (3 + 4))
    assert summary.parameters == 16 * 7
    query, key = float32(2, 8, 5, 16), float32(2, 8, 7, 16)
    attention = model_of(lambda b, q, k, v: b.add(Attention, q, k, v), query, key, key)
    assert attention.summary().multiply_adds.known == 2 * 8 * 5 * 7 * (16 + 16)


def test_what_depends_on_the_data_is_unknown() -> None:
    def make(b: Builder, x: Any) -> Any:
        indices = b.add(Cast, b.add(NonZero, x), ElementType.FLOAT32)
        return b.add(MatMul, b.constant(np.zeros((3, 2), np.float32)), indices)

    summary = model_of(make, float32(4, 5)).summary()
    assert (summary.multiply_adds.known, summary.multiply_adds.unknown) == (0, 1)
    assert summary.multiply_adds.to_json() is None
    assert "unknown for 1 operations" in str(summary)


def test_state_and_types() -> None:
    inputs = {name: TensorType(ElementType.FLOAT16, (N, 4)) for name in ("past.0", "x")}
    b = Builder("decoder")
    past, x = (b.input(name, type_) for name, type_ in inputs.items())
    b.output("present.0", b.add(Relu, past))
    b.output("y", b.add(Relu, x))
    summary = b.build().summary()
    assert summary.state == {"present.0": "past.0"}
    assert summary.values == {"float16": 2}
    document = json.loads(json.dumps(summary.to_json()))
    assert document["activation_bytes"] == "16 * n"
    assert document["state"] == {"present.0": "past.0"}


def test_hostile_names_are_escaped() -> None:
    b = Builder("<script>alert(1)</script>")
    x = b.input("<img src=x onerror=alert(1)>\x1b[31m", float32(2))
    b.output('"><b>', b.add(Relu, x))
    model = b.build()
    html = model._repr_html_()
    for tag in ("<script", "<img", "<b>&", "\x1b"):
        assert tag not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\x1b" not in str(model.summary())
