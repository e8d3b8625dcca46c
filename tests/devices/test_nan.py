"""NaN stays what it is, whatever function it goes through, and is the greatest and the least.

Where it is about one operator alone, the test is in the file of its family in `operators`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import NUMBERS, adds, agree

from crosschip.conformance.latitude import latitude
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType
from crosschip.ops import operator_named

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

UINT8 = ElementType.UINT8
ROWS = np.array(
    [
        [1, np.nan, 2, 0],
        [3, 1, 2, 0],
        [np.nan] * 4,
        [np.inf, 1, -np.inf, 2],
        [np.nan, 1, 2, 3],
        [1, 200, 3, np.nan],
    ],
    np.float32,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", ["RELU", "RELU6", "HARD_SIGMOID", "EXP", "SIGMOID", "TANH"])
def test_nan_stays(check: Checker, name: str, dtype: Any) -> None:
    model = check.built(adds(name), [NUMBERS.astype(dtype)])
    if check.device.supports(model.operations[0], Options()):
        expected = check.outputs_of(ReferenceDevice(), model, [NUMBERS.astype(dtype)])
        check.compare(model, [NUMBERS.astype(dtype)], expected, 1e-3)


@pytest.mark.parametrize("name", ["ABS", "CLIP", "NEG", "RELU", "RELU6", "SIGMOID", "TANH"])
def test_nan_that_is_constant(check: Checker, name: str) -> None:
    def build(b: Builder, x: Any) -> Any:
        bounds = (-1.0, 1.0) if name == "CLIP" else ()
        known = b.constant(np.array([np.nan, -2.0, 2.0], np.float32))
        return b.add(operator_named("ADD"), b.add(operator_named(name), known, *bounds), x)

    agree(check, build, [np.ones(3, np.float32)], check.static)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
@pytest.mark.parametrize("shift", range(6))
def test_nan_in_order(check: Checker, shift: int) -> None:
    rows = np.roll(np.tile(NUMBERS[:9], (5, 1)), shift)
    for name in ("REDUCE_MAX", "REDUCE_MIN", "ARG_MAX", "ARG_MIN"):
        check(adds(name, [1] if name.startswith("REDUCE") else 1), rows)
    for largest in (True, False):
        check(
            lambda b, x, largest=largest: b.add_all(
                operator_named("TOP_K"), x, 4, 1, largest=largest
            ),
            rows,
        )


FAR = np.array([np.nan, np.inf, -300.5, 255.9, 256, -0.9, 1e30], np.float32)
OPEN: dict[str, tuple[Array, dict[str, Any]]] = {
    "SOFTMAX": (ROWS, {"axis": 1}),
    "LOG_SOFTMAX": (ROWS, {"axis": 1}),
    "MAX_POOL_2D": (ROWS.reshape(1, 1, 6, 4), {"kernel_shape": (2, 2)}),
    "CAST": (
        np.array([np.nan, np.inf, -300.5, 255.9, 256, -0.9, 1e30], np.float32),
        {"dtype": UINT8},
    ),
    "QUANTIZE": (ROWS, {"scale": (0.5,), "zero_point": (3.0,), "dtype": UINT8}),
}
"""Inputs for which definitions leave elements open, or a choice of them."""


@pytest.mark.parametrize("name", OPEN)
def test_what_is_open_is_all_that_differs(check: Checker, name: str) -> None:
    """What definitions leave open of NaN and of numbers out of range; the rest is as they say."""
    x, parameters = OPEN[name]
    model = check.built(adds(name, **parameters), [x])
    if not check.device.supports(model.operations[0], Options()):
        return
    expected = check.outputs_of(ReferenceDevice(), model, [x])
    made = check.outputs_of(check.device, model, [x])
    specified = latitude(model, [x], expected).specified(0, made[0], expected[0])
    np.testing.assert_allclose(specified, expected[0], rtol=1e-5, atol=1e-6)
