"""Models as ONNX files in any opset, run by ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.exporters.examples import outcomes

import crosschip as cc
from crosschip.devices.onnxruntime.precision import saturates
from crosschip.exporters import export
from crosschip.exporters import onnx as exporter
from crosschip.ir import Builder, ElementType, If, InputError, Model, TensorType
from crosschip.ops.definition.examples import examples_of, model_of
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.recurrent import DynamicQuantizeLSTM
from crosschip.ops.standard.reduction import ReduceMax
from crosschip.ops.standard.searching import ArgMax

FLOAT32 = ElementType.FLOAT32

REJECTED = {
    # ONNX Runtime 1.32 fuses its own output into a node with two types of integers.
    ("GROUP_NORMALIZATION", 4),
    # Its arrays have no such type.
    ("CAST", 7),
}


@pytest.mark.parametrize("opset", [17, 21])
def test_examples(opset: int) -> None:
    _check(opset, every=9, first=opset % 9, written=90)


@pytest.mark.nightly
@pytest.mark.parametrize("opset", [17, 18, 19, 20, 21, 22, 23, 24, 25])
def test_all_examples(opset: int) -> None:
    _check(opset, every=1, first=0, written=970)


def _check(opset: int, every: int, first: int, written: int) -> None:
    results = [
        outcome
        for outcome in outcomes(exporter, {"opset": str(opset)}, every, first)
        if (outcome.operator, outcome.number) not in REJECTED
        # ONNX Runtime 1.32 has the operator to version 16.
        and not (outcome.operator == "ROI_ALIGN" and opset > 21)
        # What is written is right, but ONNX Runtime is not: quirk `products-of-bytes`.
        and not (outcome.operator == "MAT_MUL_INTEGER" and saturates())
    ]
    assert [str(each) for each in results if each.fault] == []
    assert sum(not each.refusal for each in results) >= written


def test_names_types_and_versions(tmp_path: Path) -> None:
    b = Builder("names")
    x = b.input("value0", TensorType(FLOAT32, (2, 3)))
    b.output("constant0", b.add(ReduceMax, b.add(Mul, x, np.ones(3, np.float32)), axes=(1,)))
    path = tmp_path / "model.onnx"
    for opset in (17, 18, 25):
        export(b.build(), path, properties={"opset": str(opset)})
        proto = onnx.load(path)
        onnx.checker.check_model(proto, full_check=True)
        assert proto.opset_import[0].version == opset
        assert [value.name for value in proto.graph.input] == ["value0"]
        assert [value.name for value in proto.graph.output] == ["constant0"]
        assert proto.graph.name == "names"


def test_reductions_and_searches_are_single_nodes(tmp_path: Path) -> None:
    b = Builder("scores")
    scores = b.input("scores", TensorType(FLOAT32, (2, 8)))
    b.output("most", b.add(ReduceMax, scores, axes=(1,)))
    b.output("best", b.add(ArgMax, scores, axis=1))
    path = tmp_path / "model.onnx"
    export(b.build(), path)
    assert [node.op_type for node in onnx.load(path).graph.node] == ["ReduceMax", "ArgMax"]


def test_operators_of_onnx_runtime(tmp_path: Path) -> None:
    model = model_of(DynamicQuantizeLSTM, examples_of(DynamicQuantizeLSTM)[0])
    path = tmp_path / "model.onnx"
    standard = export(model, path)
    assert {node.domain for node in onnx.load(path).graph.node} == {""}
    for opset in ("18", "21"):
        short = export(model, path, properties={"domain": "com.microsoft", "opset": opset})
        assert [node.op_type for node in onnx.load(path).graph.node] == ["DynamicQuantizeLSTM"]
        assert short.operations == 1 < standard.operations
    with pytest.raises(InputError, match=r"domain is 'ai\.onnx\.ml', but can only be com\.micro"):
        export(model, path, properties={"domain": "ai.onnx.ml"})


def test_control_flow(tmp_path: Path) -> None:
    b = Builder("branches")
    condition = b.input("condition", TensorType(ElementType.BOOL, ()))
    x = b.input("x", TensorType(FLOAT32, (3,)))
    branches = [_branch(Add), _branch(Mul)]
    outputs = b.insert(If.of("choice", condition, [x], branches))
    b.output("y", outputs[0])
    path = tmp_path / "model.onnx"
    export(b.build(), path)
    with cc.compile(cc.load(path), ["reference"], cache=False) as compiled:
        for chosen, right in ((True, 4.0), (False, 4.0)):
            inputs = {"condition": np.array(chosen), "x": np.full(3, 2, np.float32)}
            np.testing.assert_array_equal(compiled.run(inputs)["y"], np.full(3, right))


def _branch(operator: type[Add] | type[Mul]) -> Model:
    b = Builder("branch")
    x = b.input("x", TensorType(FLOAT32, (3,)))
    b.output("y", b.add(operator, x, x))
    return b.build()
