"""The nodes that ONNX Runtime runs: no more than for the original file, where possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.devices.test_onnxruntime_graphs import compiled_graphs, types

import crosschip
from crosschip.devices.onnxruntime import OnnxRuntimeDevice
from crosschip.hal import Options
from crosschip.ir import Array, DeviceError, Model

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64

node = helper.make_node
tensor = helper.make_tensor_value_info
random = np.random.default_rng(0)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    **constants: Any,
) -> onnx.ModelProto:
    """Return a model with inferred output types."""
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), made, held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def assert_as_engine(model: onnx.ModelProto, inputs: dict[str, Any], atol: float = 0.0) -> None:
    """Compare a model with ONNX Runtime on the file."""
    engine = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in engine.get_outputs()]
    expected = dict(zip(names, engine.run(None, inputs), strict=True))
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        made = compiled.run(inputs)
    for name in names:
        np.testing.assert_allclose(made[name], expected[name], rtol=1e-5, atol=atol)


def attentive(outputs: Sequence[str] = (), axis: int = -1) -> onnx.ModelProto:
    """Return attention with packed queries, keys and values, as onnxruntime-genai has it."""
    past = [tensor(f"past.{of}", FLOAT, ["b", 2, "past", 16]) for of in "kv"]
    counts = [tensor("last", TensorProto.INT32, ["b"]), tensor("length", TensorProto.INT32, [1])]
    made = ["y", "present.k", "present.v"]
    reads = [*"qkv", *(value.name for value in (*past, *counts))]
    attributes: dict[str, Any] = {"domain": "com.microsoft", "num_heads": 4, "kv_num_heads": 2}
    nodes = [
        node("Split", ["x", "sizes"], [*"qkv"], axis=axis),
        node("GroupQueryAttention", reads, made, **attributes),
    ]
    inputs = [tensor("x", FLOAT, ["b", "s", 128]), *past, *counts]
    model = model_of(nodes, inputs, [*made, *outputs], sizes=np.array([64, 32, 32]))
    for value in model.graph.output:
        if not value.type.HasField("tensor_type") or value.name.startswith("present"):
            shape: list[str | int] = ["b", "s", 64] if value.name == "y" else ["b", 2, "total", 16]
            value.CopyFrom(tensor(value.name, FLOAT, shape))
    return model


@pytest.mark.parametrize("axis", [-1, 2])
@pytest.mark.parametrize("others", [[], ["k"]])
def test_queries_keys_and_values_that_are_one_stay_so(others: list[str], axis: int) -> None:
    model = attentive(others, axis)
    (graph,) = compiled_graphs(model)
    assert types(graph).count("Split") == len(others)
    (attention,) = [one for one in graph.node if one.op_type == "GroupQueryAttention"]
    assert list(attention.input[1:3]) == ["", ""]
    inputs: dict[str, Array] = {
        "x": random.standard_normal((2, 1, 128)).astype(np.float32),
        **{f"past.{of}": random.standard_normal((2, 2, 5, 16)).astype(np.float32) for of in "kv"},
        "last": np.array([5, 5], np.int32),
        "length": np.array([6], np.int32),
    }
    assert_as_engine(model, inputs, atol=1e-6)


def test_queries_keys_and_values_in_another_order_are_read_apart() -> None:
    model = attentive()
    model.graph.node[0].output[:] = ["q", "v", "k"]
    (graph,) = compiled_graphs(model)
    (attention,) = [one for one in graph.node if one.op_type == "GroupQueryAttention"]
    assert "" not in attention.input[:3]


@pytest.mark.parametrize(
    ("channels", "group", "count", "is_row"),
    [(8, 1, 2, True), (32, 1, 2, True), (64, 1, 1, True), (64, 1, 2, False), (8, 8, 1, False)],
)
def test_single_convolutions_and_those_of_few_weights_stay_convolutions_of_rows(
    channels: int, group: int, count: int, is_row: bool
) -> None:
    kernel = 3
    weights = random.standard_normal((channels, channels // group, kernel)).astype(np.float32)
    weights /= np.sqrt(np.float32(channels * kernel))
    nodes = []
    for index in range(count):
        source = f"r{index - 1}" if index else "x"
        nodes += [
            node("Conv", [source, "w"], [f"c{index}"], pads=[2, 0], group=group),
            node("Relu", [f"c{index}"], [f"r{index}"]),
        ]
    nodes.append(node("Add", [f"r{count - 1}", "x"], ["y"]))
    model = model_of(nodes, [tensor("x", FLOAT, ["n", channels, "t"])], ["y"], w=weights)
    (graph,) = compiled_graphs(model)
    assert ("Unsqueeze" not in types(graph)) == is_row
    for shape in ((1, channels, 9), (2, channels, 1)):
        inputs = {"x": random.standard_normal(shape).astype(np.float32)}
        assert_as_engine(model, inputs, atol=1e-5)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [0], [0, 1], [-1]])
def test_sums_of_integers_need_nothing_to_lose_their_axes(axes: list[int], keepdims: int) -> None:
    nodes = [node("ReduceSum", ["x", "axes"], ["y"], keepdims=keepdims)]
    model = model_of(nodes, [tensor("x", INT64, ["n", "t"])], ["y"], axes=np.array(axes))
    (graph,) = compiled_graphs(model)
    assert set(types(graph)) == {"Pad", "CumSum", "Gather"}
    for shape in ((2, 3), (1, 1), (0, 2), (2, 0)):
        given = random.integers(-(2**62), 2**62, shape)
        with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
            made = compiled(given)
        with np.errstate(over="ignore"):
            expected = given.sum(tuple(axes), keepdims=bool(keepdims))
        np.testing.assert_array_equal(made, expected)


def recurrent(layers: int, quantized: bool = False) -> onnx.ModelProto:
    """Return stacked recurrent layers, the first of them on integers."""
    constants: dict[str, Any] = {"axis": np.array([1])}
    nodes, value = [], "x"
    if quantized:
        constants |= {"scale": np.float32(0.1), "zero": np.uint8(3)}
        nodes, value = [node("DequantizeLinear", ["x", "scale", "zero"], ["f"])], "f"
    for layer in range(layers):
        for name, width in (("w", 12), ("r", 12)):
            held = random.standard_normal((1, width, 4)).astype(np.float32)
            constants[f"{name}{layer}"] = held
        nodes += [
            node("GRU", [value, f"w{layer}", f"r{layer}"], [f"s{layer}"], hidden_size=4),
            node("Squeeze", [f"s{layer}", "axis"], [f"h{layer}"]),
        ]
        value = f"h{layer}"
    of = TensorProto.UINT8 if quantized else FLOAT
    return model_of(nodes, [tensor("x", of, ["t", "n", 4])], [value], **constants)


def test_layers_of_sequences_of_the_same_sizes_share_what_says_their_lengths() -> None:
    model = recurrent(3)
    (graph,) = compiled_graphs(model)
    assert types(graph).count("Expand") == 1
    inputs = {"x": random.standard_normal((5, 2, 4)).astype(np.float32)}
    assert_as_engine(model, inputs, atol=1e-6)
    with (
        crosschip.compile(model, ["onnxruntime"], cache=False) as compiled,
        pytest.raises(DeviceError),
    ):
        compiled(np.empty((5, 0, 4), np.float32))


def test_what_asks_for_sizes_alone_does_not_have_integers_converted() -> None:
    model = recurrent(1, quantized=True)
    (graph,) = compiled_graphs(model)
    assert types(graph).count("DequantizeLinear") == 1
    inputs = {"x": random.integers(0, 255, (5, 2, 4)).astype(np.uint8)}
    assert_as_engine(model, inputs, atol=1e-5)


def test_numbers_without_axes_are_taken_as_they_are() -> None:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "first"], ["count"]),
        node("Range", ["zero", "count", "one"], ["places"]),
        node("Expand", ["places", "shape"], ["y"]),
    ]
    numbers = {"first": np.int64(1), "zero": np.int64(0), "one": np.int64(1)}
    model = model_of(nodes, [tensor("x", FLOAT, ["n", "m"])], ["y"], **numbers)
    (graph,) = compiled_graphs(model)
    assert "Reshape" not in types(graph)
    assert_as_engine(model, {"x": np.ones((2, 3), np.float32)})


def test_places_that_a_search_finds_are_converted_only_to_another_type() -> None:
    nodes = [node("ArgMax", ["x"], ["y"], axis=1)]
    model = model_of(nodes, [tensor("x", FLOAT, ["n", "m"])], ["y"])
    assert all("Cast" not in types(graph) for graph in compiled_graphs(model))
    assert_as_engine(model, {"x": np.array([[1, 3, 2], [4, 0, 0]], np.float32)})
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        made = compiled(np.array([[1, np.nan, 2], [np.inf, 0, np.nan]], np.float32))
    np.testing.assert_array_equal(made, [[1], [2]])


def test_the_engine_knows_which_sizes_are_equal() -> None:
    """So it fuses the sum into the convolution, in channel blocks."""
    shape: list[str | int] = ["n", 16, 8, 8]
    weights = random.standard_normal((16, 16, 3, 3)).astype(np.float32)
    window: dict[str, Any] = {"pads": [1, 1, 1, 1], "strides": [2, 2]}
    nodes = [
        node("Conv", ["x", "w"], ["c"], **window),
        node("Conv", ["z", "w"], ["d"], **window),
        node("Add", ["c", "d"], ["y"]),
    ]
    inputs = [tensor(name, FLOAT, shape) for name in "xz"]
    model = model_of(nodes, inputs, ["y"], w=weights)
    (graph,) = compiled_graphs(model)
    for value in graph.input:
        assert value.type.tensor_type.shape.dim[0].dim_param == "n"
    given = {name: random.standard_normal((2, 16, 8, 8)).astype(np.float32) for name in "xz"}
    assert_as_engine(model, given, atol=1e-4)


def test_a_size_without_a_name_stays_without_one() -> None:
    model = model_of([node("Relu", ["x"], ["y"])], [tensor("x", FLOAT, [None, 3])], ["y"])
    (graph,) = compiled_graphs(model)
    assert not graph.input[0].type.tensor_type.shape.dim[0].dim_param


def test_sizes_are_checked_beside_what_is_no_tensor() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    nodes = [
        node("SequenceAt", ["s", "place"], ["a"]),
        node("MatMul", ["x", "w"], ["m"]),
        node("Add", ["m", "a"], ["y"]),
    ]
    weights = random.standard_normal((4, 3)).astype(np.float32)
    inputs = [sequence, tensor("x", FLOAT, ["n", 4])]
    model = model_of(nodes, inputs, ["y"], place=np.int64(0), w=weights)
    row = np.ones((1, 3), np.float32)
    assert_as_engine(model, {"s": [row], "x": np.ones((2, 4), np.float32)})
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        made = compiled.run({"s": [row], "x": np.ones((0, 4), np.float32)})
        assert made["y"].shape == (0, 3)


@pytest.mark.parametrize(
    ("shapes", "axis", "few"),
    [
        ([["n", 2], ["m", 3]], 1, True),
        ([["n", 2], ["m", 3], ["k", 1]], -1, True),
        ([[2, "n", 2], [3, "m", 2]], 0, True),
        ([["n", 2, "i"], ["m", 3, "j"]], 1, False),
    ],
)
def test_parts_are_compared_on_the_axis_that_may_differ(
    shapes: list[list[str | int]], axis: int, few: bool
) -> None:
    names = [f"x{index}" for index in range(len(shapes))]
    inputs = [tensor(name, FLOAT, shape) for name, shape in zip(names, shapes, strict=True)]
    model = model_of([node("Concat", names, ["y"], axis=axis)], inputs, ["y"])
    (graph,) = compiled_graphs(model)
    assert ("Or" not in types(graph)) == few
    assert types(graph).count("Shape") == len(shapes) + (not few)
    for sizes in ([4] * 3, [1] * 3, [0] * 3, [0, 3, 0], [3, 0, 3], [2, 3, 2]):
        given = {
            name: np.ones([s if isinstance(s, int) else size for s in shape], np.float32)
            for name, shape, size in zip(names, shapes, sizes, strict=False)
        }
        if len(set(sizes[: len(names)])) == 1:
            assert_as_engine(model, given)
            continue
        program = OnnxRuntimeDevice().compile(segment_of(model), Options())
        with pytest.raises(DeviceError):
            program.run(list(given.values()))


def segment_of(model: onnx.ModelProto) -> Model:
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        (segment,) = compiled.placement.segments
    return segment.model


@pytest.mark.parametrize("rows", [(3,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_sum_behind_a_product_of_bytes_leaves_it_one(rows: tuple[int, ...], zeros: bool) -> None:
    """Fused with the sum, the product would be of floats and bytes."""
    weights = random.integers(-128, 127, (8, 4)).astype(np.int8)
    held: dict[str, Any] = {"zeros": np.zeros(4, np.int8)} if zeros else {}
    nodes = [
        node("DequantizeLinear", ["weights", "scales", *held], ["w"], axis=1),
        node("QuantizeLinear", ["x", "scale", "zero"], ["bytes"]),
        node("DequantizeLinear", ["bytes", "scale", "zero"], ["reals"]),
        node("MatMul", ["reals", "w"], ["product"]),
        node("Add", ["product", "bias"], ["y"]),
    ]
    scales, bias = (random.uniform(0.01, 0.1, 4).astype(np.float32) for _ in range(2))
    scale, zero = np.float32(0.03), np.uint8(128)
    held.update(weights=weights, scales=scales, bias=bias, scale=scale, zero=zero)
    model = model_of(nodes, [tensor("x", FLOAT, [*rows, 8])], ["y"], **held)
    x = random.standard_normal((*rows, 8)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = onnxruntime.InferenceSession(model.SerializeToString(), options)
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        np.testing.assert_allclose(compiled(x), plain.run(None, {"x": x})[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("kind", ["ScatterElements", "ScatterND"])
def test_halves_are_combined_where_indices_say(kind: str, reduction: str) -> None:
    """ONNX Runtime has neither operator in float16."""
    half = TensorProto.FLOAT16
    nodes = [
        node(kind, ["x", "indices", "updates"], ["y"], reduction=reduction),
        node("NonZero", ["y"], ["places"]),
    ]
    indices = np.array([[2], [0], [3]]) if kind == "ScatterND" else np.array([[2, 0, 3], [1, 3, 2]])
    shape = (3, 3) if kind == "ScatterND" else (2, 3)
    inputs = [tensor("x", half, [4, 3]), tensor("updates", half, shape)]
    model = model_of(nodes, inputs, ["y", "places"], indices=indices)
    model.opset_import[0].version = 18
    x = random.integers(-1, 2, (4, 3)).astype(np.float16)
    updates = random.integers(-1, 2, shape).astype(np.float16)
    given = {"x": x, "updates": updates}
    expected, places = ReferenceEvaluator(model).run(None, given)
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        made = compiled.run(given)
    np.testing.assert_array_equal(made["y"], expected)
    np.testing.assert_array_equal(made["places"], places)
