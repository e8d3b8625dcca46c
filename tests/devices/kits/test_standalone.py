"""Segments as ONNX files, checked by ONNX's evaluator and checker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from crosschip.devices.kits.onnx.standalone import Dialect, fingerprint, unwritable, write
from crosschip.ir import Array, Builder, ElementType, Model, Quantization, TensorType
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.activation import Gelu, Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.attention import Attention
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.normalization import RMSNormalization
from crosschip.ops.standard.sampling import GridSample
from crosschip.ops.standard.unary import IsInf

TYPES = frozenset(ElementType)
NEWEST = Dialect(types=TYPES)
FLOAT32 = ElementType.FLOAT32


def keep(model: onnx.ModelProto) -> None:
    """Leave the model unchanged."""


def written(model: Model, dialect: Dialect, folder: Path) -> onnx.ModelProto:
    path = folder / "model.onnx"
    write(model, dialect, keep).model.store(path)
    onnx.checker.check_model(path, full_check=True)
    return onnx.load(path)


def evaluated(proto: onnx.ModelProto, *inputs: Array) -> list[Array]:
    names = [value.name for value in proto.graph.input]
    outputs: Any = ReferenceEvaluator(proto).run(None, dict(zip(names, inputs, strict=True)))
    return list(outputs)


def weighted(weights: Array, name: str = "m") -> Model:
    b = Builder(name)
    x = b.input("x", TensorType(FLOAT32, weights.shape))
    b.output("y", b.add(Relu, b.add(Add, x, b.constant(weights)), name=f"{name}/relu"))
    return b.build()


def test_constants_are_inside(tmp_path: Path) -> None:
    weights = np.arange(-500, 500, dtype=np.float32)
    proto = written(weighted(weights), NEWEST, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    (y,) = evaluated(proto, np.ones(1000, np.float32))
    np.testing.assert_array_equal(y, np.maximum(weights + 1, 0))


def test_messages_about_nodes_are_about_operations() -> None:
    model = weighted(np.ones(3, np.float32), "block 1")
    found = write(model, NEWEST, keep)
    add, relu = model.operations
    nodes = onnx.ModelProto.FromString(found.model.proto).graph.node
    assert found.named_in(f"cannot do '{nodes[1].name}_token_3'") == [relu]
    assert found.named_in(f"{nodes[1].name}, {nodes[0].name}") == [add, relu]
    assert found.named_in(f"{nodes[0].name[:-8]}") == []


def test_fingerprints_are_of_the_form_not_of_names_and_weights() -> None:
    zeros, ones = np.zeros(1000, np.float32), np.ones(1000, np.float32)
    one = fingerprint(weighted(zeros, "one"), NEWEST)
    assert fingerprint(weighted(ones, "other"), NEWEST) == one
    assert fingerprint(weighted(np.zeros(1001, np.float32)), NEWEST) != one
    assert fingerprint(weighted(zeros[:5]), NEWEST) != fingerprint(weighted(ones[:5]), NEWEST)


def test_older_opsets_have_older_words(tmp_path: Path) -> None:
    b = Builder("m")
    image = b.input("image", TensorType(FLOAT32, (1, 1, 3, 3)))
    grid = b.input("grid", TensorType(FLOAT32, (1, 2, 2, 2)))
    b.output("y", b.add(GridSample, image, grid, mode=Kernel.BILINEAR))
    model = b.build()
    old = written(model, Dialect(opset=19, types=TYPES), tmp_path)
    new = written(model, NEWEST, tmp_path)
    assert old.opset_import[0].version == 19
    assert old.ir_version == 9
    random = np.random.default_rng(0)
    inputs = {
        "input0": random.normal(size=(1, 1, 3, 3)).astype(np.float32),
        "input1": random.uniform(-1, 1, (1, 2, 2, 2)).astype(np.float32),
    }
    sessions = [onnxruntime.InferenceSession(one.SerializeToString()) for one in (old, new)]
    one, other = (session.run(None, inputs)[0] for session in sessions)
    np.testing.assert_array_equal(one, other)


def test_what_an_opset_lacks_is_said() -> None:
    b = Builder("m")
    b.output("y", b.add(Gelu, b.input("x", TensorType(FLOAT32, (4,)))))
    model = b.build()
    assert unwritable(model, NEWEST) == ""
    old = Dialect(opset=19, types=TYPES)
    assert unwritable(model, old) == "opset 19 of ONNX has no Gelu"
    b = Builder("m")
    b.output("y", b.add(IsInf, b.input("x", TensorType(ElementType.FLOAT16, (4,)))))
    assert unwritable(b.build(), NEWEST) == ""
    assert unwritable(b.build(), old).startswith("not in opset 19 of ONNX: ")
    few = Dialect(types=TYPES, operators=frozenset({"Relu"}))
    assert unwritable(model, few) == "the compiler does not have ONNX's Gelu"


def test_only_onnx_runtime_reads_what_it_has_beside_onnx() -> None:
    b = Builder("m")
    x = b.input("x", TensorType(FLOAT32, (2, 3, 8)))
    b.output("y", b.add(Attention, x, x, x, num_heads=2))
    assert unwritable(b.build(), NEWEST) == "ONNX has no MultiHeadAttention"
    b = Builder("m")
    x = b.input("x", TensorType(FLOAT32, (2, 8)))
    b.output("y", b.add(RMSNormalization, x, np.ones(8, np.float32)))
    assert unwritable(b.build(), NEWEST) == "ONNX has no SimplifiedLayerNormalization"


def test_an_opset_that_nobody_writes_is_an_error() -> None:
    with pytest.raises(ValueError, match="opset 11 is not between 17 and 25"):
        Dialect(opset=11, types=TYPES)


def quantized() -> Model:
    """Return quantized images that are moved and get the quantization of an output."""
    b = Builder("m")
    scale = Quantization((0.5, 0.25), (3, -1), 1)
    x = b.input("x", TensorType(ElementType.INT8, (1, 2, 3), scale))
    b.output("y", b.add(Transpose, x, [0, 2, 1]))
    return b.build()


def test_moved_integers_are_written_with_the_conversions_that_say_what_they_mean(
    tmp_path: Path,
) -> None:
    proto = written(quantized(), NEWEST, tmp_path)
    assert [n.op_type for n in proto.graph.node] == [
        "DequantizeLinear",
        "Transpose",
        "QuantizeLinear",
    ]
    x = np.arange(-3, 3, dtype=np.int8).reshape(1, 2, 3)
    np.testing.assert_array_equal(evaluated(proto, x)[0], x.transpose(0, 2, 1))


def test_a_boundary_of_reals_has_none_of_integers(tmp_path: Path) -> None:
    proto = written(quantized(), Dialect(types=TYPES, real_boundary=True), tmp_path)
    for value in (*proto.graph.input, *proto.graph.output):
        assert value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    reals = np.array([[[-1.5, 0.0, 2.5], [0.5, -0.25, 31.0]]], np.float32)
    np.testing.assert_array_equal(evaluated(proto, reals)[0], reals.transpose(0, 2, 1))


def test_an_input_read_twice_and_handed_out_is_written(tmp_path: Path) -> None:
    b = Builder("m")
    x = b.input("x", TensorType(FLOAT32, (2,)))
    b.output("x", x)
    b.output("y", b.add(Mul, b.add(Sigmoid, x), x))
    proto = written(b.build(), NEWEST, tmp_path)
    x_, y = evaluated(proto, np.array([0, 2], np.float32))
    np.testing.assert_array_equal(x_, [0, 2])
    np.testing.assert_allclose(y, [0, 2 / (1 + np.exp(-2))], rtol=1e-6)
