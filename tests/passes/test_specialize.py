"""Specialization of dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.modelling import dedented, float32, model_of, outputs_of
from tests.random_models import Example, examples

from crosschip.ir import Builder, ElementType, InputError, Operand, TensorType, symbol, unknown
from crosschip.ir.shape_binding import bind
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.pooling import AveragePool2D
from crosschip.passes import FoldConstants, Specialize, run

N, S = symbol("N"), symbol("S")
UNKNOWN_RANK = TensorType(ElementType.FLOAT32, None)


def test_sizes_are_fixed_everywhere() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        convolved = b.add(
            Conv2D, x, np.zeros((1, 1, 3, 3), np.float32), strides=(2, 2), pads=(1, 1, 1, 1)
        )
        pooled = b.add(AveragePool2D, convolved, kernel_shape=(2, 2), strides=(2, 2))
        return b.add(Reshape, pooled, (0, -1))

    model = model_of(make, float32(N, 1, S, 32))
    assert "float32[N, 1, (S + 1) // 2, 16]" in str(model)
    assert "float32[N, 1, (S + 1) // 4, 8]" in str(model)
    fixed = Specialize({"x0": (2, 1, 31, 32)})(model)
    assert [str(operation.outputs[0].type) for operation in fixed.operations] == [
        "float32[2, 1, 16, 16]",
        "float32[2, 1, 8, 8]",
        "float32[2, 64]",
    ]


def test_inputs_share_their_sizes() -> None:
    def make(b: Builder, x: Operand, y: Operand, z: Operand) -> tuple[Operand, ...]:
        return b.add(Add, x, y), z

    model = model_of(make, float32(N, 3), float32(1, 3), float32(2 * N + 1, N))
    assert str(Specialize({"x0": (4, 3)})(model)) == dedented("""
        model model
          input x0: float32[4, 3]
          input x1: float32[1, 3]
          input x2: float32[9, 4]
          %add_0 = ADD(input0=%x0, input1=%x1): float32[4, 3]
          output y0 = %add_0
          output y1 = %x2
    """)


def test_what_is_not_given_stays_open() -> None:
    model = model_of(lambda b, x, y: (b.add(Relu, x), b.add(Relu, y)), float32(N), float32(S))
    fixed = Specialize({"x1": (3,)})(model)
    assert [str(operand.type) for operand in fixed.outputs.values()] == ["float32[N]", "float32[3]"]


def test_an_unknown_size_and_an_unknown_rank_become_known() -> None:
    model = model_of(
        lambda b, x, y: (b.add(Relu, x), b.add(Relu, y)), float32(unknown(), 3), UNKNOWN_RANK
    )
    fixed = Specialize({"x0": (2, 3), "x1": (4, 5)})(model)
    assert [operand.type for operand in fixed.inputs.values()] == [float32(2, 3), float32(4, 5)]
    assert [operand.type for operand in fixed.outputs.values()] == [float32(2, 3), float32(4, 5)]


def test_shapes_that_the_model_computes_can_be_folded_then() -> None:
    model = model_of(lambda b, x: b.add(Reshape, b.add(Relu, x), b.add(ShapeOf, x)), float32(N, 3))
    assert str(run(model, [Specialize({"x0": (2, 3)}), FoldConstants()])) == dedented("""
        model model
          input x0: float32[2, 3]
          %relu_0 = RELU(input=%x0): float32[2, 3]
          %reshape_0 = RESHAPE(input=%relu_0, shape=[2, 3]): float32[2, 3]
          output y0 = %reshape_0
    """)


@pytest.mark.parametrize("shape", [[2, 3], np.array([2, 3]), (np.int8(2), 3)], ids=repr)
def test_a_shape_may_be_any_list_of_integers(shape: Any) -> None:
    model = model_of(lambda b, x: b.add(Relu, x), float32(N, 3))
    fixed = Specialize({"x0": shape})(model)
    assert fixed.outputs["y0"].type.static_shape == (2, 3)


def test_a_size_may_be_none() -> None:
    model = model_of(lambda b, x: b.add(Relu, x), float32(N, 3))
    assert Specialize({"x0": (0, 3)})(model).outputs["y0"].type == float32(0, 3)


REFUSED: list[tuple[Mapping[str, Any], str]] = [
    ({"y": (1, 3)}, "no input 'y'; its inputs are x0, x1"),
    ({"x0": (4,)}, r"input 'x0' has shape \[4\], but the model takes float32\[N, 3\]"),
    ({"x0": (2, 4)}, r"input 'x0' has shape \[2, 4\], but the model takes float32\[N, 3\]"),
    ({"x0": (2, 3), "x1": (3, 4)}, r"input 'x1' has shape \[3, 4\].* where \{'N': 2\}"),
    ({"x0": (2, 3), "x1": (2, 5)}, r"input 'x1' has shape \[2, 5\].* where \{'N': 2\}"),
    ({"x0": (-1, 3)}, r"\(-1, 3\) is not a shape for 'x0'; give one like"),
    ({"x0": (2.0, 3)}, r"\(2.0, 3\) is not a shape"),
    ({"x0": "2x3"}, "'2x3' is not a shape"),
    ({"x0": 3}, "3 is not a shape"),
    ({"x0": None}, "None is not a shape"),
    ({"x0": (None, 3)}, r"\(None, 3\) is not a shape"),
]


@pytest.mark.parametrize(("shapes", "message"), REFUSED, ids=[str(shapes) for shapes, _ in REFUSED])
def test_what_does_not_fit_is_refused(shapes: Mapping[str, Any], message: str) -> None:
    model = model_of(
        lambda b, x, y: (b.add(Relu, x), b.add(Relu, y)), float32(N, 3), float32(N, 2 * N)
    )
    with pytest.raises(InputError, match=message):
        Specialize(shapes)(model)


def test_a_shape_with_which_an_operation_cannot_run_is_refused() -> None:
    model = model_of(
        lambda b, x: b.add(Add, x, np.ones(3, np.float32), name="shift"), float32(N, S), name="m"
    )
    message = r"m does not run with x0 \[2, 4\]: 'shift': ADD\.input1: shapes .* do not broadcast"
    with pytest.raises(InputError, match=message):
        Specialize({"x0": (2, 4)})(model)


def test_a_message_calls_an_input_by_the_name_that_the_caller_knows() -> None:
    b = Builder()
    b.output("y", b.add(Relu, b.input("internal", float32(3))))
    model = b.build()
    renamed = type(model)("m", {"x": model.inputs["internal"]}, model.operations, model.outputs)
    with pytest.raises(InputError, match="input 'x' has shape"):
        Specialize({"x": (4,)})(renamed)


@given(examples(quantized=True))
def test_the_shapes_that_come_out_are_those_of_the_results(example: Example) -> None:
    shapes = {name: array.shape for name, array in example.inputs.items()}
    fixed = run(example.model, [Specialize(shapes), FoldConstants()])
    fixed.verify()
    results = outputs_of(fixed, example.inputs)
    for name, array in outputs_of(example.model, example.inputs).items():
        assert fixed.outputs[name].type.static_shape == array.shape
        assert results[name].tobytes() == array.tobytes()


@given(examples(quantized=True))
def test_open_shapes_agree_with_the_results(example: Example) -> None:
    types = {name: operand.type for name, operand in example.model.inputs.items()}
    sizes = bind(types, {name: array.shape for name, array in example.inputs.items()})
    for name, array in outputs_of(example.model, example.inputs).items():
        promised = example.model.outputs[name].type.substitute(sizes).shape
        assert promised is not None
        for size, actual in zip(promised, array.shape, strict=True):
            assert size == actual or not isinstance(size, int)
