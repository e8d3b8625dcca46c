"""Models: `verify`, sharing of copies, and large models."""

from __future__ import annotations

import copy
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from tests.modelling import float32, model_of
from tests.random_models import Example, examples

from crosschip.drawing import to_dot, to_svg
from crosschip.ir import (
    Builder,
    ElementType,
    Extension,
    Model,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.joining import Split
from crosschip.ops.standard.layout import Transpose

MANY = 20_000

x = Operand("x", float32(2, 3))
y = Operand("y", float32(2, 3))
z = Operand("z", float32(2, 3))
inputs = {"x": x}
QUANTIZED = TensorType(ElementType.INT8, (2, 3), Quantization((0.5,)))
REQUANTIZED = TensorType(ElementType.INT8, (2, 3), Quantization((0.7,)))


def typed(name: str, type_: TensorType) -> Operand:
    return Operand(name, type_)


BROKEN: dict[str, tuple[Callable[[], Model], str]] = {
    "read before it is made": (
        lambda: Model("m", inputs, [Relu("b", (y,), (z,)), Relu("a", (x,), (y,))], {"z": z}),
        "RELU 'b': input reads 'y', which nothing before it makes",
    ),
    "read from itself": (
        lambda: Model("m", inputs, [Relu("a", (y,), (y,))], {"y": y}),
        "RELU 'a': input reads 'y', which nothing before it makes",
    ),
    "not an input of this model": (
        lambda: Model("m", {}, [Relu("a", (x,), (y,))], {"y": y}),
        "RELU 'a': input reads 'x', which nothing before it makes",
    ),
    "made twice": (
        lambda: Model("m", inputs, [Relu("a", (x,), (y,)), Relu("b", (x,), (y,))], {"y": y}),
        "RELU 'b' makes 'y', which is there already",
    ),
    "made though an input": (
        lambda: Model("m", inputs, [Relu("a", (x,), (x,))], {"x": x}),
        "RELU 'a' makes 'x', which is there already",
    ),
    "one operand for two inputs": (
        lambda: Model("m", {"a": x, "b": x}, [Relu("a", (x,), (y,))], {"y": y}),
        r"m: two of the inputs \['a', 'b'\] are one operand",
    ),
    "an output that nothing makes": (
        lambda: Model("m", inputs, [], {"result": y}),
        "model output 'result' is 'y', which nothing makes",
    ),
    "wrong element type": (
        lambda: _relu_making(TensorType(ElementType.FLOAT16, (2, 3))),
        r"RELU 'a': 'y' is declared as float16\[2, 3\], but the operator makes float32\[2, 3\]",
    ),
    "wrong size": (lambda: _relu_making(float32(2, 4)), r"declared as float32\[2, 4\]"),
    "wrong rank": (lambda: _relu_making(float32(2, 3, 1)), r"declared as float32\[2, 3, 1\]"),
    "another quantization": (
        lambda: _assign_making(REQUANTIZED),
        r"ASSIGN 'a': 'y' is declared as int8\[2, 3\] quantized\(scale 0.7\), but the operator "
        r"makes int8\[2, 3\] quantized\(scale 0.5\)",
    ),
    "no quantization": (
        lambda: _assign_making(TensorType(ElementType.INT8, (2, 3))),
        r"ASSIGN 'a': 'y' is declared as int8\[2, 3\], but the operator makes int8\[2, 3\] quant",
    ),
    "two operations of one name": (
        lambda: Model("m", inputs, [Relu("a", (x,), (y,)), Sigmoid("a", (y,), (z,))], {"z": z}),
        "SIGMOID 'a': RELU before it has the same name",
    ),
    "a constant of another shape": (
        lambda: _adding(Operand("c", float32(2, 3), np.ones((3, 2), np.float32))),
        r"constant 'c' is declared as float32\[2, 3\], but holds float32\[3, 2\]",
    ),
    "a constant of another type": (
        lambda: _adding(Operand("c", float32(2, 3), np.ones((2, 3)))),
        r"constant 'c' is declared as float32\[2, 3\], but holds float64\[2, 3\]",
    ),
    "too few outputs": (
        lambda: Model("m", inputs, [Relu("a", (x,), ())], {}),
        "RELU 'a': has 0 outputs, but the operator makes 1",
    ),
    "too many outputs": (
        lambda: Model("m", inputs, [Relu("a", (x,), (y, z))], {"y": y}),
        "RELU 'a': has 2 outputs, but the operator makes 1",
    ),
    "a rule of the operator": (
        lambda: Model("m", inputs, [Add("a", (x, None, None), (y,))], {"y": y}),
        "'a': ADD.input1: is required",
    ),
}


def _adding(constant: Operand) -> Model:
    return Model("m", inputs, [Add("a", (x, constant, None), (y,))], {"y": y})


def _assign_making(type_: TensorType) -> Model:
    source, made = Operand("x", QUANTIZED), Operand("y", type_)
    return Model("m", {"x": source}, [Assign("a", (source,), (made,))], {"y": made})


def _relu_making(type_: TensorType) -> Model:
    made = Operand("y", type_)
    return Model("m", inputs, [Relu("a", (x,), (made,))], {"y": made})


@pytest.mark.parametrize("problem", BROKEN)
def test_a_broken_model_is_refused(problem: str) -> None:
    make, message = BROKEN[problem]
    with pytest.raises(ModelError, match=message):
        make().verify()


@pytest.mark.parametrize("problem", BROKEN)
def test_a_broken_model_can_still_be_looked_at(problem: str) -> None:
    model = BROKEN[problem][0]()
    assert str(model).startswith("model m")
    assert to_dot(model).startswith("digraph")
    ElementTree.fromstring(to_svg(model))


@pytest.mark.parametrize(
    "declared",
    [float32(2, 3), float32(symbol("N"), 3), TensorType(ElementType.FLOAT32, None)],
    ids=str,
)
def test_a_declared_type_may_leave_open_what_is_inferred(declared: TensorType) -> None:
    _relu_making(declared).verify()


@given(examples(quantized=True))
def test_what_the_builder_makes_is_sound(example: Example) -> None:
    example.model.verify()


def test_constants_are_listed_once_in_order_of_use() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        first, second = b.constant(np.ones(3, np.float32)), b.constant(np.zeros(3, np.float32))
        b.constant(np.ones(9, np.float32), "unused")
        return b.add(Add, b.add(Add, b.add(Add, x, first), second), first)

    model = model_of(make, float32(2, 3))
    assert [operand.name for operand in model.constants] == ["constant_0", "constant_1"]
    assert model.uses[model.constants[0]] == 2


def test_an_operand_is_used_by_outputs_too() -> None:
    model = model_of(lambda b, x: (x, x, b.add(Add, x, x)), float32(2))
    assert model.uses[model.inputs["x0"]] == 4


def test_producers_know_every_output() -> None:
    model = model_of(lambda b, x: b.add_all(Split, x, 0, (1, 2, 3)), float32(6))
    (split,) = model.operations
    assert [model.producers[operand] for operand in model.outputs.values()] == [split] * 3
    assert model.inputs["x0"] not in model.producers


def test_a_copy_shares_its_weights() -> None:
    weights = np.ones((2, 3), np.float32)
    model = model_of(lambda b, x: b.add(Add, x, weights), float32(2, 3))
    assert copy.copy(model).constants[0].value is weights
    other = model.operations[0].with_inputs(model.operations[0].inputs)
    assert other.inputs[1] is model.operations[0].inputs[1]


def test_a_model_cannot_be_changed_from_outside() -> None:
    given, made = {"x": x}, {"y": y}
    operations = [Relu("a", (x,), (y,))]
    model = Model("m", given, operations, made)
    given["z"] = made["z"] = z
    operations.clear()
    assert (list(model.inputs), len(model.operations), list(model.outputs)) == (["x"], 1, ["y"])
    with pytest.raises(TypeError):
        model.inputs["z"] = z  # type: ignore[index]  # that is the point


@pytest.mark.parametrize("attribute", ["name", "type", "value", "shape"])
def test_an_operand_cannot_be_changed(attribute: str) -> None:
    with pytest.raises(AttributeError, match=f"Operand.{attribute} cannot be set: it is immutable"):
        setattr(x, attribute, None)
    with pytest.raises(AttributeError, match="immutable"):
        delattr(x, attribute)


@pytest.mark.parametrize("attribute", ["name", "inputs", "outputs", "output_quantization", "extra"])
def test_an_operation_cannot_be_changed(attribute: str) -> None:
    operation = Relu("a", (x,), (y,))
    with pytest.raises(AttributeError, match=f"Relu.{attribute} cannot be set: it is immutable"):
        setattr(operation, attribute, ())
    assert operation.inputs == (x,)


@pytest.mark.parametrize("attribute", ["name", "inputs", "operations", "outputs", "uses", "extra"])
def test_a_model_cannot_be_changed(attribute: str) -> None:
    model = _relu_making(float32(2, 3))
    with pytest.raises(AttributeError, match=f"Model.{attribute} cannot be set: it is immutable"):
        setattr(model, attribute, {})
    assert copy.copy(model) is copy.deepcopy(model) is model


def test_an_extension_cannot_be_changed() -> None:
    extension = Extension("e", (x,), (y,), type="onnx.Loop", payload=b"", declared=(y.type,))
    with pytest.raises(AttributeError, match=r"Extension\.payload cannot be set"):
        extension.payload = b"other"
    assert extension.with_outputs((z,)).payload == b""


@pytest.mark.slow
def test_a_long_chain_is_no_problem() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(MANY // 2):
            x = b.add(Transpose, b.add(Relu, x), (1, 0))
        return x

    model = model_of(make, float32(symbol("N"), symbol("N")))
    model.verify()
    assert len(model.operations) == len(model.producers) == MANY
    assert str(model).count("\n") == MANY + 2
    assert to_dot(model).count("TRANSPOSE") == MANY // 2
    assert f"× {MANY // 2} in a chain" in to_svg(model)
