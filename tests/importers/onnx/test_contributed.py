"""Models with operators of ONNX Runtime's own, as its quantization tools write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import crosschip
from crosschip.importers import load
from crosschip.importers.onnx import contributed
from crosschip.importers.onnx.operators import TABLE
from crosschip.ir import Extension

Array = NDArray[Any]

ROOM = "com.microsoft"
X = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype(np.float32)


def node(kind: str, inputs: str, outputs: str, domain: str = ROOM, **attributes: Any) -> NodeProto:
    return helper.make_node(kind, inputs.split(), outputs.split(), domain=domain, **attributes)


def constants(dtype: type) -> dict[str, Array]:
    """Scales `s` and zero points `z` of the type, and weights."""
    random = np.random.default_rng(1)
    found: dict[str, Array] = {"s": np.array(0.05, np.float32), "t": np.array(0.1, np.float32)}
    found |= {"z": np.array(3, dtype), "u": np.array(7, dtype)}
    found["weights"] = random.integers(0, 100, (3, 5)).astype(dtype)
    found["bias"] = random.integers(-50, 50, 5).astype(np.int32)
    found["axis"] = np.array([1, -1])
    return found


def saved(
    nodes: Sequence[NodeProto],
    folder: Path,
    dtype: type = np.int8,
    known: Mapping[str, int] | None = None,
) -> Path:
    """Return a model file from `x` to `y` that declares the types of other values."""
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants(dtype).items()],
        value_info=[helper.make_tensor_value_info(n, c, None) for n, c in (known or {}).items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ROOM, 1)]
    model: ModelProto = helper.make_model(graph, ir_version=8, opset_imports=imports)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def check(path: Path, *, devices: str = "onnxruntime", steps: int = 0) -> None:
    """Compare crosschip's output for a file with that of ONNX Runtime by itself.

    Rounding may differ by some steps of the output's scale.
    """
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(["y"], {"x": X})[0]
    model = load(path)
    model.verify()
    with crosschip.compile(model, devices, cache=False) as compiled:
        found = compiled(X)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 + steps * 0.1)


FIRST = node("QuantizeLinear", "x s z", "a", "")
LAST = node("DequantizeLinear", "q t u", "y", "")
QUANTIZED = {
    "add": [node("QLinearAdd", "a s z a s z t u", "q")],
    "average pool": [node("QLinearAveragePool", "a s z t u", "q", kernel_shape=[2, 2])],
    "concat": [node("QLinearConcat", "t u a s z a s z", "q", axis=1)],
    "gemm": [
        node("QLinearGlobalAveragePool", "a s z s z", "b", channels_last=0),
        node("Flatten", "b", "c", "", axis=1),
        node("QGemm", "c s z weights t u bias t u", "q"),
    ],
    "leaky relu": [node("QLinearLeakyRelu", "a s z t u", "q", alpha=0.1)],
    "sigmoid and multiplication": [
        node("QLinearSigmoid", "a s z t u", "b"),
        node("QLinearMul", "a s z b t u t u", "q"),
    ],
    "softmax": [node("QLinearSoftmax", "a s z t u", "q", axis=-1, opset=13)],
}


@pytest.mark.parametrize("case", QUANTIZED)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantized_operators_are_standard_ones_of_quantized_operands(
    tmp_path: Path, case: str, dtype: type
) -> None:
    path = saved([FIRST, *QUANTIZED[case], LAST], tmp_path, dtype)
    model = load(path)
    assert not any(isinstance(operation, Extension) for operation in model.operations)
    *inside, last = model.operations
    assert {str(o.outputs[0].type.element_type) for o in inside} == {np.dtype(dtype).name}
    assert last.type == "DEQUANTIZE"
    # Between conversions, ONNX Runtime computes int8 as uint8 on x86, which rounds ties otherwise.
    check(path, steps=int(dtype is np.int8))
    for devices in ("openvino", "reference"):
        check(path, devices=devices, steps=1)


LEFT = node("QLinearGlobalAveragePool", "a s z t u", "q", channels_last=1)


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows how to express `LEFT`."""
    monkeypatch.delitem(TABLE._functions, f"{ROOM}.{LEFT.op_type}")


@pytest.mark.usefixtures("left")
def test_what_a_file_declares_counts_where_no_table_has_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contributed, "_ZERO_POINTS", {})
    path = saved([FIRST, LEFT, LAST], tmp_path, known={"q": TensorProto.INT8})
    assert [str(o.outputs[0].type.element_type) for o in load(path).operations][:2] == ["int8"] * 2
    check(path)


@pytest.mark.usefixtures("left")
def test_a_declaration_that_is_wrong_does_not_count_where_a_table_has(tmp_path: Path) -> None:
    path = saved([FIRST, LEFT, LAST], tmp_path)
    proto = ModelProto.FromString(path.read_bytes())
    wrong = helper.make_tensor_value_info("q", TensorProto.FLOAT, None)
    proto.graph.value_info.append(wrong)
    path.write_bytes(proto.SerializeToString())
    (extension,) = (o for o in load(path).operations if isinstance(o, Extension))
    assert str(extension.outputs[0].type.element_type) == "int8"


@pytest.mark.usefixtures("left")
def test_what_is_of_no_known_type_stays_inside_one_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contributed, "_ZERO_POINTS", {})
    nodes = [FIRST, LEFT, node("Reshape", "q axis", "r", ""), LAST]
    nodes[-1] = node("DequantizeLinear", "r t u", "d", "")
    nodes.append(node("Relu", "d", "y", ""))
    path = saved(nodes, tmp_path)
    model = load(path)
    assert [operation.type for operation in model.operations][1:] == [
        "onnx.com.microsoft.QLinearGlobalAveragePool+Reshape+DequantizeLinear",
        "RELU",
    ]
    (extension,) = (o for o in model.operations if isinstance(o, Extension))
    assert extension.reason == "the type of what passes between its parts is not known"
    check(path)


def test_operators_on_reals_and_places_make_reals(tmp_path: Path) -> None:
    for kind in (np.int64, np.int32):
        types = [
            helper.make_tensor_type_proto(TensorProto.FLOAT, None),
            helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(kind)), None),
        ]
        (found,) = contributed.guessed_types(node("Other", "a b", "c", "acme"), types)
        assert found is not None
        assert found.tensor_type.elem_type == TensorProto.FLOAT


@pytest.mark.parametrize("operator", ["Constant", "ConstantOfShape"])
def test_scales_that_nodes_make_have_a_type(tmp_path: Path, operator: str) -> None:
    """Exporters write constants as nodes; what is made of them is no opaque operation for it."""
    scale = numpy_helper.from_array(np.array([0.5], np.float32))
    scales = {
        "Constant": node("Constant", "", "k", "", value=scale),
        "ConstantOfShape": node("ConstantOfShape", "one", "k", "", value=scale),
    }
    nodes = [
        node("Constant", "", "one", "", value_ints=[1]),
        scales[operator],
        node("DynamicQuantizeLinear", "x", "a b c", ""),
        node("Transpose", "a", "rows", "", perm=[0, 1, 3, 2]),
        node("MatMulIntegerToFloat", "rows integers k b c", "m"),
        node("Neg", "m", "y", ""),
    ]
    path = saved(nodes, tmp_path)
    proto = ModelProto.FromString(path.read_bytes())
    integers = np.arange(20, dtype=np.int8).reshape(4, 5)
    proto.graph.initializer.append(numpy_helper.from_array(integers, "integers"))
    path.write_bytes(proto.SerializeToString())
    assert not any(isinstance(operation, Extension) for operation in load(path).operations)
    for devices in ("onnxruntime", "reference"):
        check(path, devices=devices)


@pytest.mark.parametrize("attributes", [{}, {"positive": 0}, {"positive": 1}])
def test_hashes_are_integers(tmp_path: Path, attributes: dict[str, Any]) -> None:
    code = TensorProto.UINT32 if attributes.get("positive", 1) else TensorProto.INT32
    hashing = node("MurmurHash3", "x", "y", **attributes)
    check(_alone(hashing, code, tmp_path))


def test_ways_through_tables_are_integers(tmp_path: Path) -> None:
    table = node("Reshape", "x sizes", "table", "")
    sizes = node("Constant", "", "sizes", "", value_ints=[6, -1])
    path = node("DynamicTimeWarping", "table", "y")
    check(_alone(path, TensorProto.INT32, tmp_path, sizes, table))


def _alone(last: NodeProto, code: int, folder: Path, *before: NodeProto) -> Path:
    """Return a file that hands out what its last node makes, of this type."""
    path = saved([*before, last], folder)
    proto = ModelProto.FromString(path.read_bytes())
    proto.graph.output[0].type.tensor_type.elem_type = code
    path.write_bytes(proto.SerializeToString())
    return path


def test_rows_of_a_table_by_indices_of_no_known_rank() -> None:
    """They stay with the engine that has the operator."""
    table = numpy_helper.from_array(np.arange(96, dtype=np.uint8).reshape(6, 16), "table")
    scales = numpy_helper.from_array(np.ones((6, 2), np.float32), "scales")
    reals = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    indices = helper.make_tensor_value_info("indices", TensorProto.INT64, None)
    kinds: dict[str, Any] = {"bits": 4, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    looked_up = node("GatherBlockQuantized", "table indices scales", "y", **kinds)
    graph = helper.make_graph([looked_up], "rows", [indices], [reals], [table, scales])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ROOM, 1)]
    model = helper.make_model(graph, ir_version=8, opset_imports=imports)
    array = np.array([[5, 0], [1, 2]])
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"indices": array})
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        np.testing.assert_array_equal(compiled(array), expected[0])
