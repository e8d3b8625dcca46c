"""Engines refuse in a run what a definition refuses: no invented numbers, and no crash."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, DeviceError
from crosschip.ops import operator_named

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
IMAGE = np.ones((1, 1, 2, 2), np.float32)
FILTER = np.ones((1, 1, 3, 3), np.float32)
NOTHING = np.zeros((2, 0), np.float32)


def adds(name: str, *more: Any, **named: Any) -> Build:
    """Adds one operator to a model, with these arguments after the inputs."""
    return lambda b, *xs, **also: b.add(operator_named(name), *xs, *more, **named, **also)


def integers(*values: Any) -> Array:
    return np.array(values, np.int64)


def single(value: int) -> Array:
    return np.array(value, np.int64)


INDEXED: dict[str, tuple[Build, list[Array]]] = {
    "GATHER": (adds("GATHER", 0), [TABLE, integers(0, 9)]),
    "GATHER_ND": (adds("GATHER_ND"), [TABLE, integers([0, 9])]),
    "GATHER_ELEMENTS": (adds("GATHER_ELEMENTS", 0), [TABLE, integers([0, 9, 0, 0])]),
    "SCATTER_ND": (adds("SCATTER_ND"), [TABLE, integers([0, 9]), np.ones(1, np.float32)]),
    "SCATTER_ELEMENTS": (
        adds("SCATTER_ELEMENTS", 0),
        [TABLE, integers([0, 9, 0, 0]), np.ones((1, 4), np.float32)],
    ),
}
"""Operators that read indices; in the arrays, 9 is out of range."""

REFUSED: dict[str, tuple[Build, list[Array]]] = {
    "RANGE by 0": (adds("RANGE"), [single(0), single(10), single(0)]),
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
    "CONV_2D": (adds("CONV_2D", FILTER), [IMAGE]),
    "ADAPTIVE_AVERAGE_POOL_2D": (
        adds("ADAPTIVE_AVERAGE_POOL_2D", [1, 1]),
        [np.ones((1, 1, 0, 5), np.float32)],
    ),
    "RESIZE_LINEAR": (adds("RESIZE_LINEAR", shape=[2, 2]), [np.ones((1, 1, 0, 2), np.float32)]),
    "TOP_K": (lambda b, x, k: b.add_all(operator_named("TOP_K"), x, k, 1), [TABLE, integers(7)]),
    "ARG_MAX": (adds("ARG_MAX", 1), [NOTHING]),
    "REVERSE_SEQUENCE": (
        adds("REVERSE_SEQUENCE", batch_axis=0, time_axis=1),
        [TABLE, integers(9, -1, 2)],
    ),
}
"""Operators, and arrays that they refuse; of open sizes, so that it shows only in a run."""


def assert_refused(check: Checker, build: Build, arrays: list[Array], typing: Any) -> None:
    model = check.built(build, arrays, typing)
    if all(check.device.supports(o, Options()) for o in model.operations):
        program = check.device.compile(model, Options(threads=1))
        for _ in range(2):
            with pytest.raises(DeviceError, match=check.device.name):
                program.run(arrays)


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("index", [3, -5, 10**6])
@pytest.mark.parametrize("typing", ["static", "symbolic"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_indices_out_of_range(
    check: Checker, name: str, index: int, typing: str, dtype: Any
) -> None:
    build, arrays = INDEXED[name]
    wrong = np.where(arrays[1] == 9, 4 if index == 3 else index, arrays[1]).astype(dtype)
    arrays = [arrays[0], wrong, *arrays[2:]]
    assert_refused(check, build, arrays, getattr(check, typing))
    # Computed in the model, and known in advance.
    one = np.array(1, dtype)
    multiplied = [*arrays, one]
    assert_refused(
        check,
        lambda b, x, i, *u: build(b, x, b.add(operator_named("MUL"), i, u[-1]), *u[:-1]),
        multiplied,
        getattr(check, typing),
    )
    others = [arrays[0], *arrays[2:]]
    assert_refused(
        check,
        lambda b, x, *u: build(b, x, b.constant(wrong), *u),
        others,
        getattr(check, typing),
    )


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("typing", ["static", "symbolic"])
def test_indices_in_range(check: Checker, name: str, typing: str) -> None:
    build, arrays = INDEXED[name]
    right = [arrays[0], np.where(arrays[1] == 9, -2, arrays[1]), *arrays[2:]]
    model = check.built(build, right, getattr(check, typing))
    if all(check.device.supports(o, Options()) for o in model.operations):
        expected = check.outputs_of(ReferenceDevice(), model, right)
        check.compare(model, right, expected, 0)
        program = check.device.compile(model, Options())
        saved = program.save()
        assert saved is not None
        again = check.device.load(saved, model, Options())
        np.testing.assert_array_equal(again.run(right)[0], expected[0])
        wrong = [arrays[0], np.where(arrays[1] == 9, 100, arrays[1]), *arrays[2:]]
        with pytest.raises(DeviceError, match=check.device.name):
            again.run(wrong)
        np.testing.assert_array_equal(again.run(right)[0], expected[0])


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_do_not_fit(check: Checker, name: str) -> None:
    build, arrays = REFUSED[name]
    model = check.built(build, arrays, check.symbolic)
    with pytest.raises(DeviceError):
        ReferenceDevice().compile(model, Options()).run(arrays)
    assert_refused(check, build, arrays, check.symbolic)


def test_negative_sizes(check: Checker) -> None:
    def split(b: Any, x: Any, sizes: Any) -> Any:
        return b.add_all(operator_named("SPLIT"), x, 1, sizes)

    assert_refused(check, split, [TABLE, integers(-1, 5)], check.static)


def test_windows_larger_than_an_image(check: Checker) -> None:
    if check.device.name == "openvino":  # ONNX Runtime returns no pixels
        for name in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
            assert_refused(check, adds(name, kernel_shape=[3, 3]), [IMAGE], check.symbolic)


@pytest.mark.parametrize("bounds", [(10, 0, 1), (0, 10, -1), (10, 0, -3), (0, 10, 3), (5, 5, 1)])
def test_ranges(check: Checker, bounds: tuple[int, int, int]) -> None:
    check(adds("RANGE"), *map(single, bounds), rankless_too=False)
    start, end, step = map(single, bounds)
    check(lambda b, x: b.add(operator_named("RANGE"), x, end, step), start, rankless_too=False)


CRASHES = {
    "GATHER_ND": "adds('GATHER_ND'), [TABLE, integers([0, 10**9])]",
    "RANGE": "adds('RANGE'), [single(0), single(10), single(0)]",
    "two vectors": """lambda b, x, y: b.add(operator_named("RESHAPE"), b.add(
        operator_named("MAT_MUL"),
        b.add(operator_named("RESHAPE"), x, [1, 2]),
        b.add(operator_named("RESHAPE"), y, [2, 1]),
    ), []), [np.ones(2, np.float32)] * 2""",
}


@pytest.mark.parametrize("name", CRASHES)
def test_no_crash(check: Checker, name: str) -> None:
    script = f"""
from importlib.metadata import entry_points
from tests.devices.test_refusals import *
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


def test_tensors_without_axes(check: Checker) -> None:
    number = np.array(2, np.float32)
    for build in (adds("EXPAND", []), adds("TILE", []), adds("RESHAPE", [])):
        model = check.built(build, [number])
        if check.device.supports(model.operations[0], Options()):
            check.compare(model, [number], [number], 0)


NUMBERS = np.array([np.nan, -np.inf, np.inf, -1, 1, 0, 2, np.nan, 3, 5, -7, 9], np.float32)
OTHERS = np.array([1, np.nan, 1, np.nan, 1, 0, -np.inf, 2, 3, np.inf, -7, np.nan], np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", ["RELU", "RELU6", "HARD_SIGMOID", "EXP", "SIGMOID", "TANH"])
def test_nan_stays(check: Checker, name: str, dtype: Any) -> None:
    model = check.built(adds(name), [NUMBERS.astype(dtype)])
    if check.device.supports(model.operations[0], Options()):
        expected = check.outputs_of(ReferenceDevice(), model, [NUMBERS.astype(dtype)])
        check.compare(model, [NUMBERS.astype(dtype)], expected, 1e-3)


def test_nan_and_bounds(check: Checker) -> None:
    check(adds("CLIP", -2.0, 3.0), NUMBERS)
    check(adds("MAX"), NUMBERS, OTHERS)
    check(adds("MIN"), NUMBERS, OTHERS)
    check(adds("MAX", np.float32(1)), NUMBERS)
    check(lambda b, x: b.add(operator_named("MIN"), b.constant(OTHERS), x), NUMBERS)


@pytest.mark.parametrize("shift", range(6))
def test_nan_in_order(check: Checker, shift: int) -> None:
    rows = np.roll(np.tile(NUMBERS[:9], (5, 1)), shift)
    if check.device.name == "openvino":
        for name in ("REDUCE_MAX", "REDUCE_MIN", "ARG_MAX", "ARG_MIN"):
            check(adds(name, [1] if name.startswith("REDUCE") else 1), rows)
        for largest in (True, False):
            check(
                lambda b, x, largest=largest: b.add_all(
                    operator_named("TOP_K"), x, 4, 1, largest=largest
                ),
                rows,
            )


@pytest.mark.parametrize("name", ["REDUCE_MAX", "REDUCE_MIN", "REDUCE_MEAN"])
def test_extremes_of_nothing(check: Checker, name: str) -> None:
    model = check.built(adds(name, [1]), [NOTHING], check.symbolic)
    if check.device.name == "openvino":
        expected = check.outputs_of(ReferenceDevice(), model, [NOTHING])
        check.compare(model, [NOTHING], expected, 0)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("stride", [2, 3, 5])
@pytest.mark.parametrize("typing", ["static", "symbolic"])
def test_one_channel_and_one_column(
    check: Checker, channels: int, stride: int, typing: str
) -> None:
    random = np.random.default_rng(0)
    for width in (3, 4, 2 + stride):
        image = random.normal(size=(2, channels, 5, width)).astype(np.float32)
        filters = random.normal(size=(3, channels, 3, 3)).astype(np.float32)
        model = check.built(
            adds("CONV_2D", filters, strides=[1, stride]), [image], getattr(check, typing)
        )
        expected = check.outputs_of(ReferenceDevice(), model, [image])
        check.compare(model, [image], expected, 1e-5)
