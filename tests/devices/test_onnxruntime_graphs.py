"""The graphs that ONNX Runtime gets, which must run as fast as the original file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper, numpy_helper

import crosschip
from crosschip.devices.onnxruntime.saved import read
from crosschip.hal import Options
from crosschip.ir import Array, Model

FLOAT = TensorProto.FLOAT


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and its subgraphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def compiled_graphs(model: Model | ModelProto, **options: object) -> list[GraphProto]:
    """Return the graphs of a model that compiles to one segment."""
    from crosschip.devices.onnxruntime import OnnxRuntimeDevice

    with crosschip.compile(model, ["onnxruntime"], cache=False, **options) as compiled:  # type: ignore[arg-type]
        (segment,) = compiled.placement.segments
    saved = OnnxRuntimeDevice().compile(segment.model, Options()).save()
    assert saved is not None
    return [*graphs(ModelProto.FromString(read(saved)[0].proto).graph)]


def types(graph: GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def choosing(
    rows: int,
    padding: Sequence[int] = (1, 1),
    stride: int = 1,
    dilation: int = 1,
    bias: bool = True,
    twice: bool = False,
) -> ModelProto:
    """Return a choice between convolutions with an activation, and another branch."""
    random = np.random.default_rng(rows)
    weights = random.standard_normal((rows, rows, 3)).astype(np.float32)
    node = helper.make_node
    window: dict[str, Any] = {"pads": list(padding), "strides": [stride], "dilations": [dilation]}
    reads = ["x", "w", "b"] if bias else ["x", "w"]
    nodes = [node("Conv", reads, ["c"], **window), node("Relu", ["c"], ["then"])]
    if twice:
        nodes[1:] = [node("Conv", ["x", "w"], ["d"], **window), node("Add", ["c", "d"], ["then"])]
    given = helper.make_tensor_value_info("then", FLOAT, None)
    constants = [
        numpy_helper.from_array(weights, "w"),
        numpy_helper.from_array(random.standard_normal(rows).astype(np.float32), "b"),
    ]
    then_branch = helper.make_graph(nodes, "then", [], [given], constants)
    other = helper.make_tensor_value_info("else", FLOAT, None)
    else_branch = helper.make_graph([node("Neg", ["x"], ["else"])], "else", [], [other])
    graph = helper.make_graph(
        [node("If", ["first"], ["y"], then_branch=then_branch, else_branch=else_branch)],
        "choosing",
        [
            helper.make_tensor_value_info("first", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", FLOAT, ["n", rows, "length"]),
        ],
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


@given(
    st.sampled_from([1, 4, 8]),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.integers(1, 3),
    st.integers(1, 2),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_convolutions_of_rows_in_branches_are_what_the_engine_computes(
    rows: int,
    padding: tuple[int, int],
    stride: int,
    dilation: int,
    bias: bool,
    twice: bool,
    is_open: bool,
) -> None:
    model = choosing(rows, padding, stride, dilation, bias, twice)
    x = np.random.default_rng(1).standard_normal((2, rows, 9)).astype(np.float32)
    shapes = {} if is_open else {"x": x.shape}
    engine = onnxruntime.InferenceSession(model.SerializeToString())
    with crosschip.compile(model, ["onnxruntime"], shapes=shapes, cache=False) as compiled:
        for first in (True, False):
            inputs = {"first": np.array(first), "x": x}
            (expected,) = engine.run(None, inputs)
            np.testing.assert_allclose(compiled.run(inputs)["y"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("twice", [False, True])
def test_convolutions_of_rows_in_branches_stay_convolutions_of_rows(twice: bool) -> None:
    made = compiled_graphs(choosing(4, twice=twice), shapes={"x": (1, 4, 8)})
    branch = next(graph for graph in made if "Conv" in types(graph))
    assert types(branch) == (["Conv", "Conv", "Add"] if twice else ["Conv", "Relu"])


def test_rows_that_are_made_images_for_others_too_stay() -> None:
    model = choosing(4)
    (then_branch,) = [a.g for a in model.graph.node[0].attribute if a.name == "then_branch"]
    del then_branch.node[:]
    zero, axis = np.zeros(1, np.int64), np.array([2])
    then_branch.initializer.append(numpy_helper.from_array(axis, "axis"))
    then_branch.initializer.append(numpy_helper.from_array(zero, "zero"))
    node = helper.make_node
    then_branch.node.extend(
        [
            node("Unsqueeze", ["x", "axis"], ["image"]),
            node("Unsqueeze", ["w", "axis"], ["filter"]),
            node("Conv", ["image", "filter", "b"], ["c"], pads=[0, 1, 0, 1]),
            node("Squeeze", ["c", "axis"], ["s"]),
            node("ReduceMax", ["image", "axis"], ["m"], keepdims=0),
            node("Add", ["s", "m"], ["then"]),
        ]
    )
    model.opset_import[0].version = 18
    x = np.random.default_rng(1).standard_normal((1, 4, 9)).astype(np.float32)
    inputs = {"first": np.array(True), "x": x}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        np.testing.assert_allclose(compiled.run(inputs)["y"], expected, rtol=1e-5, atol=1e-5)


def test_images_that_are_padded_at_the_top_are_no_rows() -> None:
    """Their only row is padding, for which the bias remains."""
    model = choosing(4)
    (then_branch,) = [a.g for a in model.graph.node[0].attribute if a.name == "then_branch"]
    del then_branch.node[:]
    then_branch.initializer.append(numpy_helper.from_array(np.array([2]), "axis"))
    node = helper.make_node
    window: dict[str, Any] = {"pads": [1, 1, 0, 1], "strides": [2, 1]}
    then_branch.node.extend(
        [
            node("Unsqueeze", ["x", "axis"], ["image"]),
            node("Unsqueeze", ["w", "axis"], ["filter"]),
            node("Conv", ["image", "filter", "b"], ["c"], **window),
            node("Squeeze", ["c", "axis"], ["then"]),
        ]
    )
    x = np.random.default_rng(1).standard_normal((1, 4, 9)).astype(np.float32)
    inputs = {"first": np.array(True), "x": x}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        np.testing.assert_allclose(compiled.run(inputs)["y"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("rows", "inside"), [(4, True), (64, True), (128, False)])
def test_branches_have_constants_of_their_own_unless_they_are_large(
    rows: int, inside: bool
) -> None:
    """Outer constants are passed at each choice; 3 * 128 * 128 floats are 192 KiB."""
    model = choosing(rows)
    whole, *branches = compiled_graphs(model, shapes={"x": (1, rows, 8)})
    branch = next(graph for graph in branches if "Conv" in types(graph))
    weights = [t for t in branch.initializer if len(t.dims) == 3]
    others = [t for t in whole.initializer if len(t.dims) == 3]
    assert (len(weights), len(others)) == ((1, 0) if inside else (0, 1))


def strided(parts: int) -> ModelProto:
    """Return consecutive slices without strides."""
    node = helper.make_node
    numbers = [numpy_helper.from_array(np.array([i]), f"n{i}") for i in range(parts + 1)]
    nodes = [node("Slice", ["x", f"n{i}", f"n{i + 1}", "n0"], [f"s{i}"]) for i in range(parts)]
    nodes.append(node("Sum", [f"s{i}" for i in range(parts)], ["y"]))
    graph = helper.make_graph(
        nodes,
        "strided",
        [helper.make_tensor_value_info("x", FLOAT, [parts, 8])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        numbers,
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def test_slices_beside_each_other_are_cut_in_one_go() -> None:
    model = strided(5)
    (graph,) = compiled_graphs(model)
    assert "Split" in types(graph)
    assert "Slice" not in types(graph)
    x = np.arange(40, dtype=np.float32).reshape(5, 8)
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        np.testing.assert_array_equal(compiled(x), x.sum(axis=0, keepdims=True))


def extremes() -> st.SearchStrategy[Array]:
    elements = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0, 3e38, -3e38])
    return st.lists(elements, min_size=12, max_size=12).map(lambda e: np.array(e).reshape(3, 4))


@given(extremes(), st.sampled_from(["ReduceMax", "ReduceMin"]), st.sampled_from(["f2", "f4", "f8"]))
def test_extremes_are_nan_where_one_is_among_them(values: Array, node: str, type_: str) -> None:
    with np.errstate(over="ignore"):
        x = values.astype(type_)
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [helper.make_node(node, ["x", "axes"], ["y"], keepdims=0)],
        "extreme",
        [helper.make_tensor_value_info("x", dtype, [3, 4])],
        [helper.make_tensor_value_info("y", dtype, [3])],
        [numpy_helper.from_array(np.array([1]), "axes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    expected = (np.max if node == "ReduceMax" else np.min)(x, axis=1)
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        np.testing.assert_array_equal(compiled(x), expected)
