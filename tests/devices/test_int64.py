"""int64 on OpenVINO, which computes in int32, and partly in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.devices.conftest import Checker
from tests.limits import is_declined_for_limit
from tests.random_integers import integers

import crosschip
from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Options
from crosschip.hal.conditions import InputRange, OutOfRange
from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType, UnsupportedError
from crosschip.lowering.narrowing import conditions_of, narrowing
from crosschip.ops.standard import arithmetic, comparison, reduction
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Range
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.searching import ArgMax, TopK, Unique

INT32, FLOAT32 = (-(2**31), 2**31 - 1), (-(2**24), 2**24 - 1)
Build = Callable[[Builder, Operand], Operand]

pytestmark = pytest.mark.parametrize("device", ["openvino"], indirect=True)


def model_of(build: Build, *shape: int, type_: ElementType = ElementType.INT64) -> Model:
    """Return a model of one input, `x`."""
    b = Builder("wide")
    b.output("y", build(b, b.input("x", TensorType(type_, shape))))
    return b.build()


def five(x: Operand) -> Array:
    """Return the constant 5 of an operand's element type."""
    return np.array(5, x.type.element_type.dtype)


MODELS: dict[str, tuple[Build, tuple[int, int]]] = {
    "moved": (lambda b, x: b.add(Reshape, x, (4, 3)), INT32),
    "counted": (lambda b, x: b.add(reduction.CumSum, x, 1), (-(2**29), 2**29 - 1)),
    "doubled": (lambda b, x: b.add(arithmetic.Add, x, x), (-(2**30), 2**30 - 1)),
    "squared": (lambda b, x: b.add(arithmetic.Mul, x, x), (-(2**15), 2**15 - 1)),
    "bounded": (lambda b, x: b.add(arithmetic.Clip, x, -7, 2**24), INT32),
    "greatest": (lambda b, x: b.add(ArgMax, x, 1), INT32),
    "best": (lambda b, x: b.add_all(TopK, x, 2, 1)[0], INT32),
    "equal": (lambda b, x: b.add(comparison.Equal, x, five(x)), FLOAT32),
    "less": (lambda b, x: b.add(comparison.Less, x, five(x)), FLOAT32),
    "divided": (lambda b, x: b.add(arithmetic.Div, x, five(x)), FLOAT32),
    "rest": (lambda b, x: b.add(arithmetic.Mod, x, five(x)), FLOAT32),
    "summed": (lambda b, x: b.add(reduction.ReduceSum, x, (1,)), (-(2**22), 2**22 - 1)),
    "most": (lambda b, x: b.add(reduction.ReduceMax, x, (1,)), FLOAT32),
    "multiplied": (
        lambda b, x: b.add(MatMul, x, b.constant(np.full((4, 2), five(x)))),
        (-(2**19), 2**19 - 1),
    ),
    "sorted": (lambda b, x: b.add_all(Unique, x)[0], FLOAT32),
}


@pytest.mark.parametrize("name", MODELS)
def test_int64_is_right_up_to_the_ends_of_its_range(check: Checker, name: str) -> None:
    build, (low, high) = MODELS[name]
    model = model_of(build, 3, 4)
    if any(map(is_declined_for_limit, narrowing(check.device, Options())(model).answers)):
        return
    conditions = conditions_of(check.device, model, Options())
    assert conditions == [InputRange("x", low, high, "openvino")]
    ends = [low, low + 1, low + 3, low // 2 - 1, -5, 0, 5, 7, high // 2 + 1, high - 2, high - 1]
    x = np.array([*ends, high]).reshape(3, 4)
    with crosschip.compile(model, [check.device], cache=False) as compiled:
        for array in (x, x[:, ::-1], x[::-1]):
            (expected,) = ReferenceProgram(model).run([array])
            np.testing.assert_array_equal(compiled.run({"x": array})["y"], expected)
        for beyond in (low - 1, high + 1, 2**32 + 5, -(2**63)):
            x = np.full((3, 4), 1)
            x[1, 2] = beyond
            with pytest.raises(OutOfRange, match=f"input 'x': {beyond} is not from {low} to"):
                compiled.run({"x": x})


@pytest.mark.parametrize("name", ["equal", "less", "divided", "rest", "summed", "most"])
def test_int32_that_is_computed_in_float32(check: Checker, name: str) -> None:
    """Integers that float32 does not hold must be told apart."""
    build, (low, high) = MODELS[name]
    model = model_of(build, 3, 4, type_=ElementType.INT32)
    assert conditions_of(check.device, model, Options()) == [InputRange("x", low, high, "openvino")]
    x = np.array([2**24 + 1, 2**24, 2**31 - 1, 2**31 - 2] * 3, np.int32).reshape(3, 4)
    with crosschip.compile(model, [check.device, ReferenceDevice()], cache=False) as compiled:
        (expected,) = ReferenceProgram(model).run([x])
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], expected)


@settings(max_examples=60)
@given(st.data())
def test_what_runs_is_right(check: Checker, data: st.DataObject) -> None:
    """Alone, the device is right or refuses; with the reference, nothing is refused."""
    bits = data.draw(st.sampled_from([5, 16, 24, 31, 33, 63]))
    example = data.draw(integers(bits=bits, open=data.draw(st.booleans())))
    arrays = [example.inputs[name] for name in example.model.inputs]
    expected = ReferenceProgram(example.model).run(arrays)
    with crosschip.compile(
        example.model, [check.device, ReferenceDevice()], cache=False
    ) as compiled:
        for made, right in zip(compiled.run(example.inputs).values(), expected, strict=True):
            np.testing.assert_array_equal(made, right)
    try:
        alone = crosschip.compile(example.model, [check.device], cache=False)
    except UnsupportedError:
        return
    with alone:
        try:
            outputs = alone.run(example.inputs)
        except OutOfRange:
            return
        for made, right in zip(outputs.values(), expected, strict=True):
            np.testing.assert_array_equal(made, right)


def test_numbers_of_floats_that_may_be_anything_go_elsewhere(check: Checker) -> None:
    model = model_of(lambda b, x: b.add(Cast, x, ElementType.INT64), 2, type_=ElementType.FLOAT32)
    with pytest.raises(UnsupportedError, match=r"CAST.output: int64 is computed in int32"):
        crosschip.compile(model, [check.device], cache=False)
    x = np.array([-1.5, 2.0**40], np.float32)
    with crosschip.compile(model, [check.device, ReferenceDevice()], cache=False) as compiled:
        assert compiled.placement.decisions[0].device == "reference"
        assert compiled.run({"x": x})["y"].tolist() == [-1, 2**40]


def test_numbers_of_floats_that_are_bounded(check: Checker) -> None:
    def build(b: Builder, x: Operand) -> Operand:
        return b.add(Cast, b.add(arithmetic.Clip, x, -1e9, 1e9), ElementType.INT64)

    model = model_of(build, 3, type_=ElementType.FLOAT32)
    with crosschip.compile(model, [check.device], cache=False) as compiled:
        x = np.array([-3.7, 1e8, 1e12], np.float32)
        assert compiled.run({"x": x})["y"].tolist() == [-3, 10**8, 10**9]


@pytest.mark.parametrize(
    ("start", "end", "step", "fits"),
    [
        (-(2**29), 2**29 - 1, 2**28 + 1, True),
        (2**29 - 1, -(2**29), -(2**29), True),
        (2**29 - 20, 2**29 - 1, 3, True),
        (0, 2**31 - 1, 2**31 - 1, False),
        (-(2**31), 2**31 - 1, 2**30, False),
    ],
)
def test_ranges_that_are_counted_in_32_bits(
    check: Checker, start: int, end: int, step: int, fits: bool
) -> None:
    b = Builder("range")
    inputs = [b.input(name, TensorType(ElementType.INT64, ())) for name in ("s", "e", "d")]
    b.output("y", b.add(Range, *inputs))
    given: dict[str, Any] = {n: np.array(v) for n, v in zip("sed", (start, end, step), strict=True)}
    with crosschip.compile(b.build(), [check.device], cache=False) as compiled:
        if fits:
            assert compiled.run(given)["y"].tolist() == list(range(start, end, step))
        else:
            with pytest.raises(OutOfRange, match="is not from -536870912 to 536870911"):
                compiled.run(given)
