"""Operations know the operators of the file that they stand for."""

from __future__ import annotations

from pathlib import Path

from onnx import parser
from tests.modelling import chain

import crosschip
from crosschip.ir import Model, Operation, Origin
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.passes import simplify
from crosschip.runtime.placement.sources import sources_of


def imported(text: str) -> Model:
    return crosschip.load(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'))


def origins(operation: Operation) -> list[tuple[str, str, str]]:
    return [(o.type, ",".join(o.inputs), ",".join(o.outputs)) for o in operation.origins]


def test_each_operation_that_a_node_becomes_stands_for_it() -> None:
    model = imported("""g (float[1, 2, 3, 3] x) => (float[1, 2, 3, 3] y)
        { t = MeanVarianceNormalization(x)  y = Relu(t) }""")
    *several, relu = model.operations
    assert len(several) > 1
    assert all(origins(one) == [("MeanVarianceNormalization", "x", "t")] for one in several)
    assert origins(relu) == [("Relu", "t", "y")]
    first, last = sources_of(model)
    assert first.operations == several
    assert (first.line, last.line) == ("MeanVarianceNormalization:x:t", "Relu:t:y")


def test_inputs_that_are_left_out_have_no_names() -> None:
    model = imported(
        "g (float[3] x, float m) => (float[3] y) { y = Clip(x, , m) }",
    )
    assert {o for one in model.operations for o in origins(one)} == {("Clip", "x,m", "y")}


def test_what_is_in_branches_stands_for_nodes_of_its_own() -> None:
    model = imported("""g (bool c, float[3] x) => (float[3] y)
        { y = If <then_branch = t () => (float[3] a) { a = Tanh(x) },
                  else_branch = e () => (float[3] b) { d = Neg(x) b = Exp(d) }> (c) }""")
    (branch,) = model.operations
    assert origins(branch) == [("If", "c", "y")]
    inside = [origins(o) for body in branch.bodies for o in body.operations]
    assert inside == [[("Tanh", "x", "a")], [("Neg", "x", "d")], [("Exp", "d", "b")]]
    lines = [source.line for source in sources_of(model)]
    assert lines == ["If:c:y", "Tanh:x:a", "Neg:x:d", "Exp:d:b"]


def test_what_is_in_a_function_stands_for_the_node_that_calls_it() -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
        g (float[3] x) => (float[3] y) { t = mine.double_tanh(x)  y = Relu(t) }
        <domain: "mine", opset_import: ["" : 17]>
        double_tanh (a) => (c) { b = Tanh(a)  c = Tanh(b) }""")
    model = crosschip.load(proto)
    assert [o.type for o in model.operations] == ["TANH", "TANH", "RELU"]
    assert [origins(o) for o in model.operations[:2]] == [[("mine.double_tanh", "x", "t")]] * 2
    assert origins(model.operations[2]) == [("Relu", "t", "y")]


def test_each_time_of_a_loop_that_is_unrolled_stands_for_the_same_node() -> None:
    model = imported("""g (float[3] x) => (float[3] y)
        <int64 n = {3}, bool go = {1}>
        { y = Loop <body = b (int64 i, bool c, float[3] s) => (bool c2, float[3] t)
                    { c2 = Identity(c)  t = Tanh(s) }> (n, go, x) }""")
    model = simplify(model)
    assert [o.type for o in model.operations] == ["TANH"] * 3
    assert [origins(o) for o in model.operations] == [[("Tanh", "s", "t")]] * 3
    (source,) = sources_of(model)
    assert len(source.operations) == 3


def test_what_passes_join_stands_for_all() -> None:
    model = simplify(
        imported("""g (float[1, 2, 4, 4] x) => (float[1, 2, 4, 4] y)
        <float[2, 2, 1, 1] w = {1, 2, 3, 4}, float[2, 1, 1] b = {1, 2}>
        { c = Conv(x, w)  y = Add(c, b) }""")
    )
    (operation,) = model.operations
    assert origins(operation) == [("Conv", "x,w", "c"), ("Add", "c,b", "y")]
    (source,) = sources_of(model)
    assert source.line == "Conv:x,w,b:y"


def test_a_paddle_file_has_paddles_names(models: Path) -> None:
    for folder in ("paddle2", "paddle3"):
        model = simplify(crosschip.load(models / folder / "mobilenet_v1"))
        assert all(operation.origins for operation in model.operations)
        types = {origin.type for o in model.operations for origin in o.origins}
        assert types >= {"conv2d", "depthwise_conv2d", "batch_norm", "relu", "pool2d"}
    first = simplify(crosschip.load(models / "paddle2/mobilenet_v1")).operations[1]
    assert first.origins == (Origin("relu", ("batch_norm_0.tmp_2",), ("relu_0.tmp_0",)),)


def test_paddles_branches_and_what_is_in_them_have_names(models: Path) -> None:
    for kind in ("pdmodel", "json"):
        model = crosschip.load(models / "control" / kind / "branch")
        assert all(source.whole.type.islower() for source in sources_of(model))
        assert len(sources_of(model)) > 1


def test_another_name_changes_no_origin() -> None:
    (relu,) = imported("g (float[3] x) => (float[3] y) { y = Relu(x) }").operations
    assert relu.with_name("other").origins == relu.origins != ()


def test_a_model_from_no_file_is_its_own_source() -> None:
    model = chain(Relu, Tanh)
    assert all(not operation.origins for operation in model.operations)
    assert [source.line for source in sources_of(model)] == [
        "RELU:x0:relu_0",
        "TANH:relu_0:tanh_0",
    ]
