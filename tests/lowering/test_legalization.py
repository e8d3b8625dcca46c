"""Rewrites of single operations: what they leave legal, what they name, what they compute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import crosschip
from crosschip.devices.openvino.lowering import REWRITES
from crosschip.devices.openvino.lowering.convolution import (
    reads_lone_column,
    strides_over_padding,
)
from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType
from crosschip.lowering.legalization import legalize, rebuild
from crosschip.ops import Add, Conv2D, Mul, Operator

X = TensorType(ElementType.FLOAT32, (2, 3))


def doubled_by_sum(b: Builder, op: Operator) -> Sequence[Operand] | None:
    """`x * 2` as `x + x`."""
    assert isinstance(op, Mul)
    factor = op.input1.value
    return (b.add(Add, op.input0, op.input0),) if factor is not None and factor == 2 else None


def product(factor: float) -> Model:
    b = Builder("product")
    x = b.input("x", X)
    b.output("y", b.add(Mul, x, np.array(factor, np.float32), name="scale"))
    return b.build()


def test_a_model_that_is_legal_stays_the_same_object() -> None:
    model = product(3)
    legal = legalize(model, {Mul: (doubled_by_sum,)})
    assert legal.model is model
    assert legal.source(model.operations[0]) is model.operations[0]


def test_what_a_rewrite_builds_stands_for_the_operation() -> None:
    model = product(2)
    legal = legalize(model, {Mul: (doubled_by_sum,)})
    legal.model.verify()
    (operation,) = legal.model.operations
    assert isinstance(operation, Add)
    assert operation.outputs == model.operations[0].outputs
    assert legal.source(operation) is model.operations[0]


def test_an_operation_of_the_same_operator_keeps_its_name() -> None:
    """And is rewritten in turn, until no rewrite applies."""

    def halved(b: Builder, op: Operator) -> Sequence[Operand] | None:
        assert isinstance(op, Mul)
        factor = np.asarray(op.input1.value)
        if factor <= 1:
            return None
        part = rebuild(b, op, input1=(factor / 2).astype(np.float32))
        return (b.add(Add, part, part),)

    legal = legalize(product(4), {Mul: (halved,)})
    legal.model.verify()
    assert [operation.type for operation in legal.model.operations] == ["MUL", "ADD", "ADD"]
    assert legal.model.operations[0].name == "scale"
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(outputs(legal.model, x), 4 * x)


def convolutions() -> st.SearchStrategy[Model]:
    """Convolutions of one or two channels, many of which OpenVINO gets wrong as they stand."""

    @st.composite
    def draw_model(draw: st.DrawFn) -> Model:
        kernel = draw(st.sampled_from([(1, 1), (1, 3), (3, 2)]))
        channels, group = draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
        type_ = draw(st.sampled_from([ElementType.FLOAT32, ElementType.BFLOAT16]))
        width = draw(st.sampled_from([kernel[1], kernel[1] + 1, 6]))
        filters = np.arange(1, 1 + 4 * channels // group * kernel[0] * kernel[1]) % 5 - 2
        shape = (4, channels // group, *kernel)
        b = Builder("convolution")
        x = b.input("x", TensorType(type_, (1, channels, 6, width)))
        y = b.add(
            Conv2D,
            x,
            filters.reshape(shape).astype(type_.dtype),
            np.array([1, -1, 0, 2]).astype(type_.dtype) if draw(st.booleans()) else None,
            pads=draw(st.sampled_from([(0, 0, 0, 0), (1, 0, 0, 1)])),
            strides=draw(st.sampled_from([(1, 1), (1, 2), (2, 2)])),
            group=group,
            name="conv",
        )
        b.output("y", y)
        return b.build()

    return draw_model()


def outputs(model: Model, x: Array) -> Array:
    with crosschip.compile(model, ["reference"], cache=False) as compiled:
        return np.asarray(compiled.run({"x": x})["y"])


@given(convolutions())
def test_convolutions_for_openvino_compute_the_same(model: Model) -> None:
    legal = legalize(model, REWRITES).model
    legal.verify()
    for operation in legal.operations:
        if isinstance(operation, Conv2D):
            assert operation.name == "conv"
            assert not strides_over_padding(operation)
            assert not (operation.group == 1 and reads_lone_column(operation))
            assert operation.outputs[0].type.element_type is ElementType.FLOAT32
    type_ = model.inputs["x"].type
    x = (np.arange(np.prod(type_.static_shape or ())) % 7 - 3).reshape(type_.static_shape or ())
    x = x.astype(type_.element_type.dtype)
    # Small integers: bfloat16 holds every sum, and no order of summing rounds.
    np.testing.assert_array_equal(outputs(legal, x), outputs(model, x))
