"""Engines refuse in a run what a definition refuses, without arbitrary results or crashes.

Where it is about one operator alone, the test is in the file of its family in `operators`.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.devices.checks import (
    SQUARE,
    TABLE,
    adds,
    assert_refused,
    computed,
    integer,
    integers,
    joined,
    number,
    ones,
    zeros,
)

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, DeviceError
from crosschip.ops import operator_named

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

REFUSED: dict[str, tuple[Build, list[Array]]] = {
    "RANGE by 0": (adds("RANGE"), [integer(0), integer(10), integer(0)]),
    "RESHAPE": (adds("RESHAPE"), [TABLE, integers(3, 5)]),
    "RESHAPE of open size": (adds("RESHAPE", [3, 5]), [TABLE]),
    "RESHAPE of no axes": (adds("RESHAPE"), [np.array(1, np.float32), integers(3)]),
    "EXPAND": (adds("EXPAND"), [TABLE.ravel(), integers(3, 5)]),
    "EXPAND of open size": (adds("EXPAND", [3, 5]), [TABLE.ravel()]),
    "FILL": (lambda b, x: b.add(operator_named("FILL"), x, np.float32(1)), [integers(2, -3)]),
    "ADD": (adds("ADD"), [TABLE[0], TABLE[0, :3]]),
    "MAT_MUL": (adds("MAT_MUL"), [TABLE, TABLE]),
    "MAT_MUL by a constant": (adds("MAT_MUL", np.ones((5, 2), np.float32)), [TABLE]),
    "FULLY_CONNECTED": (adds("FULLY_CONNECTED", np.ones((2, 5), np.float32)), [TABLE]),
    "CONCAT": (lambda b, *xs: b.add(operator_named("CONCAT"), xs, 0), [TABLE, TABLE[:, :2]]),
    "CONV_2D": (adds("CONV_2D", ones(1, 1, 3, 3)), [SQUARE]),
    "ADAPTIVE_AVERAGE_POOL_2D": (
        adds("ADAPTIVE_AVERAGE_POOL_2D", [1, 1]),
        [np.ones((1, 1, 0, 5), np.float32)],
    ),
    "RESIZE_LINEAR": (adds("RESIZE_LINEAR", shape=[2, 2]), [np.ones((1, 1, 0, 2), np.float32)]),
    "TOP_K": (lambda b, x, k: b.add_all(operator_named("TOP_K"), x, k, 1), [TABLE, integers(7)]),
    "ARG_MAX": (adds("ARG_MAX", 1), [zeros(2, 0)]),
    "REVERSE_SEQUENCE": (
        adds("REVERSE_SEQUENCE", batch_axis=0, time_axis=1),
        [TABLE, integers(9, -1, 2)],
    ),
}
"""Operators, and arrays that they refuse; of open sizes, so that it shows only in a run."""

FITS_NOT: dict[str, tuple[Build, list[Array]]] = {
    "CONCAT": (joined(1), [zeros(0, 2), zeros(3, 2)]),
    "CONCAT from the end": (joined(-1), [zeros(1, 3, 2), zeros(1, 0, 2)]),
    "CONCAT of three": (joined(0), [zeros(2, 3), zeros(2, 3), zeros(2, 0)]),
    "GROUP_NORMALIZATION": (adds("GROUP_NORMALIZATION", groups=2), [zeros(0, 3, 2)]),
    "GATHER": (adds("GATHER", axis=1), [zeros(0, 1), integers(1)]),
    "GATHER_ND": (adds("GATHER_ND"), [zeros(1, 0), integers(1)]),
    "GATHER_ND in a batch": (adds("GATHER_ND", 1), [zeros(1, 2, 0), integers([-3])]),
    "PAD": (computed("PAD", "pads"), [zeros(1), integers(-3, 2)]),
    "PAD by what is known": (adds("PAD", [-3, 2]), [zeros(1)]),
    "RESIZE_NEAREST": (computed("RESIZE_NEAREST", "shape"), [zeros(1, 1, 2, 2), integers(0, -1)]),
    "RESIZE_NEAREST by nothing": (
        computed("RESIZE_NEAREST", "scales"),
        [zeros(1, 1, 2, 2), np.array([1, 0], np.float32)],
    ),
    "RESIZE_NEAREST by infinity": (
        computed("RESIZE_NEAREST", "scales"),
        [zeros(1, 1, 2, 2), np.array([np.inf, 1], np.float32)],
    ),
    "CUM_SUM": (computed("CUM_SUM", "axis"), [zeros(0), np.array(1)]),
    "EXPAND": (adds("EXPAND"), [number(1), integers(0, -3)]),
    "RANGE by infinity": (adds("RANGE"), [number(0), number(1), number(np.inf)]),
    "RANGE to infinity": (adds("RANGE"), [number(0), number(np.inf), number(1)]),
    "RANGE from NaN": (adds("RANGE"), [number(np.nan), number(1), number(1)]),
}
"""Operators, and arrays that they refuse in a run."""

CRASHES = {
    "GATHER_ND": "adds('GATHER_ND'), [TABLE, integers([0, 10**9])]",
    "RANGE": "adds('RANGE'), [integer(0), integer(10), integer(0)]",
    "two vectors": """lambda b, x, y: b.add(operator_named("RESHAPE"), b.add(
        operator_named("MAT_MUL"),
        b.add(operator_named("RESHAPE"), x, [1, 2]),
        b.add(operator_named("RESHAPE"), y, [2, 1]),
    ), []), [np.ones(2, np.float32)] * 2""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_do_not_fit(check: Checker, name: str) -> None:
    build, arrays = REFUSED[name]
    model = check.built(build, arrays, check.symbolic)
    with pytest.raises(DeviceError):
        ReferenceDevice().compile(model, Options()).run(arrays)
    assert_refused(check, build, arrays, check.symbolic)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("name", FITS_NOT)
def test_what_does_not_fit(check: Checker, name: str) -> None:
    build, arrays = FITS_NOT[name]
    typing = check.static if "computed" in build.__qualname__ else check.symbolic
    assert_refused(check, build, arrays, typing)
    with pytest.raises(DeviceError):
        check.outputs_of(ReferenceDevice(), check.built(build, arrays, typing), arrays)


@pytest.mark.parametrize("name", CRASHES)
def test_no_crash(check: Checker, name: str) -> None:
    script = f"""
from importlib.metadata import entry_points
from tests.devices.checks import *
from tests.devices.conftest import Checker, static
check = Checker(entry_points(group="crosschip.devices")[{check.device.name!r}].load()())
build, arrays = {CRASHES[name]}
model = check.built(build, arrays, static)
try:
    print(check.outputs_of(check.device, model, arrays)[0])
except DeviceError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2.0" or check.device.name in done.stdout
