"""Text form of models."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32, model_of
from tests.random_models import Example, examples

from crosschip.ir import Builder, ElementType, Model, Operand, TensorType, symbol
from crosschip.ir.text import legible
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add, Clip
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.slicing import Slice


def test_a_model_as_text() -> None:
    def make(b: Builder, image: Operand, shift: Operand) -> tuple[Operand, ...]:
        filters = b.constant(np.zeros((8, 3, 3, 3), np.float32), "filters")
        hidden = b.add(Conv2D, image, filters, pads=(1, 1, 1, 1), strides=(2, 2), name="stem")
        left, right = b.add_all(Split, hidden, 1, (4, 4), name="cut")
        joined = b.add(Concat, [right, left, shift], axis=1, outputs=["joined"])
        return b.add(Clip, joined, max=6.0), shift, b.constant(np.float32(0.1))

    n, h = symbol("N"), symbol("H")
    model = model_of(make, float32(n, 3, h, 32), float32(n, 1, (h + 1) // 2, 16), name="tiny")
    assert str(model) == "\n".join(
        [
            "model tiny",
            "  input x0: float32[N, 3, H, 32]",
            "  input x1: float32[N, 1, (H + 1) // 2, 16]",
            "  constant @filters: float32[8, 3, 3, 3]",
            "  %stem = CONV_2D(input=%x0, filter=@filters, pads=[1, 1, 1, 1], strides=[2, 2]): "
            "float32[N, 8, (H + 1) // 2, 16]",
            "  %cut.0, %cut.1 = SPLIT(input=%stem, axis=1, split=[4, 4]): "
            "float32[N, 4, (H + 1) // 2, 16], float32[N, 4, (H + 1) // 2, 16]",
            "  %joined = CONCAT(parts=[%cut.1, %cut.0, %x1], axis=1): "
            "float32[N, 9, (H + 1) // 2, 16]",
            "  %clip_0 = CLIP(input=%joined, max=6.0): float32[N, 9, (H + 1) // 2, 16]",
            "  output y0 = %clip_0",
            "  output y1 = %x1",
            "  output y2 = 0.1",
        ]
    )


def test_small_constants_of_every_kind_are_shown_where_they_are_used() -> None:
    arrays = {
        "[[0.1, -inf], [nan, 1.0]]": np.array([[0.1, -np.inf], [np.nan, 1]], np.float32),
        "0.2": np.float64(0.2),
        "[1.5, -2]": np.array([1.5, -2], ml_dtypes.bfloat16),
        "[0.1]": np.array([0.1], np.float16),
        "[True, False]": np.array([True, False]),
        "[-128, 127]": np.array([-128, 127], np.int8),
        "18446744073709551615": np.uint64(2**64 - 1),
        "[]": np.zeros(0, np.int64),
        "[[], []]": np.zeros((2, 0), np.float32),
    }
    model = model_of(lambda b: tuple(b.constant(array) for array in arrays.values()))
    shown = [line.split(" = ")[1] for line in str(model).splitlines()[1:]]
    assert shown == list(arrays)


def test_parameters_that_are_computed_are_operands() -> None:
    sizes = TensorType(ElementType.INT64, (2,))
    model = model_of(lambda b, x, s: b.add(Reshape, x, s), float32(6), sizes)
    assert "%reshape_0 = RESHAPE(input=%x0, shape=%x1): float32[?, ?]" in str(model)


def test_slots_that_are_left_out_are_not_shown() -> None:
    model = model_of(lambda b, x: b.add(Slice, x, starts=(1,), ends=(3,)), float32(5))
    assert "SLICE(input=%x0, starts=[1], ends=[3]): float32[2]" in str(model)


def test_operands_of_one_name_are_told_apart() -> None:
    x, a, b = (Operand("x", float32(2)) for _ in range(3))
    weights = [Operand("w", float32(9), np.zeros(9, np.float32)) for _ in range(2)]
    taken = Operand("x#2", float32(2))
    operations = [
        Relu("r", (x,), (taken,)),
        Relu("r", (taken,), (a,)),
        Relu("r", (a,), (b,)),
        Add("s", (weights[0], weights[1], None), (Operand("x", float32(9)),)),
    ]
    assert str(Model("m", {"in": x}, operations, {"out": b})).splitlines()[2:] == [
        "  constant @w: float32[9]",
        "  constant @w#2: float32[9]",
        "  %x#2 = RELU(input=%x): float32[2]",
        "  %x#3 = RELU(input=%x#2): float32[2]",
        "  %x#4 = RELU(input=%x#3): float32[2]",
        "  %x#5 = ADD(input0=@w, input1=@w#2): float32[9]",
        "  output out = %x#4",
    ]


@given(st.text())
def test_a_name_never_breaks_a_line(name: str) -> None:
    b = Builder(name)
    b.output(name, b.add(Relu, b.input(name, float32(2)), name=name))
    text = str(b.build())
    assert len(text.splitlines()) == 4
    assert text.encode()


@given(st.text())
def test_a_legible_name_can_be_printed(name: str) -> None:
    shown = legible(name)
    assert shown.isprintable()
    assert shown == name or not name.isprintable()


@given(examples(quantized=True))
def test_the_text_of_a_model_does_not_change(example: Example) -> None:
    model = example.model
    again = Model(model.name, model.inputs, model.operations, model.outputs)
    assert str(model) == str(model) == str(again)
    assert len(str(model).splitlines()) == 1 + len(model.inputs) + len(model.operations) + len(
        model.outputs
    ) + sum(np.asarray(operand.value).size > 8 for operand in model.constants)
