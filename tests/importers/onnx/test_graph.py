"""The parts of a graph that are kept, and those refused, with a message of where and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TypeProto, helper, numpy_helper, parser

import crosschip
from crosschip.importers import load
from crosschip.ir import Error, Model, ModelFileError, UnsupportedError

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'

Importing = Callable[[str | ModelProto], Model]


@pytest.fixture
def importing(tmp_path: Path) -> Importing:
    """Imports a graph in ONNX's textual form, or a model."""

    def run(graph: str | ModelProto) -> Model:
        path = tmp_path / "model.onnx"
        proto = parser.parse_model(f"{HEADER} {graph}") if isinstance(graph, str) else graph
        path.write_bytes(proto.SerializeToString())
        model = load(path)
        model.verify()
        return model

    return run


def test_names_are_kept(importing: Importing) -> None:
    model = importing("""
        gate (float[N, 3] x) => (float[N, 3] y, float[N, 3] z)
        { [first] h = Relu(x)  [second] y = Sigmoid(h)  z = Mul(x, y) }
    """)
    assert model.name == "model", "the file's name, not the graph's"
    assert list(model.inputs) == ["x"]
    assert list(model.outputs) == ["y", "z"]
    assert [operation.name for operation in model.operations] == ["first", "second", "z"]
    assert [operation.outputs[0].name for operation in model.operations] == ["h", "y", "z"]


def test_operations_of_one_name_are_told_apart(importing: Importing) -> None:
    model = importing("""
        g (float[3] x) => (float[3] y)
        { [same] a = Relu(x)  [same] b = Relu(a)  [same] y = Clip(b)  [same_1] z = Relu(y) }
    """)
    names = [operation.name for operation in model.operations]
    assert names[0] == "same"
    assert len(set(names)) == len(names)


def test_a_node_of_several_operations_names_its_output(importing: Importing) -> None:
    model = importing("""
        g (float[2, 3] x, float[3, 4] w) => (float[2, 4] y) { [gemm] y = Gemm<alpha = 2.0>(x, w) }
    """)
    assert [operation.name for operation in model.operations] == ["gemm", "gemm.1"]
    assert [o.name for operation in model.operations for o in operation.outputs] == [
        "gemm.mat_mul",
        "y",
    ]


def test_names_that_are_not_text(importing: Importing) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[3] x) => (float[3] y) {{ [QQ] y = Relu(x) }}")
    data = proto.SerializeToString().replace(b"QQ", b"\xff\xfe")
    model = importing(ModelProto.FromString(data))
    assert model.operations[0].name == "\\xff\\xfe"


def test_sizes_of_inputs(importing: Importing) -> None:
    model = importing("g (float[N, 3, H, N] x, float[H] h) => (float y) { y = Identity(x) }")
    (n, three, height, again), (other,) = (
        operand.type.shape or () for operand in model.inputs.values()
    )
    assert three == 3
    assert n == again != height == other


@pytest.mark.parametrize("odd", ["", "?", "-", "  "])
def test_sizes_without_a_name_are_all_different(importing: Importing, odd: str) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[A, B] x) => (float y) {{ y = Identity(x) }}")
    for dimension in proto.graph.input[0].type.tensor_type.shape.dim:
        dimension.dim_param = odd
    first, second = importing(proto).inputs["x"].type.shape or ()
    assert str(first) == str(second) == "?"
    assert first != second


def test_sizes_with_odd_names_stay_apart(importing: Importing) -> None:
    names = ["a b", "a*b", "3", "a_b", "?x", "a b"]
    proto = parser.parse_model(f"{HEADER} g (float[A] x) => (float y) {{ y = Identity(x) }}")
    shape = proto.graph.input[0].type.tensor_type.shape
    del shape.dim[:]
    for name in names:
        shape.dim.add().dim_param = name
    sizes = importing(proto).inputs["x"].type.shape or ()
    assert sizes[0] == sizes[5]
    assert len(set(sizes)) == 5
    assert all(str(size).isidentifier() for size in sizes)


def test_negative_and_missing_sizes_are_unknown(importing: Importing) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[2, 3] x) => (float y) {{ y = Identity(x) }}")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    proto.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    assert str(importing(proto).inputs["x"].type) == "float32[?, ?]"
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    assert importing(proto).inputs["x"].type.shape is None


def test_initializers_that_are_inputs_too_are_constants(importing: Importing) -> None:
    model = importing("""
        g (float[2] x, float[2] w) => (float[2] y)
        <float[2] w = {1, 2}> { y = Add(x, w) }
    """)
    assert list(model.inputs) == ["x"]
    assert [operand.name for operand in model.constants] == ["w"]


def test_inputs_and_constants_as_outputs(importing: Importing) -> None:
    model = importing("""
        g (float[2] x) => (float[2] x, float[2] w, float[2] same)
        <float[2] w = {1, 2}> { same = Identity(x) }
    """)
    assert model.outputs["x"] is model.outputs["same"] is model.inputs["x"]
    np.testing.assert_array_equal(model.outputs["w"].value, np.array([1, 2], np.float32))
    assert not model.operations


def test_constants_come_through_identity_and_cast(importing: Importing) -> None:
    model = importing("""
        g (float[2, 3] x) => (float[3, 2] y)
        <int32[2] size = {3, 2}>
        { same = Identity(size)  shape = Cast<to = 7>(same)  y = Reshape(x, shape) }
    """)
    assert [operation.type for operation in model.operations] == ["RESHAPE"]
    assert model.outputs["y"].type.static_shape == (3, 2)


@pytest.mark.parametrize("opset", [7, 28])
def test_first_and_newest_opset(importing: Importing, opset: int) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[3] x) => (float[3] y) {{ y = Relu(x) }}")
    proto.opset_import[0].version = opset
    assert len(importing(proto).operations) == 1


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_the_standard_domain_has_two_names(importing: Importing, domain: str) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[3] x) => (float[3] y) {{ y = Relu(x) }}")
    proto.opset_import[0].domain = proto.graph.node[0].domain = domain
    assert len(importing(proto).operations) == 1


@pytest.mark.parametrize(("opset", "node"), [(1, "Not"), (6, "Relu"), (6, "Abs")])
def test_older_opsets_whose_operators_are_the_same(
    importing: Importing, opset: int, node: str
) -> None:
    kind = "bool" if node == "Not" else "float"
    proto = parser.parse_model(f"{HEADER} g ({kind}[3] x) => ({kind}[3] y) {{ y = {node}(x) }}")
    proto.opset_import[0].version = opset
    assert [operation.type for operation in importing(proto).operations] == [node.upper()]


@pytest.mark.parametrize("opset", [0, 5, 29, 2**40])
def test_other_opsets_are_refused(importing: Importing, opset: int) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[3] x) => (float[3] y) {{ y = Relu(x) }}")
    proto.opset_import[0].version = opset
    with pytest.raises(UnsupportedError, match=rf"model.onnx: uses opset {opset}, but 7 to 28"):
        importing(proto)


def test_a_missing_opset_is_refused(importing: Importing) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[3] x) => (float[3] y) {{ y = Relu(x) }}")
    proto.opset_import[0].domain = "com.example"
    with pytest.raises(ModelFileError, match="does not say which opset it uses"):
        importing(proto)


def test_all_unknown_operators_are_listed_once(importing: Importing) -> None:
    proto = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
        g (float[3] x) => (float[3] y)
        { a = Foo(x)  b = Bar(a)  c = Foo(b)  d = Relu(c)  y = com.example.Relu(d) }
    """)
    with pytest.raises(UnsupportedError, match=r"Bar \(1\), Foo \(2\), com.example.Relu \(1\)$"):
        importing(proto)


def test_nodes_may_be_out_of_order(importing: Importing) -> None:
    """As ONNX Runtime's conversion to float16 leaves them, also in graphs that nodes hold."""
    model = importing("""g (float[3] x, bool c) => (float[3] y) {
        y = Add(b, x)
        b = If(c) <then_branch = then () => (float[3] t) { t = Neg(u)  u = Exp(a) },
                   else_branch = else () => (float[3] e) { e = Identity(a) }>
        a = Abs(x)
    }""")
    x = np.array([-1, 2, 0.5], np.float32)
    with crosschip.compile(model, devices=["reference"], cache=False) as compiled:
        for condition, between in ((True, -np.exp(np.abs(x))), (False, np.abs(x))):
            y = compiled.run({"x": x, "c": np.array(condition)})["y"]
            np.testing.assert_allclose(y, between + x, rtol=1e-6)


CONV = "g (float[1, 2, 4, 4] x, float[2, 2, 3, 3] w) => (float y)"
REFUSED = {
    "g (float[3] x) => (float[3] y) { y = Add(h, x)  h = Relu(y) }":
        "node 0 (Add 'y'): 'h' is read, but nothing before makes it",
    "g (float[3] x) => (float[3] y) { y = Relu(x)  y = Exp(x) }":
        "node 1 (Exp 'y'): makes 'y', which is there already",
    "g (float[3] x) => (float[3] x) { [n] x = Relu(x) }":
        "node 0 (Relu 'n'): makes 'x', which is there already",
    "g (float[3] x) => (float[3] y) <float[3] y = {1, 2, 3}> { y = Relu(x) }":
        "makes 'y', which is there already",
    "g (float[3] x) => (float[3] z) { y = Relu(x) }":
        "output 'z': 'z' is read, but nothing before makes it",
    "g (float[3] x, float[2] x) => (float[3] y) { y = Relu(x) }": "two inputs called 'x'",
    "g (float[3] x) => (float[3] y, float[3] y) { y = Relu(x) }": "two outputs called 'y'",
    "g (float[3] x) => () { y = Relu(x) }": "has no outputs",
    "g (float[3] x) => (float[3] y) { y = Relu() }": "node 0 (Relu 'y'): input 0 is required",
    "g (float[3] x) => (float[3] y) { y = Add(x, ) }": "input 1 is required",
    "g (float[3] x) => (float[3] y) { y = Concat(x) }": "attribute 'axis' is required",
    "g (float[3] x) => (float[3] y) { y = Concat<axis = 0.5>(x) }":
        "attribute 'axis' is of type FLOAT, not INT",
    "g (float[3] x) => (float[3] y) { y = Concat<axis = 1>(x) }": "axis: 1 is not in [-1, 1)",
    "g (float[3] x, int64[3] i) => (float[3] y) { y = Add(x, i) }":
        "ADD.input1: is int64, but must be float32",
    "g (float[4, 6] x) => (float[1] y) { y = Reshape(x, s) }": "'s' is read",
    "g (float[4, 6] x) => (float y) <int64[1] s = {5}> { y = Reshape(x, s) }":
        "[5] does not hold the input's 24 elements",
    "g (float[4, 6] x) => (float y) { y, z = Split<axis = 2>(x) }": "axis: 2 is not in [-2, 2)",
    "g (float[5] x) => (float y) { y, z = Split(x) }": "cannot be split into 2 equal parts",
    "g (float[5] x) => (float y) <int64[2] s = {2, 3}> { y = Split(x, s) }":
        "is split into 2 parts, but has 1 outputs",
    "g (float[4] x) => (float y) { y = Flatten<axis = 2>(x) }": "axis: 2 is not in [-1, 1)",
    f"{CONV} {{ y = Conv<strides = [0, 1]>(x, w) }}":
        "strides [0, 1] are not 2 numbers from 1 up",
    f"{CONV} {{ y = Conv<pads = [1, 1]>(x, w) }}":
        "pads [1, 1] are not 4 numbers from 0 up",
    f"{CONV} {{ y = Conv<group = 0>(x, w) }}":
        "group 0 is not a number from 1 up",
    f"{CONV} {{ y = Conv<kernel_shape = [2, 2]>(x, w) }}":
        "kernel_shape is [2, 2], but the filter's [3, 3]",
    "g (float[1, 2, 4, 4] x) => (float y) { y = MaxPool(x) }":
        "attribute 'kernel_shape' is required",
    "g (float[1, 2, 4, 4] x) => (float y) { y = Resize(x) }": "neither scales nor sizes are given",
    "g (float[1, 2, 4, 4] x) => (float y) <float[3] s = {1, 2, 2}> { y = Resize(x, , s) }":
        "'s' are not numbers for 4 axes",
    "g (float[1, 2, 4, 4] x) => (float y) <float[4] s = {1, 1, 0, 2}> { y = Resize(x, , s) }":
        "are not positive",
}  # fmt: skip


@pytest.mark.parametrize(("graph", "message"), REFUSED.items())
def test_broken_graphs(importing: Importing, graph: str, message: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        importing(graph)
    assert "model.onnx: " in str(caught.value)
    assert message in str(caught.value)


REFUSED_BY_ONNX = {
    "g (float[2] x) => (float y) { y = Relu<secret = 1>(x) }":
        "attribute 'secret' is not known in opset 17",
    "g (float[1, 2] x) => (float y) { y = Squeeze<axes = [0]>(x) }":
        "attribute 'axes' is not known in opset 17",
}  # fmt: skip


@pytest.mark.parametrize(("graph", "message"), REFUSED_BY_ONNX.items())
def test_what_cannot_be_expressed(importing: Importing, graph: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        importing(graph)
    assert "model.onnx: " in str(caught.value)
    assert message in str(caught.value)


def test_normalization_in_training_mode_is_refused(importing: Importing) -> None:
    node: NodeProto = helper.make_node("BatchNormalization", list("xssss"), ["y", "mean", "var"])
    proto = parser.parse_model(
        f"{HEADER} g (float[1, 2] x) => (float y) <float[2] s = {{1, 2}}> {{ y = Relu(x) }}"
    )
    proto.graph.node[0].CopyFrom(node)
    assert len(importing(proto).operations) == 1
    proto.opset_import[0].version = 9
    with pytest.raises(UnsupportedError, match="number of outputs 3 cannot be expressed, only 1"):
        importing(proto)
    del proto.graph.node[0].output[1:]
    assert len(importing(proto).operations) == 1


def test_errors_name_a_node_without_a_name_by_what_it_makes(importing: Importing) -> None:
    with pytest.raises(ModelFileError, match=r"node 1 \(Add 'sum'\): input 1 is required"):
        importing("g (float[2] x) => (float[2] sum) { h = Relu(x) sum = Add(h) }")
    model = importing("g (float[2] x) => (float[2] y) { h = Relu(x) sum = Add(h, x) y = Exp(sum) }")
    assert [operation.name for operation in model.operations] == ["h", "sum", "y"]


def test_a_model_in_memory_has_its_graphs_name() -> None:
    proto = parser.parse_model(f"{HEADER} gate (float[3] x) => (float[3] y) {{ y = Relu(x) }}")
    assert load(proto).name == "gate"
    proto.graph.name = ""
    assert load(proto).name == "model"


def test_batch_normalization_in_training_mode_is_a_warning(
    importing: Importing, caplog: pytest.LogCaptureFixture
) -> None:
    parameters = "<float[2] s = {1, 1}, float[2] m = {0, 0}>"
    node = "BatchNormalization<training_mode = 1>"
    importing(
        f"g (float[4, 2] x) => (float[4, 2] e) {parameters} {{ a, a1, a2 = {node}(x, s, m, m, s) "
        f"b, b1, b2 = {node}(a, s, m, m, s) [third] c, c1, c2 = {node}(b, s, m, m, s) "
        f"d, d1, d2 = {node}(c, s, m, m, s) e, e1, e2 = {node}(d, s, m, m, s) }}"
    )
    (warning,) = caplog.messages
    assert warning.endswith(": 'a', 'b', 'third' and 2 more; call model.eval() and export it again")
    caplog.clear()
    importing(
        f"g (float[4, 2] x) => (float[4, 2] y) {parameters} "
        "{ y = BatchNormalization(x, s, m, m, s) }"
    )
    assert caplog.messages == []


def test_dropout_in_training_mode_is_a_warning(
    importing: Importing, caplog: pytest.LogCaptureFixture
) -> None:
    importing(
        "g (float[4, 2] x) => (float[4, 2] y) <float r = {0.5}, bool t = {1}> "
        "{ y = Dropout(x, r, t) }"
    )
    assert "in training mode" in caplog.text
    assert "'y'; call model.eval()" in caplog.text


def test_inputs_that_are_declared_as_nothing_are_refused(importing: Importing) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[3] x) => (float[3] y) {{ y = Relu(x) }}")
    for wrong in (
        TypeProto(sparse_tensor_type=TypeProto.SparseTensor(elem_type=1)),
        TypeProto(opaque_type=TypeProto.Opaque(domain="d", name="n")),
        TypeProto(),
    ):
        proto.graph.input[0].type.CopyFrom(wrong)
        with pytest.raises(UnsupportedError, match="input 'x': is not declared as a tensor, seq"):
            importing(proto)


def test_what_is_no_tensor_is_read_by_no_standard_operator(importing: Importing) -> None:
    with pytest.raises(ModelFileError, match=r"Relu.*: RELU.input: takes .*, not object"):
        importing("g (seq(float[3]) x) => (float[3] y) { y = Relu(x) }")


@pytest.mark.parametrize("declared", ["2, 3", "1, n", "n"])
def test_shapes_of_outputs_are_those_that_operators_make(
    importing: Importing, declared: str
) -> None:
    """Exporters declare shapes that their own conversions have changed; engines do not care."""
    model = importing(f"g (float[2, 2] x) => (float[{declared}] y) {{ y = Relu(x) }}")
    assert model.outputs["y"].type.shape == (2, 2)


def test_nodes_without_outputs_are_refused(importing: Importing) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[3] x) => (float[3] x) {{ y = Relu(x) }}")
    del proto.graph.node[0].output[:]
    with pytest.raises(ModelFileError, match=r"node 0 \(Relu ''\): has no outputs"):
        importing(proto)


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_weights(importing: Importing, indices: object) -> None:
    proto = parser.parse_model(f"{HEADER} g (float[2, 3] x) => (float y) {{ y = Add(x, w) }}")
    values = numpy_helper.from_array(np.array([3, 4], np.float32), "w")
    places = numpy_helper.from_array(np.array(indices))
    sparse = helper.make_sparse_tensor(values, places, [2, 3])
    proto.graph.sparse_initializer.append(sparse)
    (weights,) = importing(proto).constants
    np.testing.assert_array_equal(weights.value, np.array([[0, 3, 0], [0, 0, 4]], np.float32))
    for dims, error in (([2, 2], ModelFileError), ([2, -3], ModelFileError), ([2**40], Error)):
        proto.graph.sparse_initializer[0].dims[:] = dims
        with pytest.raises(error, match=r"sparse initializer 'w'|constants grow by"):
            importing(proto)


@pytest.mark.parametrize("content", [b"", b"\0", b"\xff" * 99, b"not a model", b"{}" * 5000])
def test_files_that_are_no_models(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no_model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"no_model\.onnx: .*export or download it again"):
        load(path)


def test_a_folder_is_not_recognized(tmp_path: Path) -> None:
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(ModelFileError, match=r"folder\.onnx"):
        load(tmp_path / "folder.onnx")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    from crosschip.importers import onnx

    with pytest.raises(ModelFileError, match=r"gone\.onnx: cannot be read: No such file"):
        onnx.load(tmp_path / "gone.onnx")
