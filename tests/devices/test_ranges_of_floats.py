"""Ranges of floats on OpenVINO, where float32 counts exactly."""

from __future__ import annotations

import numpy as np
import pytest
from tests.modelling import float32, model_of

import crosschip
from crosschip.ir import Builder, DeviceError, Model, Operand, UnsupportedError
from crosschip.ops.standard.creation import Range

ENDS = [0, 1, 2, 0.5, 1.5, -0.25, -3, 7.9999995, 8.000001, 1e-30, -1e-30, 1000, 2.0**-149]


def ranging(start: float, step: float) -> Model:
    def make(b: Builder, end: Operand) -> Operand:
        first, by = (b.constant(np.array([value], np.float32)) for value in (start, step))
        return b.add(Range, first, end, by)

    return model_of(make, float32(1))


@pytest.mark.parametrize(
    ("start", "step"), [(0, 1), (0, -1), (3, 1), (-3, 1), (2, -1), (0, 0.25), (1.5, 0.5), (4, -2)]
)
def test_openvino_counts_as_the_definition_does(start: float, step: float) -> None:
    model = ranging(start, step)
    with (
        crosschip.compile(model, ["openvino"], cache=False) as compiled,
        crosschip.compile(model, ["reference"], cache=False) as reference,
    ):
        for end in ENDS:
            given = {"x0": np.array([end], np.float32)}
            np.testing.assert_array_equal(compiled.run(given)["y0"], reference.run(given)["y0"])


@pytest.mark.parametrize("end", [np.inf, -np.inf, np.nan, 1e12])
def test_openvino_refuses_ends_that_are_never_reached(end: float) -> None:
    with (
        crosschip.compile(ranging(0, 1), ["openvino"], cache=False) as compiled,
        pytest.raises(DeviceError, match=r"RANGE .*end: is more than"),
    ):
        compiled.run({"x0": np.array([end], np.float32)})


@pytest.mark.parametrize(
    ("start", "step", "told"),
    [(0, 0.1, "is no power of 2"), (0, 3, "is no power of 2"), (0.5, 1, "is no multiple")],
)
def test_openvino_refuses_what_float32_does_not_count(start: float, step: float, told: str) -> None:
    with pytest.raises(UnsupportedError, match=told):
        crosschip.compile(ranging(start, step), ["openvino"], cache=False)
