"""Signatures: equal for blocks that take the same time, different for what matters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32, model_of
from tests.random_models import Example, examples

from crosschip.ir import Builder, ElementType, Model, Operand, Quantization, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.activation import LeakyRelu, Relu, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.runtime.costs.block_signature import signature_of


def signature(model: Model, form: str = "static") -> str:
    """The signature of all operations of a model."""
    outputs = [operand for operand in model.outputs.values() if not operand.is_constant]
    return signature_of(model.operations, list(model.inputs.values()), outputs, form)


def renamed(model: Model) -> Model:
    """The same model with other names."""
    inputs = {
        operand: Operand(f"other {i}", operand.type)
        for i, operand in enumerate(model.inputs.values())
    }
    copies = dict(inputs)
    operations = []
    for index, operation in enumerate(model.operations):
        outputs = tuple(Operand(f"{index} {i}", o.type) for i, o in enumerate(operation.outputs))
        copies |= dict(zip(operation.outputs, outputs, strict=True))
        read = tuple(None if o is None else copies.get(o, o) for o in operation.inputs)
        operations.append(operation.with_inputs(read, outputs).with_name(f"operation {index}"))
    results = {f"result {i}": copies.get(o, o) for i, o in enumerate(model.outputs.values())}
    return Model("other", {o.name: o for o in inputs.values()}, operations, results)


@given(examples())
def test_names_do_not_count(example: Example) -> None:
    model = example.model
    assert signature(renamed(model)) == signature(model)


def layer(
    *,
    filters: int = 8,
    channels: int = 4,
    size: int = 6,
    stride: int = 1,
    element_type: ElementType = ElementType.FLOAT32,
    activation: type[Operator] = Relu,
    value: float = 1.0,
    alpha: float = 0.5,
    again: bool = False,
) -> Model:
    """A convolution and an activation."""

    def make(b: Builder, x: Operand) -> Operand | tuple[Operand, ...]:
        weights = np.full((filters, channels, 3, 3), value, element_type.dtype)
        y = b.add(Conv2D, x, b.constant(weights), strides=(stride, stride))
        z = b.add(LeakyRelu, b.add(activation, y), alpha)
        return (z, y) if again else z

    return model_of(make, TensorType(element_type, (1, channels, size, size)))


def test_elements_of_weights_do_not_count() -> None:
    assert signature(layer(value=2.0)) == signature(layer())


@pytest.mark.parametrize(
    "other",
    [
        layer(filters=9),
        layer(channels=5),
        layer(size=7),
        layer(stride=2),
        layer(element_type=ElementType.FLOAT16),
        layer(activation=Tanh),
        layer(alpha=0.25),
        layer(again=True),
    ],
    ids=["weights", "channels", "size", "stride", "type", "operator", "parameter", "outputs"],
)
def test_what_changes_the_work_counts(other: Model) -> None:
    assert signature(other) != signature(layer())


def test_the_form_counts() -> None:
    assert signature(layer(), "open") != signature(layer())


def test_connections_count() -> None:
    def crossed(b: Builder, x: Operand, y: Operand) -> Operand:
        return b.add(MatMul, x, b.add(Relu, y))

    def straight(b: Builder, x: Operand, y: Operand) -> Operand:
        return b.add(MatMul, b.add(Relu, x), y)

    types = float32(4, 4), float32(4, 4)
    assert signature(model_of(crossed, *types)) != signature(model_of(straight, *types))


def test_a_constant_differs_from_a_computed_operand() -> None:
    def constant(b: Builder, x: Operand, y: Operand) -> Operand:
        return b.add(Add, b.add(Add, x, y), b.constant(np.ones((4,), np.float32)))

    def computed(b: Builder, x: Operand, y: Operand) -> Operand:
        return b.add(Add, b.add(Add, x, y), y)

    types = float32(4), float32(4)
    assert signature(model_of(constant, *types)) != signature(model_of(computed, *types))


def quantized(scale: tuple[float, ...], zero: tuple[int, ...], axis: int | None) -> Model:
    """A transposition of a quantized tensor."""
    type_ = TensorType(ElementType.INT8, (2, 3), Quantization(scale, zero, axis))
    return model_of(lambda b, x: b.add(Transpose, x, (1, 0)), type_)


@given(st.floats(0.01, 100), st.integers(1, 100))
def test_scales_do_not_count_but_their_kind_does(scale: float, zero: int) -> None:
    symmetric = signature(quantized((1.0,), (0,), None))
    assert signature(quantized((scale,), (0,), None)) == symmetric
    assert signature(quantized((scale,), (zero,), None)) != symmetric
    assert signature(quantized((scale, 1.0), (0, 0), 0)) != symmetric
