"""Files that break a rule of ONNX, or ask for what no memory holds, are refused in our words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.helper import make_node

import crosschip
from crosschip.ir import BudgetError, DeviceError, ModelFileError, UnsupportedError

HUGE = 2**30
Declared = tuple[str, int, Sequence[Any] | None]
FLOAT, INT64 = 1, 7


def value(name: str, type_: int, shape: Sequence[Any] | None) -> Any:
    return helper.make_tensor_value_info(name, type_, shape)


def model(
    node: NodeProto | list[NodeProto],
    inputs: Sequence[Declared],
    output: Declared = ("y", FLOAT, None),
    constants: Sequence[tuple[str, Any]] = (),
) -> ModelProto:
    """Return a model of one node, or a few, that makes `y`."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants]
    nodes = node if isinstance(node, list) else [node]
    inputs_, outputs = [value(*entry) for entry in inputs], [value(*output)]
    graph = helper.make_graph(nodes, "g", inputs_, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


X: Declared = ("x", FLOAT, [2, 2])
IMAGE: Declared = ("x", FLOAT, [1, 1, 4, 4])


def twice(field: str) -> ModelProto:
    """Return a model with two of something of the same name."""
    proto = model(
        make_node("LeakyRelu", ["w"], ["y"], alpha=0.5), [], constants=[("w", np.ones(2))]
    )
    if field == "initializers":
        proto.graph.initializer.append(numpy_helper.from_array(np.zeros(2), "w"))
    if field == "attributes":
        proto.graph.node[0].attribute.append(helper.make_attribute("alpha", 0.1))
    if field == "functions":
        opset = helper.make_opsetid("", 17)
        for name in ("Neg", "Abs"):
            body = [make_node(name, ["v"], ["r"])]
            proto.functions.append(helper.make_function("l", "f", ["v"], ["r"], body, [opset]))
    return proto


def sparse(indices: Any) -> ModelProto:
    proto = model(make_node("Add", ["x", "w"], ["y"]), [X])
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    places = numpy_helper.from_array(np.asarray(indices), "i")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2]))
    return proto


def lstm(hidden_size: int) -> ModelProto:
    weights = [("w", np.ones((1, 8, 2), np.float32)), ("r", np.ones((1, 8, 2), np.float32))]
    node = make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=hidden_size)
    return model(node, [("x", FLOAT, [1, 1, 2])], constants=weights)


def joined(first: Declared, second: Declared, inserted: bool = False, **how: Any) -> ModelProto:
    """Return a model that joins two inputs by way of a sequence."""
    if inserted:
        nodes = [
            make_node("SequenceEmpty", [], ["e"], dtype=first[1]),
            make_node("SequenceInsert", ["e", first[0]], ["i"]),
            make_node("SequenceInsert", ["i", second[0]], ["s"]),
        ]
    else:
        nodes = [make_node("SequenceConstruct", [first[0], second[0]], ["s"])]
    join = make_node("ConcatFromSequence", ["s"], ["y"], **{"axis": 0, **how})
    return model([*nodes, join], [first, second])


LONG, WIDE, WHOLE = ("v", FLOAT, [5, 2]), ("v", FLOAT, [2, 3]), ("v", INT64, [2, 2])
INVALID = {
    "two initializers": (twice("initializers"), "two initializers are called 'w'"),
    "two attributes": (twice("attributes"), "node 0 .*has two attributes of one name"),
    "two functions": (twice("functions"), r"has two functions called 'l\.f'"),
    "sparse indices": (sparse(np.zeros(1, np.float32)), "indices of its values are float32, not"),
    "joined": (joined(X, WIDE), "'ConcatFromSequence': CONCAT.parts: sizes .*: 2 and 3 differ"),
    "joined after inserting": (joined(X, WIDE, inserted=True), "CONCAT.parts: .*2 and 3 differ"),
    "stacked": (joined(X, LONG, new_axis=1), "STACK.parts: .*2 and 5 differ"),
    "joined along no axis": (joined(X, LONG, axis=2), r"CONCAT.axis: 2 is not in \[-2, 2\)"),
    "a sequence of two types": (
        joined(X, WHOLE),
        "SequenceConstruct '': a sequence holds one element type, not float32 and int64",
    ),
    "another type inserted": (
        joined(X, WHOLE, inserted=True),
        "SequenceInsert '': a sequence holds one element type, not float32 and int64",
    ),
    "hidden size": (lstm(2**40), "hidden_size is 1099511627776, but the recurrence weights have 2"),
    "another hidden size": (lstm(3), "hidden_size is 3, but the recurrence weights have 2"),
    "keepdims": (
        model(make_node("ReduceSum", ["x"], ["y"], keepdims=2), [X]),
        "keepdims is 2, but must be 0 or 1",
    ),
    "the output's type": (
        model(make_node("Relu", ["x"], ["y"]), [X], ("y", INT64, [2, 2])),
        r"output 'y': is declared as int64, but is float32\[2, 2\]",
    ),
    "a negative size": (
        model(make_node("Reshape", ["x", "s"], ["y"]), [X], constants=[("s", np.array([-7, 2]))]),
        r"\[-7, 2\] has a negative size",
    ),
    "many axes": (
        model(
            make_node("Expand", ["x", "s"], ["y"]), [X], constants=[("s", np.ones(41, np.int64))]
        ),
        "has 41 sizes, but a tensor has at most 32",
    ),
    "many axes, computed": (
        model(make_node("Expand", ["x", "s"], ["y"]), [X, ("s", INT64, [41])]),
        "has 41 sizes, but a tensor has at most 32",
    ),
    "many axes of an input": (
        model(make_node("Relu", ["x"], ["y"]), [("x", FLOAT, [1] * 70)]),
        "input 'x': a tensor of 70 axes: there are at most 32",
    ),
    "many axes that are added": (
        model(make_node("Unsqueeze", ["x", "a"], ["y"]), [X], constants=[("a", np.arange(50))]),
        "a tensor of 52 axes: there are at most 32",
    ),
}


@pytest.mark.parametrize("what", INVALID)
def test_what_breaks_a_rule_is_refused(tmp_path: Path, what: str) -> None:
    proto, reason = INVALID[what]
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelFileError, match=rf"model\.onnx: .*{reason}"):
        crosschip.load(path)


def test_what_leaves_sizes_open_is_no_contradiction() -> None:
    for shape in (None, ["a", "b"], [2, "b"], [2, 2]):
        proto = model(make_node("Relu", ["x"], ["y"]), [X], ("y", FLOAT, shape))
        assert crosschip.load(proto).outputs
    assert crosschip.load(lstm(2)).outputs
    assert crosschip.load(sparse(np.zeros(1, np.int64))).outputs


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "Conv"])
@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_paddings_beyond_any_memory(operator: str, device: str) -> None:
    window: dict[str, Any] = {} if operator == "Conv" else {"kernel_shape": [2, 2]}
    inputs = ["x", "w"] if operator == "Conv" else ["x"]
    node = make_node(operator, inputs, ["y"], pads=[HUGE] * 4, **window)
    weights = [("w", np.ones((1, 1, 2, 2), np.float32))] if operator == "Conv" else []
    with pytest.raises(BudgetError, match=r"'y' is .*which takes 1844"):
        crosschip.compile(model(node, [IMAGE], constants=weights), device, cache=False)


ONES = np.ones((1, 1, 4, 4), np.float32)
COMPUTED: dict[str, tuple[ModelProto, dict[str, Any]]] = {
    "expand": (
        model(make_node("Expand", ["x", "s"], ["y"]), [("x", FLOAT, [1]), ("s", INT64, [2])]),
        {"x": np.ones(1, np.float32), "s": np.array([2**40, 12])},
    ),
    "a negative size": (
        model(make_node("Reshape", ["x", "s"], ["y"]), [X, ("s", INT64, [2])]),
        {"x": np.ones((2, 2), np.float32), "s": np.array([-7, 2])},
    ),
    "many axes": (
        model(make_node("Reshape", ["x", "s"], ["y"]), [("x", FLOAT, [1]), ("s", INT64, ["n"])]),
        {"x": np.ones(1, np.float32), "s": np.ones(70, np.int64)},
    ),
    "many axes that are filled": (
        model(make_node("ConstantOfShape", ["s"], ["y"]), [("s", INT64, ["n"])]),
        {"s": np.ones(70, np.int64)},
    ),
    "paddings": (
        model(
            make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[HUGE] * 4),
            [("x", FLOAT, ["a", "b", "c", "d"])],
        ),
        {"x": ONES},
    ),
}


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
@pytest.mark.parametrize("what", COMPUTED)
def test_what_shows_only_when_it_runs(what: str, device: str) -> None:
    proto, inputs = COMPUTED[what]
    try:
        compiled = crosschip.compile(proto, device, cache=False)
    except UnsupportedError:
        assert device != "reference"
        return
    with compiled, pytest.raises(DeviceError, match=f"^{device}"):
        compiled.run(inputs)


def test_what_fits_is_joined_by_way_of_a_sequence() -> None:
    first, second = np.ones((2, 2), np.float32), np.zeros((5, 2), np.float32)
    for inserted in (False, True):
        model_ = joined(X, LONG, inserted=inserted)
        with crosschip.compile(model_, "onnxruntime", cache=False) as compiled:
            found = compiled.run({"x": first, "v": second})["y"]
        np.testing.assert_array_equal(found, np.concatenate([first, second]), strict=True)
