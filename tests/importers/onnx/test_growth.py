"""Small files that describe much: what they cost is bounded before it is spent."""

from __future__ import annotations

from itertools import pairwise

import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

import crosschip
from crosschip.ir import Budget, BudgetError, ModelFileError
from crosschip.ir.dimension import is_unknown


def floats(name: str, *shape: int | str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def squared(times: int, *sizes: int | str) -> bytes:
    """Return a file whose vector becomes all products of two of its elements, again and again.

    Args:
        times: how often.
        sizes: those of the inputs, which the first vector joins.
    """
    integers = {"flat": [-1], "column": [-1, 1], "row": [1, -1]}
    constants = [
        helper.make_tensor(name, TensorProto.INT64, [len(value)], value)
        for name, value in integers.items()
    ]
    names = [f"x{index}" for index in range(len(sizes))]
    nodes = [helper.make_node("Concat", names, ["v0"], axis=0)]
    for i in range(times):
        nodes += [
            helper.make_node("Reshape", [f"v{i}", "column"], [f"c{i}"]),
            helper.make_node("Reshape", [f"v{i}", "row"], [f"r{i}"]),
            helper.make_node("Mul", [f"c{i}", f"r{i}"], [f"m{i}"]),
            helper.make_node("Reshape", [f"m{i}", "flat"], [f"p{i}"]),
            helper.make_node("Concat", [f"p{i}", "x0"], [f"v{i + 1}"], axis=0),
        ]
    inputs = [floats(name, size) for name, size in zip(names, sizes, strict=True)]
    graph = helper.make_graph(nodes, "g", inputs, [floats(f"v{times}", "Z")], constants)
    return file_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def file_of(model: ModelProto) -> bytes:
    model.ir_version = 8
    return model.SerializeToString()


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_sizes_that_are_products_of_sums_become_unknown(device: str) -> None:
    model = crosschip.load(squared(30, "A", "B", "C"))
    (output,) = model.outputs.values()
    assert output.type.shape is not None
    assert is_unknown(output.type.shape[0])
    assert crosschip.explain(model, device).segments


def test_sizes_beyond_64_bits_are_refused() -> None:
    with pytest.raises(ModelFileError, match=r"node \d+ .*axis of over 9223372036854775807 elem"):
        crosschip.load(squared(40, 3))


def nested_functions(depth: int, calls: int) -> bytes:
    """Return a model with functions that each call the previous one; the first calls `Neg`."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    functions = []
    for level in range(depth):
        names = ["x", *(f"t{i}" for i in range(1, calls)), "y"]
        called, domain = (f"f{level - 1}", "local") if level else ("Neg", "")
        nodes = [
            helper.make_node(called, [read], [written], domain=domain)
            for read, written in pairwise(names)
        ]
        functions.append(helper.make_function("local", f"f{level}", ["x"], ["y"], nodes, opsets))
    call = helper.make_node(f"f{depth - 1}", ["x"], ["y"], domain="local")
    graph = helper.make_graph([call], "g", [floats("x", 2)], [floats("y", 2)])
    return file_of(helper.make_model(graph, functions=functions, opset_imports=opsets))


@pytest.mark.parametrize(("depth", "calls"), [(17, 2), (30, 2), (5, 100), (2, 400), (45, 3)])
def test_functions_that_become_too_many_are_refused_before_they_are_expanded(
    monkeypatch: pytest.MonkeyPatch, depth: int, calls: int
) -> None:
    def expand(*_: object) -> None:
        raise AssertionError("a function is expanded")

    monkeypatch.setattr("crosschip.importers.onnx.scope.Scope._expand", expand)
    with pytest.raises(BudgetError, match="functions and loops become over 100000 operations"):
        crosschip.load(nested_functions(depth, calls))


def test_functions_that_fit_are_expanded() -> None:
    assert len(crosschip.load(nested_functions(4, 3)).operations) == 3**4
    assert len(crosschip.load(nested_functions(4, 3), budget=Budget(operations=120)).operations)
    with pytest.raises(BudgetError, match="over 119 operations"):
        crosschip.load(nested_functions(4, 3), budget=Budget(operations=119))
