"""Operators that the standard ones do not express stay, for devices that run ONNX's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, defs, helper, numpy_helper, parser

import crosschip
from crosschip.devices.onnxruntime.extensions import _newest
from crosschip.devices.reference import evaluator
from crosschip.importers import load
from crosschip.importers.onnx.operators import TABLE
from crosschip.ir import DeviceError, Error, Extension, Model, UnsupportedError
from crosschip.ops.definition.serialization import from_bytes, to_bytes

HEADER = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1, "local" : 1]>'
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5

LOOP = """g (float[2, 3] x, int64 n) => (float[2, 3] y, float[N, 2, 3] all)
    <bool go = {1}, float[3] w = {1, 2, 3}> {
    a = Relu(x)
    b, all = Loop<body =
        step (int64 i, bool c, float[2, 3] s) => (bool d, float[2, 3] t, float[2, 3] u)
        { d = Identity(c)  t = Add(s, w)  u = Mul(t, x) }>(n, go, a)
    y = Neg(b)
}"""
BRANCHES = """g (float[2, 3] x, bool c) => (float[M, 3] y) <float[1, 3] w = {1, 2, 3}> {
    y = If<then_branch = one () => (float[2, 3] p) { p = Add(x, w) },
           else_branch = two () => (float[4, 3] q) { q = Concat<axis = 0>(x, x) }>(c)
}"""
SEQUENCES = """g (float[2, 3] x) => (float[2, 3] y, float[6, 3] z) <int64 i = {1}> {
    a = Relu(x)
    s = SequenceConstruct(a, x)
    q = SequenceAt(s, i)
    aside = Exp(q)
    r = Neg(q)
    t = SequenceInsert(s, r)
    z = ConcatFromSequence<axis = 0>(t)
    b = Abs(q)
    y = Min(b, aside)
}"""
LOOP_OVER_A_SEQUENCE = """g (float[2, 3] x, int64 n) => (float[K, 3] y) <bool go = {1}> {
    e = SequenceEmpty<dtype = 1>()
    s = Loop<body = step (int64 i, bool c, seq(float[2, 3]) t) => (bool d, seq(float[2, 3]) u)
        { d = Identity(c)  u = SequenceInsert(t, x) }>(n, go, e)
    y = ConcatFromSequence<axis = 0>(s)
}"""
BRANCHES_OF_SEQUENCES = """g (float[2, 3] x, bool c) => (float[2, 3] y) <int64 i = {0}> {
    s = If<then_branch = one () => (seq(float[2, 3]) p) { p = SequenceConstruct(x, x) },
           else_branch = two () => (seq(float[2, 3]) q) { r = Neg(x)  q = SequenceConstruct(r) }>(c)
    y = SequenceAt(s, i)
}"""
FUNCTIONS_OF_SEQUENCES = """g (float[2, 3] x) => (float[4, 3] y) { s = local.f(x)  y = local.g(s) }
    <domain: "local", opset_import: ["" : 17]> f (v) => (r) { r = SequenceConstruct(v, v) }
    <domain: "local", opset_import: ["" : 17]> g (v) => (r) { r = ConcatFromSequence<axis = 0>(v) }
"""
FOREIGN_DOMAIN = """g (float[2, 3] x) => (float[2, 3] y)
    { a = Exp(x)  c = com.microsoft.UnfoldTensor<dim = 0, size = 1>(a)
      b = ReduceMax<axes = [2], keepdims = 0>(c)  y = Neg(b) }"""

Importing = Callable[[str], tuple[Model, Path]]


@pytest.fixture
def importing(tmp_path: Path) -> Importing:
    def run(graph: str) -> tuple[Model, Path]:
        proto = parser.parse_model(f"{HEADER} {graph}")
        path = tmp_path / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        return load(path), path

    return run


def oracle(path: Path, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def extensions(model: Model) -> list[Extension]:
    return [operation for operation in model.operations if isinstance(operation, Extension)]


CASES: dict[str, tuple[str, dict[str, NDArray[Any]], str, str]] = {
    "sequences": (
        SEQUENCES,
        {"x": X},
        "onnx.SequenceConstruct+SequenceAt+Neg+SequenceInsert+ConcatFromSequence",
        "what passes between its parts is no tensor",
    ),
    "loop over a sequence": (
        LOOP_OVER_A_SEQUENCE,
        {"x": X, "n": np.array(2)},
        "onnx.SequenceEmpty+Loop+ConcatFromSequence",
        "what passes between its parts is no tensor",
    ),
    "branches of sequences": (
        BRANCHES_OF_SEQUENCES,
        {"x": X, "c": np.array(False)},
        "onnx.If+SequenceAt",
        "what passes between its parts is no tensor",
    ),
    "functions of sequences": (
        FUNCTIONS_OF_SEQUENCES,
        {"x": X},
        "onnx.local.f+local.g",
        "what passes between its parts is no tensor",
    ),
    "foreign domain": (
        FOREIGN_DOMAIN,
        {"x": X},
        "onnx.com.microsoft.UnfoldTensor",
        "is not a standard operator",
    ),
}


DECLINED = {
    ("reference", "foreign domain"): "ONNX's own evaluator does not have it .*'UnfoldTensor'",
}
"""The reasons why a device alone does not run a case."""


@pytest.mark.parametrize("case", CASES)
def test_what_stays_runs_on_devices_that_know_onnx(importing: Importing, case: str) -> None:
    graph, inputs, kind, reason = CASES[case]
    model, path = importing(graph)
    model.verify()
    (extension,) = extensions(model)
    assert extension.type == kind
    with pytest.raises(UnsupportedError) as caught:
        crosschip.compile(model, devices="openvino", cache=False)
    assert kind in str(caught.value)
    assert extension.reason == reason
    expected = oracle(path, inputs)
    for devices in ("onnxruntime", "reference,onnxruntime", "reference"):
        if (devices, case) in DECLINED:
            with pytest.raises(UnsupportedError, match=DECLINED[devices, case]):
                crosschip.compile(model, devices=devices, cache=False)
            continue
        with crosschip.compile(model, devices=devices, cache=False) as compiled:
            found = compiled.run(inputs)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-6)


@pytest.mark.parametrize("device", ["onnxruntime", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_saving_and_the_cache(importing: Importing, tmp_path: Path, case: str, device: str) -> None:
    if (device, case) in DECLINED:
        return
    graph, inputs, *_ = CASES[case]
    model, path = importing(graph)
    again = from_bytes(to_bytes(model))
    assert str(again) == str(model)
    expected = oracle(path, inputs)
    for word in ("miss", "hit"):
        with crosschip.compile(again, devices=device, cache=tmp_path / "cache") as compiled:
            assert compiled.report.cache == word
            found = compiled.run(inputs)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-6)


def test_the_cache_tells_payloads_apart(importing: Importing, tmp_path: Path) -> None:
    inputs = {"x": X, "c": np.array(True)}
    results = []
    for graph in (BRANCHES, BRANCHES.replace("p = Add", "p = Sub")):
        model, path = importing(graph)
        with crosschip.compile(model, devices="onnxruntime", cache=tmp_path / "cache") as compiled:
            assert compiled.report.cache == "miss"
            results.append(compiled.run(inputs)["y"])
            np.testing.assert_array_equal(results[-1], oracle(path, inputs)["y"])
    assert not np.array_equal(results[0], results[1])


def test_branches_that_are_chosen(importing: Importing) -> None:
    for chosen in (1, 0):
        graph = BRANCHES.replace("bool c) =>", "float[1] unused) =>")
        graph = graph.replace("<float[1, 3]", f"<bool c = {{{chosen}}}, float[1, 3]")
        model, path = importing(graph)
        assert [o.type for o in model.operations] == ["ADD" if chosen else "CONCAT"]
        inputs = {"x": X, "unused": np.zeros(1, np.float32)}
        with crosschip.compile(model, devices="reference", cache=False) as compiled:
            np.testing.assert_array_equal(compiled.run(inputs)["y"], oracle(path, inputs)["y"])


@pytest.mark.parametrize("trips", [1, 4])
def test_loops_that_are_unrolled(importing: Importing, trips: int) -> None:
    graph = LOOP.replace("int64 n)", "float unused)")
    graph = graph.replace("<bool", f"<int64 n = {{{trips}}}, bool")
    model, path = importing(graph)
    assert not extensions(model)
    inputs = {"x": X, "unused": np.array(0, np.float32)}
    expected = oracle(path, inputs)
    with crosschip.compile(model, devices="reference", cache=False) as compiled:
        found = compiled.run(inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_functions_of_the_model(importing: Importing) -> None:
    model, path = importing("""g (float[2, 3] x) => (float[2, 3] y)
        { a = local.twice<factor = 3.0>(x)  y = local.twice(a) }
        <domain: "local", opset_import: ["" : 17]> twice <factor: float = 2.0> (v) => (r)
        { f = Constant<value_float: float = @factor>()  r = Mul(v, f) }""")
    assert [operation.type for operation in model.operations] == ["MUL", "MUL"]
    with crosschip.compile(model, devices="reference", cache=False) as compiled:
        np.testing.assert_array_equal(compiled.run({"x": X})["y"], oracle(path, {"x": X})["y"])


def test_functions_that_call_themselves_are_refused(importing: Importing) -> None:
    with pytest.raises(Error, match="nested over 32 deep"):
        importing("""g (float[2, 3] x) => (float[2, 3] y) { y = local.f(x) }
            <domain: "local", opset_import: ["" : 17, "local" : 1]> f (v) => (r)
            { r = local.f(v) }""")


def test_optional_values_that_are_not_there(tmp_path: Path) -> None:
    proto = parser.parse_model(f"""{HEADER} g (float[2, 3] x) => (float[2, 3] y)
        {{ h = OptionalHasElement(o)  m = Neg(x)  y = Where(h, x, m) }}""")
    held = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3])
    proto.graph.node.insert(0, helper.make_node("Optional", [], ["o"], type=held))
    proto.opset_import[0].version = 18
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    model = load(path)
    assert [o.type for o in extensions(model)] == ["onnx.Optional+OptionalHasElement"]
    with crosschip.compile(model, devices="reference,onnxruntime", cache=False) as compiled:
        np.testing.assert_array_equal(compiled.run({"x": X})["y"], oracle(path, {"x": X})["y"])


def test_sequences_beside_functions_that_call_themselves(importing: Importing) -> None:
    with pytest.raises(UnsupportedError, match="nested too deep"):
        importing("""g (float[2, 3] x) => (float[4, 3] y)
            { z = local.f(x)  s = SequenceConstruct(x, z)  y = ConcatFromSequence<axis = 0>(s) }
            <domain: "local", opset_import: ["" : 17, "local" : 1]> f (v) => (r)
            { r = local.f(v) }""")


@pytest.mark.usefixtures("opaque_branches")
@pytest.mark.parametrize("device", ["onnxruntime", "reference"])
def test_a_declaration_that_is_wrong_shows_when_it_runs(importing: Importing, device: str) -> None:
    model, _ = importing(BRANCHES.replace("float[M, 3] y", "float[7, 3] y"))
    with (
        crosschip.compile(model, devices=device, cache=False) as compiled,
        pytest.raises(DeviceError, match=r"declares float32\[7, 3\]; correct"),
    ):
        compiled.run({"x": X, "c": np.array(True)})


@pytest.fixture
def opaque_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """`If` stays as it is, as it does where its branches hand on what is no tensor."""
    monkeypatch.delitem(TABLE._functions, "If")


def turned(kind: int, folder: Path, then: str, rows: int = 2) -> tuple[Model, Path]:
    """`y` is the transpose: of `then` if `c`, else of `k`, which is 2 in the one branch, else 3."""
    dtype, shape = helper.tensor_dtype_to_np_dtype(kind), [rows, 3]

    def branch(number: int, read: str) -> GraphProto:
        made = helper.make_tensor_value_info(f"y{number}", kind, shape[::-1])
        constant = numpy_helper.from_array(np.full(shape, number).astype(dtype), "k")
        node = helper.make_node("Transpose", [read], [f"y{number}"])
        return helper.make_graph([node], f"b{number}", [], [made], [constant])

    inputs = [
        helper.make_tensor_value_info("x", kind, shape),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    node = helper.make_node("If", ["c"], ["y"])
    node.attribute.append(helper.make_attribute("then_branch", branch(2, then)))
    node.attribute.append(helper.make_attribute("else_branch", branch(3, "k")))
    made = helper.make_tensor_value_info("y", kind, shape[::-1])
    graph = helper.make_graph([node], "g", inputs, [made])
    imports = [helper.make_opsetid("", 22)]
    proto = helper.make_model(graph, ir_version=10, opset_imports=imports)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return load(path), path


@pytest.mark.usefixtures("opaque_branches")
def test_large_constants_of_one_name_in_branches(tmp_path: Path) -> None:
    model, path = turned(TensorProto.FLOAT, tmp_path, "k", rows=400)
    x = np.zeros((400, 3), np.float32)
    for word in ("miss", "hit"):
        with crosschip.compile(model, devices="onnxruntime", cache=tmp_path / "cache") as compiled:
            assert compiled.report.cache == word
            for flag in (True, False):
                inputs = {"x": x, "c": np.array(flag)}
                np.testing.assert_array_equal(compiled.run(inputs)["y"], oracle(path, inputs)["y"])


UNKNOWN_TO_NUMPY = {
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
}


@pytest.mark.usefixtures("opaque_branches")
@pytest.mark.parametrize("kind", UNKNOWN_TO_NUMPY)
@pytest.mark.parametrize("rows", [2, 0, 700])
def test_types_that_numpy_does_not_have(
    tmp_path: Path, kind: TensorProto.DataType, rows: int
) -> None:
    model, _ = turned(kind, tmp_path, "x", rows)
    dtype = UNKNOWN_TO_NUMPY[kind]
    x = np.random.default_rng(0).normal(size=(rows, 3)).astype(dtype)
    with crosschip.compile(model, devices="onnxruntime", cache=False) as compiled:
        for flag, expected in ((True, x.T), (False, np.full((3, rows), 3).astype(dtype))):
            found = compiled.run({"x": x, "c": np.array(flag)})["y"]
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("opaque_branches")
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1])
def test_types_that_share_bytes_are_declined(tmp_path: Path, kind: int) -> None:
    model, _ = turned(kind, tmp_path, "x")
    with pytest.raises(UnsupportedError, match=r"onnx\.If: 'x' is u?(int|float)4.*, which ONNX"):
        crosschip.compile(model, devices="onnxruntime", cache=False)


def one_node(tmp_path: Path, node: NodeProto, kind: int, rank: int | None) -> Model:
    """Return a node of opset 28 that reads `x`."""
    shape = None if rank is None else [None] * rank
    x = helper.make_tensor_value_info("x", kind, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph([node], "g", [x], [y])
    imports = [helper.make_opsetid("", 28)]
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, ir_version=14, opset_imports=imports).SerializeToString()
    )
    model = load(path)
    assert [operation.type for operation in model.operations] == [f"onnx.{node.op_type}"]
    return model


def test_operators_of_a_newer_opset_that_have_not_changed(tmp_path: Path) -> None:
    node = helper.make_node(
        "TfIdfVectorizer",
        ["x"],
        ["y"],
        mode="IDF",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        ngram_counts=[0],
        ngram_indexes=[0, 1],
        pool_int64s=[7, 9],
        weights=[0.5, 0.25],
    )
    model = one_node(tmp_path, node, TensorProto.INT64, 1)
    with crosschip.compile(model, devices="onnxruntime", cache=False) as compiled:
        np.testing.assert_array_equal(
            compiled(np.array([9, 3, 9])), np.array([0, 0.25], np.float32)
        )


@pytest.mark.skipif(
    _newest().opset == defs.onnx_opset_version(),
    reason="this ONNX Runtime knows all operators that onnx has",
)
def test_operators_of_a_newer_opset_that_have_changed(tmp_path: Path) -> None:
    node = helper.make_node("Einsum", ["x"], ["y"], equation="...->...")
    model = one_node(tmp_path, node, TensorProto.FLOAT, None)
    with pytest.raises(UnsupportedError, match=r"onnx.Einsum: is of opset 28, but ONNX Runtime"):
        crosschip.compile(model, devices="onnxruntime", cache=False)
    with crosschip.compile(model, devices="onnxruntime,reference", cache=False) as compiled:
        np.testing.assert_array_equal(compiled(X), X)


def test_what_the_evaluator_raises_is_the_devices_failure(importing: Importing) -> None:
    model, _ = importing(
        "g (float[2] x, int64 i) => (float[K] y) "
        "{ s = SequenceConstruct(x, x)  y = SequenceAt(s, i) }"
    )
    with (
        crosschip.compile(model, devices="reference", cache=False) as compiled,
        pytest.raises(DeviceError, match=r"^reference: onnx.SequenceConstruct.*: ONNX's evaluator"),
    ):
        compiled.run({"x": np.zeros(2, np.float32), "i": np.array(7)})


def test_the_evaluator_neither_writes_to_inputs_nor_hands_them_out(importing: Importing) -> None:
    model, _ = importing(
        "g (float[2] x) => (seq(float[2]) s, float[2] y) <int64 i = {0}> "
        "{ s = SequenceConstruct(x, x)  y = SequenceAt(s, i) }"
    )
    x = np.ones(2, np.float32)
    with crosschip.compile(model, devices="reference", cache=False) as compiled:
        found = compiled.run({"x": x})
    found["y"][:] = 2
    found["s"][0][:] = 3
    assert (x.tolist(), found["s"][1].tolist(), found["y"].tolist()) == ([1, 1], [1, 1], [2, 2])


def test_pictures_are_decoded_where_pillow_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = "g (uint8[N] x) => (uint8[H, W, 3] y) { y = ImageDecoder(x) }"
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {graph}')
    (tmp_path / "pictures.onnx").write_bytes(proto.SerializeToString())
    model = load(tmp_path / "pictures.onnx")
    with (
        crosschip.compile(model, devices="reference", cache=False) as compiled,
        pytest.raises(DeviceError, match=r"^reference: onnx\.ImageDecoder"),
    ):
        compiled.run({"x": np.zeros(3, np.uint8)})
    monkeypatch.setattr(evaluator, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match="Pillow, which is not installed"):
        crosschip.compile(model, devices="reference", cache=False)
