"""Omitting a parameter equals passing its default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, contents, float32, model_of

from crosschip.hal import Options
from crosschip.ir import Builder, ElementType, Model, Operand, constant
from crosschip.ops import Operator, operators
from crosschip.ops.definition.slots import Fuse, Parameter
from crosschip.ops.standard.activation import LeakyRelu, Softmax
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import ShapeOf
from crosschip.runtime.cache.key import cache_key
from crosschip.runtime.guard.devices import GuardedDevice

DEFAULTS = [
    pytest.param(operator, slot, id=f"{name}.{slot.name}")
    for name, operator in operators().items()
    for slot in operator.slots
    if isinstance(slot, Parameter) and slot.default is not None
]


REALS = ("real number", "real numbers")


@pytest.mark.parametrize(("operator", "slot"), DEFAULTS)
def test_a_default_reads_as_if_it_were_spelled_out(
    operator: type[Operator], slot: Parameter[Any]
) -> None:
    spelled = constant(slot.encode(slot.default), "spelled")
    inputs: list[Operand | None] = [None] * len(operator.slots)
    left_out = operator("o", tuple(inputs))
    inputs[slot.index] = spelled
    assert slot.is_default(spelled)
    value = getattr(operator("o", tuple(inputs)), slot.name)
    assert repr(getattr(left_out, slot.name)) == repr(value)
    assert value == (pytest.approx(slot.default) if slot.kind.endswith(REALS) else slot.default)


def filters() -> Operand:
    return constant(np.ones((2, 2, 1, 1), np.float32), "filters")


Make = Callable[[Builder, Operand, dict[str, Any]], Operand]
USES: dict[str, tuple[Make, dict[str, object]]] = {
    "real": (lambda b, x, more: b.add(LeakyRelu, x, **more), {"alpha": 0.01}),
    "real in an array": (
        lambda b, x, more: b.add(LeakyRelu, x, **more),
        {"alpha": constant(np.array([0.01], np.float32), "alpha")},
    ),
    "integer": (lambda b, x, more: b.add(Softmax, x, **more), {"axis": Softmax.axis.default}),
    "wide integer": (
        lambda b, x, more: b.add(Softmax, x, **more),
        {"axis": constant(np.array(Softmax.axis.default, np.int64), "axis")},
    ),
    "choice": (lambda b, x, more: b.add(Add, x, x, **more), {"fuse_code": Fuse.NONE}),
    "choice by number": (lambda b, x, more: b.add(Add, x, x, **more), {"fuse_code": 0}),
    "element type": (
        lambda b, x, more: b.add(ShapeOf, x, **more),
        {"dtype": ElementType.INT64},
    ),
    "several": (
        lambda b, x, more: b.add(Conv2D, x, filters(), **more),
        {"group": 1, "strides": (1, 1), "dilations": np.array([1, 1]), "pads": (0, 0, 0, 0)},
    ),
}


def key(model: Model) -> str:
    return cache_key(model, GuardedDevice(DelegatingDevice(), "npu"), Options())


@pytest.mark.parametrize("kind", USES)
def test_a_default_that_is_spelled_out_changes_nothing(kind: str) -> None:
    make, spelled = USES[kind]
    one, other = (
        model_of(lambda b, x, more=more: make(b, x, more), float32(1, 2, 3, 3))
        for more in (spelled, {})
    )
    assert contents(one) == contents(other)
    assert key(one) == key(other)
    for slot in spelled:
        assert f"{slot}=" not in str(one)


OTHER: dict[str, tuple[type[Operator], object]] = {
    "another real": (LeakyRelu, 0.02),
    "the next real": (LeakyRelu, np.nextafter(np.float32(0.01), np.float32(1))),
    "a real with more digits": (LeakyRelu, constant(np.array(0.01), "alpha")),
    "another axis": (Softmax, 2),
}


@pytest.mark.parametrize("kind", OTHER)
def test_what_is_not_the_default_stays(kind: str) -> None:
    operator, value = OTHER[kind]
    one, other = (
        model_of(lambda b, x, given=given: b.add(operator, x, *given), float32(1, 2, 3, 3))
        for given in ((value,), ())
    )
    assert contents(one) != contents(other)
    assert key(one) != key(other)


def test_the_sign_of_zero_is_not_lost() -> None:
    slot = LeakyRelu.alpha
    for value in (0.0, -0.0):
        zero = type(slot)(slot.types, slot.decode, 0.0, kind="real number", optional=True)
        zero.name = "zero"
        assert zero.is_default(constant(np.array(value, np.float32), "c")) is (str(value) == "0.0")


def test_choices_and_element_types_are_shown_by_name() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        return b.add(Add, x, x, fuse_code=Fuse.RELU6), b.add(Cast, x, ElementType.BFLOAT16)

    text = str(model_of(make, float32(2)))
    assert "ADD(input0=%x0, input1=%x0, fuse_code=RELU6)" in text
    assert "CAST(input=%x0, dtype=bfloat16)" in text


def test_a_number_that_is_no_choice_can_still_be_looked_at() -> None:
    x, code = Operand("x", float32(2)), constant(np.array(9, np.int32), "code")
    broken = Add("a", (x, x, code), (Operand("y", float32(2)),))
    text = str(Model("m", {"x": x}, [broken], {"y": broken.outputs[0]}))
    assert "fuse_code=9" in text
