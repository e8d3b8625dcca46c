"""NaN and infinity in minima and maxima on OpenVINO."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.devices.openvino_layers import noted_layers, said
from tests.modelling import float32, model_of

import crosschip
from crosschip.ir import Array, Builder, ElementType, Model, Operand
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Greater
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin

SHAPE = (2, 3, 5)
LARGEST = float(np.finfo(np.float32).max)
LEAST = float(np.finfo(np.float32).smallest_subnormal)
SPECIAL = [np.nan, np.inf, -np.inf, LARGEST, -LARGEST, LEAST, -3 * LEAST, 0.0, -0.0, 1.5, -2.5]
NUMBERS = st.sampled_from(SPECIAL)
OF: dict[type[ReduceMax] | type[ReduceMin], Callable[..., Array]] = {
    ReduceMax: np.max,
    ReduceMin: np.min,
}


def extremes(axis: int) -> Model:
    """Compute both extremes, of inputs and of sums."""
    return model_of(
        lambda b, x, y: tuple(
            b.add(operator, each, (axis,)) for each in (x, b.add(Add, x, y)) for operator in OF
        ),
        float32(*SHAPE),
        float32(*SHAPE),
    )


@pytest.fixture(params=[0, 1, 2], scope="module")
def compiled(request: pytest.FixtureRequest) -> tuple[int, crosschip.CompiledModel]:
    return request.param, crosschip.compile(extremes(request.param), "openvino", cache=False)


@settings(max_examples=100, deadline=None)
@given(x=arrays.arrays(np.float32, SHAPE, elements=NUMBERS))
def test_extremes_of_special_numbers(
    compiled: tuple[int, crosschip.CompiledModel], x: Array
) -> None:
    axis, model = compiled
    made = model.run({"x0": x, "x1": np.zeros_like(x)})
    wanted = [function(x, axis, keepdims=True) for function in OF.values()] * 2
    for array, expected in zip(made.values(), wanted, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_two_looks_at_the_numbers_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = noted_layers(monkeypatch)
    model = model_of(lambda b, x: b.add(ReduceMax, x, (2,)), float32(*SHAPE))
    crosschip.compile(model, "openvino", cache=False).close()
    assert len(said(layers, "Reduce")) == 2
    assert not said(layers, "IsNaN")


def test_flags_become_reals_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = noted_layers(monkeypatch)

    def make(b: Builder, x: Operand) -> Operand:
        flags = b.add(Greater, x, b.constant(np.zeros(1, np.float32)))
        return b.add(Cast, flags, ElementType.FLOAT32)

    with crosschip.compile(model_of(make, float32(*SHAPE)), "openvino", cache=False) as model:
        x = np.random.default_rng(4).normal(size=SHAPE).astype(np.float32)
        (made,) = model.run({"x0": x}).values()
    np.testing.assert_array_equal(made, (x > 0).astype(np.float32))
    assert not said(layers, "Convert")
