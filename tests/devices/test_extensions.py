"""Extension operations on ONNX Runtime, together with each other and with standard operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import crosschip
from crosschip.importers import load
from crosschip.ir import DeviceError, Extension, Model, Operation, UnsupportedError

X = np.array([[1, -2, 0.5], [np.nan, 3, 4]], np.float32)
ML = '"ai.onnx.ml" : 3'

PIPELINE = """g (float[N, 3] x) => (string[K] label, seq(map(string, float)) scores) {
    a = ai.onnx.ml.Imputer<imputed_value_floats = [0.5, 1.0, 2.0], replaced_value_float = nan>(x)
    b = ai.onnx.ml.Scaler<offset = [0.5, 1.0, 0.0], scale = [1.0, 2.0, 0.5]>(a)
    c = ai.onnx.ml.Normalizer<norm = "L2">(b)
    label, p = ai.onnx.ml.LinearClassifier<classlabels_strings = ["no", "yes"],
        coefficients = [1.0, 2.0, 3.0, -1.0, 0.0, 1.0], intercepts = [0.0, 1.0],
        post_transform = "SOFTMAX">(c)
    scores = ai.onnx.ml.ZipMap<classlabels_strings = ["no", "yes"]>(p)
}"""
MIXED = """g (float[N, 3] x, string[N, 1] s) => (int64[K] label, float[A, B] p)
    <float[3] w = {1, 2, 3}> {
    a = Mul(x, w)
    h = ai.onnx.ml.OneHotEncoder<cats_strings = ["red", "green"], zeros = 1>(s)
    two = Constant<value_ints = [-1, 2]>()
    e = Reshape(h, two)
    b = ai.onnx.ml.Scaler<offset = [0.5, 1.0, 0.0], scale = [1.0, 2.0, 0.5]>(a)
    c = Concat<axis = 1>(b, e)
    label, q = ai.onnx.ml.TreeEnsembleClassifier<classlabels_int64s = [0, 1], class_ids = [0, 1],
        class_nodeids = [1, 2], class_treeids = [0, 0], class_weights = [1.0, 1.0],
        nodes_falsenodeids = [2, 0, 0], nodes_featureids = [3, 0, 0],
        nodes_hitrates = [1.0, 1.0, 1.0], nodes_missing_value_tracks_true = [0, 0, 0],
        nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_nodeids = [0, 1, 2],
        nodes_treeids = [0, 0, 0], nodes_truenodeids = [1, 0, 0],
        nodes_values = [0.5, 0.0, 0.0]>(c)
    d = Neg(q)
    p = Relu(d)
}"""
TWO_DIALECTS = """g (float[N, 3] x) => (float[N, 3] y, string[N, 3] z) {
    a = Neg(x)  s = Cast<to = 8>(a)  b = ai.onnx.ml.Scaler<offset = [0.0], scale = [2.0]>(a)
    t = Cast<to = 1>(s)  c = Relu(b)  y = Add(c, t)  z = Cast<to = 8>(y)
}"""
TEXT = np.array([["red"], ["blue"]], object)


def imported(graph: str, folder: Path, opset: int = 21) -> tuple[Model, Path]:
    header = f'<ir_version: 10, opset_import: ["" : {opset}, {ML}, "local" : 1]>'
    return written(parser.parse_model(f"{header} {graph}".replace("= nan", "= 7.5")), folder)


def written(proto: ModelProto, folder: Path) -> tuple[Model, Path]:
    for node in proto.graph.node:
        for attribute in node.attribute:
            if attribute.name == "replaced_value_float":
                attribute.f = float("nan")
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return load(path), path


def oracle(path: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            assert found[name].dtype == value.dtype
            np.testing.assert_allclose(found[name], value, rtol=1e-6)
        elif isinstance(value, np.ndarray):
            assert found[name].tolist() == value.tolist()
        else:
            assert found[name] == value


def check(model: Model, path: Path, inputs: Mapping[str, Any], folder: Path, segments: int) -> None:
    """Assert that a model, compiled and cached, agrees with ONNX Runtime, in this many segments."""
    expected = oracle(path, inputs)
    for word in ("miss", "hit"):
        with crosschip.compile(model, "onnxruntime", cache=folder / "cache") as compiled:
            assert compiled.report.cache == word
            assert len(compiled.placement.segments) == segments
            for _ in range(2):
                same(compiled.run(inputs), expected)


def test_a_pipeline_is_one_segment(tmp_path: Path) -> None:
    model, path = imported(PIPELINE, tmp_path)
    assert len(model.operations) == 5
    check(model, path, {"x": X}, tmp_path, 1)


def test_standard_operations_and_others_are_one_segment(tmp_path: Path) -> None:
    model, path = imported(MIXED, tmp_path)
    kinds = {isinstance(operation, Extension) for operation in model.operations}
    assert kinds == {True, False}
    check(model, path, {"x": X[:1], "s": TEXT[:1]}, tmp_path, 1)
    # The encoder knows no blue, which it makes zeros of.
    check(model, path, {"x": X[::-1].copy(), "s": TEXT}, tmp_path / "again", 1)


@pytest.mark.parametrize(("opset", "segments"), [(21, 1), (13, 4)])
def test_what_means_something_else_in_another_opset_stays_apart(
    tmp_path: Path, opset: int, segments: int
) -> None:
    model, path = imported(TWO_DIALECTS, tmp_path, opset)
    check(model, path, {"x": np.array([[1, -2, 0.5]], np.float32)}, tmp_path, segments)


def test_names_and_large_constants_do_not_meet(tmp_path: Path) -> None:
    """Two operations with equal inner names, and one with names like ours."""

    def branch(number: int, shift: float) -> Any:
        made = helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, None)
        constant = numpy_helper.from_array(np.full((400, 3), number + shift, np.float32), "k")
        node = helper.make_node("Add", ["k", "input0"], [f"y{number}"])
        return helper.make_graph([node], f"b{number}", [], [made], [constant])

    nodes = [helper.make_node("Neg", ["input0"], ["value0"])]
    for name, shift in (("constant0", 0.25), ("value1", 0.5)):
        node = helper.make_node("If", ["c"], [name])
        node.attribute.append(helper.make_attribute("then_branch", branch(1, shift)))
        node.attribute.append(helper.make_attribute("else_branch", branch(2, shift)))
        nodes.append(node)
    nodes.append(helper.make_node("Sum", ["value0", "constant0", "value1"], ["y"]))
    proto = helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [
                helper.make_tensor_value_info("input0", TensorProto.FLOAT, [400, 3]),
                helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            ],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [400, 3])],
        ),
        ir_version=10,
        opset_imports=[helper.make_opsetid("", 21)],
    )
    model, path = written(proto, tmp_path)
    x = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    for flag in (True, False):
        inputs = {"input0": x, "c": np.array(flag)}
        check(model, path, inputs, tmp_path / str(flag), 1)


def test_a_wrong_declaration_inside_a_segment_shows_when_it_runs(tmp_path: Path) -> None:
    """A standard operation relies on the declared sizes."""
    graph = """g (float[1, 4] x) => (int64[2] y) {
        a = ai.onnx.ml.Scaler<offset = [0.0], scale = [2.0]>(x)  b = Neg(a)  y = Shape(b) }"""
    header = f'<ir_version: 10, opset_import: ["" : 21, {ML}]>'
    proto = parser.parse_model(f"{header} {graph}")
    declared = helper.make_tensor_value_info("a", TensorProto.FLOAT, [7, 4])
    proto.graph.value_info.append(declared)
    proto.graph.output.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, None))
    model, _ = written(proto, tmp_path)
    with (
        crosschip.compile(model, "onnxruntime", cache=False) as compiled,
        pytest.raises(DeviceError, match=r"'a' is float32\[1, 4\], but the model declares"),
    ):
        compiled.run({"x": np.zeros((1, 4), np.float32)})


def changed(model: Model, kind: str, change: Callable[[ModelProto], None]) -> Model:
    """Return the model with another payload for its operations of a type."""

    def other(operation: Operation) -> Operation:
        if not isinstance(operation, Extension) or operation.type != kind:
            return operation
        payload = ModelProto.FromString(operation.payload)
        change(payload)
        return Extension(
            operation.name,
            operation.inputs,
            operation.outputs,
            type=operation.type,
            payload=payload.SerializeToString(),
            declared=operation.declared,
        )

    return Model(model.name, model.inputs, list(map(other, model.operations)), model.outputs)


def test_functions_of_another_opset_are_declined(tmp_path: Path) -> None:
    """ONNX Runtime silently reads them in the opset of the model."""
    function = """<domain: "local", opset_import: ["" : 21]> f (v) => (r)
        { s = Softmax<axis = 1>(v)  r = SequenceConstruct(s) }"""
    graph = """g (float[1, 2, 2] x) => (float[1, 2, 2] y) <int64 i = {0}>
        { s = local.f(x)  y = SequenceAt(s, i) }"""
    model, path = imported(f"{graph} {function}", tmp_path)
    x = np.array([[[1, 2], [3, 5]]], np.float32)
    check(model, path, {"x": x}, tmp_path, 1)

    def older(payload: ModelProto) -> None:
        payload.functions[0].opset_import[0].version = 11

    model = changed(model, "onnx.local.f+SequenceAt", older)
    with pytest.raises(UnsupportedError, match="functions that are not of its own opset 21"):
        crosschip.compile(model, "onnxruntime", cache=False)
    with pytest.raises(UnsupportedError, match="evaluator has Softmax from opset 13 on"):
        crosschip.compile(model, "reference", cache=False)


def test_operators_of_two_versions_of_a_domain_name_the_operation(tmp_path: Path) -> None:
    def older(payload: ModelProto) -> None:
        for entry in payload.opset_import:
            entry.version = 1 if entry.domain == "ai.onnx.ml" else entry.version

    model = changed(imported(PIPELINE, tmp_path)[0], "onnx.ai.onnx.ml.Normalizer", older)
    with pytest.raises(DeviceError, match=r"Normalizer 'c' is of version 1 of 'ai\.onnx\.ml'"):
        crosschip.compile(model, "onnxruntime", cache=False)
    with crosschip.compile(model, "onnxruntime,reference", cache=False) as compiled:
        where = {decision.name: decision.device for decision in compiled.placement.decisions}
    assert where.pop("c") == "reference"
    assert set(where.values()) == {"onnxruntime"}
