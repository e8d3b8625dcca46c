"""The error of outputs against those of an engine, in `crosschip bench`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from tests.modelling import float32, model_of, outputs_of

from crosschip.bench.agreement import ErrorMeasure
from crosschip.ir import Array, DeviceError, Model
from crosschip.ops.standard.activation import Sigmoid
from crosschip.ops.standard.arithmetic import Sub
from crosschip.ops.standard.unary import Exp

X = {"x0": np.full(4, -11.7, np.float32)}
SIGMOID = model_of(lambda b, x: b.add(Sigmoid, x), float32(4))
DIFFERENCE = model_of(lambda b, x: b.add(Sub, b.add(Exp, x), np.float32(8e-6)), float32(4))


def errors(model: Model, off: float, runs: list[Model]) -> float:
    """Against an engine whose first element is off."""
    outputs = outputs_of(model, X)
    theirs = {name: value.copy() for name, value in outputs.items()}
    for value in theirs.values():
        value[0] += np.float32(off)

    def run_once(exposed: Model) -> Mapping[str, Array]:
        runs.append(exposed)
        return outputs_of(exposed, X)

    return ErrorMeasure(model, X, run_once).error(outputs, theirs)


@pytest.mark.parametrize("off", [1.5e-7, -1.5e-7])
def test_outputs_of_8e_6_that_differ_by_a_spacing_at_1_are_the_same(off: float) -> None:
    runs: list[Model] = []
    assert errors(SIGMOID, off, runs) == 0
    assert runs == [], "of a sigmoid it is known without a run"


def test_they_are_not_where_what_was_read_is_as_small() -> None:
    runs: list[Model] = []
    assert errors(DIFFERENCE, 1.5e-7, runs) > 1e-2
    assert len(runs) == 1
    assert errors(DIFFERENCE, 1e-12, []) < 1e-5


def test_a_real_error_is_in_its_unit() -> None:
    assert errors(SIGMOID, 8e-6, []) == pytest.approx(0.4, abs=0.2)


def test_what_is_the_same_or_not_finite_is_looked_at_once() -> None:
    runs: list[Model] = []
    assert errors(DIFFERENCE, 0.0, runs) == 0
    assert errors(DIFFERENCE, math.nan, runs) == math.inf
    assert runs == []


def test_a_device_that_does_not_show_what_was_read_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def run_once(exposed: Model) -> Mapping[str, Array]:
        raise DeviceError("chip: too many outputs")

    outputs = outputs_of(DIFFERENCE, X)
    theirs = dict.fromkeys(outputs, np.ones(4, np.float32))
    assert ErrorMeasure(DIFFERENCE, X, run_once).error(outputs, theirs) > 0.5
    assert "how much rounding explains is not known: chip: too many outputs" in caplog.text
