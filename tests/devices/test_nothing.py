"""ONNX Runtime on tensors without elements, and on what does not fit and shows only in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.conftest import rankless
from tests.devices.test_corners import agree
from tests.devices.test_refusals import adds, assert_refused, integers

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, DeviceError
from crosschip.ops import operator_named

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

pytestmark = pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


def number(value: float) -> Array:
    return np.array(value, np.float32)


def joined(axis: int) -> Build:
    return lambda b, *parts: b.add(operator_named("CONCAT"), parts, axis)


def computed(name: str, slot: str, **named: Any) -> Build:
    """Adds one operator to a model whose last input is a parameter."""
    return lambda b, *xs: b.add(operator_named(name), *xs[:-1], **{slot: xs[-1]}, **named)


FITS: dict[str, tuple[Build, list[Array]]] = {
    "CONCAT": (joined(1), [zeros(2, 0), zeros(2, 3)]),
    "CONCAT of nothing": (joined(0), [zeros(0, 3), zeros(0, 3)]),
    "GROUP_NORMALIZATION of no images": (
        adds("GROUP_NORMALIZATION", groups=2),
        [zeros(0, 4, 3)],
    ),
    "GROUP_NORMALIZATION of no pixels": (
        adds("GROUP_NORMALIZATION", groups=2),
        [zeros(2, 4, 0)],
    ),
    "GROUP_NORMALIZATION of no channels": (adds("GROUP_NORMALIZATION", groups=1), [zeros(1, 0)]),
    "INSTANCE_NORMALIZATION": (adds("INSTANCE_NORMALIZATION"), [zeros(1, 2, 0)]),
    "LAYER_NORMALIZATION": (adds("LAYER_NORMALIZATION", np.ones((), np.float32)), [zeros(0, 2)]),
    "GATHER_ND": (adds("GATHER_ND"), [zeros(2, 0), integers([1], [-2])]),
    "GATHER_ND of no places": (adds("GATHER_ND"), [zeros(2, 3), zeros(0, 1, dtype=np.int64)]),
    "UNIQUE": (lambda b, x: b.add_all(operator_named("UNIQUE"), x), [zeros(0, 2)]),
    "UNIQUE entries": (lambda b, x: b.add_all(operator_named("UNIQUE"), x, 0), [zeros(2, 0)]),
    "MAT_MUL": (adds("MAT_MUL"), [zeros(0, 1), zeros(1)]),
    "MAT_MUL in a batch": (adds("MAT_MUL"), [zeros(2, 0, 3), zeros(3)]),
    "MAT_MUL from the left": (adds("MAT_MUL"), [zeros(3), zeros(3, 0)]),
    "MAT_MUL of vectors": (adds("MAT_MUL"), [zeros(3), zeros(3)]),
    "PAD": (computed("PAD", "pads"), [np.ones(3, np.float32), integers(-3, 2)]),
    "RESIZE_NEAREST": (computed("RESIZE_NEAREST", "shape"), [zeros(1, 1, 2, 2), integers(0, 3)]),
    "RESIZE_NEAREST by scales": (
        computed("RESIZE_NEAREST", "scales"),
        [np.ones((1, 1, 2, 2), np.float32), np.array([1.5, 2], np.float32)],
    ),
}
"""Operators, and arrays without elements, with which they make something or nothing."""

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


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_fits(check: Checker, name: str, dtype: Any) -> None:
    build, arrays = FITS[name]
    given = [x.astype(dtype) if x.dtype == np.float32 else x for x in arrays]
    for typing in (check.static, check.symbolic):
        agree(check, build, given, typing)

    def behind(b: Any, *xs: Any) -> Any:
        """The same of a tensor that the engine has made itself."""
        return build(b, b.add(operator_named("NEG"), xs[0]), *xs[1:])

    agree(check, behind, given, check.symbolic)


@pytest.mark.parametrize("name", FITS_NOT)
def test_what_does_not_fit(check: Checker, name: str) -> None:
    build, arrays = FITS_NOT[name]
    typing = check.static if "computed" in build.__qualname__ else check.symbolic
    assert_refused(check, build, arrays, typing)
    with pytest.raises(DeviceError):
        check.outputs_of(ReferenceDevice(), check.built(build, arrays, typing), arrays)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_of_no_known_rank(check: Checker, axis: int) -> None:
    fits = [np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)]
    agree(check, joined(axis), fits, rankless)
    wrong = [zeros(3, 0), zeros(2, 2)] if axis == 1 else [zeros(0, 3), zeros(2, 2)]
    if axis != -1:
        assert_refused(check, joined(axis), wrong, rankless)


def test_ranges_are_counted_in_float64(check: Checker) -> None:
    """In float32, 0.7 - 0.1 is 0.6 and divided by 0.2 no more than 3."""
    random = np.random.default_rng(0)
    for start, end, step in random.uniform(0.05, 3, (50, 3)).astype(np.float32):
        bounds = [np.array(bound) for bound in (start, start + 5 * end, step)]
        agree(check, adds("RANGE"), bounds, check.static)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bounds", [{}, {"min": 0.0}, {"max": 0.0}])
def test_infinities_that_nothing_bounds(check: Checker, dtype: Any, bounds: Any) -> None:
    agree(check, adds("CLIP", **bounds), [np.array([-np.inf, 1, np.inf], dtype)], check.static)


def test_logarithms_of_sums_with_nan(check: Checker) -> None:
    rows = np.array([[np.inf, np.nan], [np.nan, 1], [np.inf, 1], [-np.inf, -np.inf]], np.float32)
    agree(check, adds("REDUCE_LOG_SUM_EXP", [1]), [rows], check.static)


def test_a_bias_of_0_is_declined(check: Checker) -> None:
    """LRN divides 0 by 0 where all is 0, and ONNX Runtime makes NaN or 0."""
    check.declines(adds("LRN", bias=0.0), (1, 3, 2, 2), why="bias: 0 is not positive")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["SOFTMAX", "LOG_SOFTMAX"])
def test_a_nan_among_powers(check: Checker, name: str, dtype: Any) -> None:
    agree(check, adds(name, 0), [np.array([1, np.nan], dtype)], check.static)
    agree(check, adds(name, 0), [np.array([np.nan, 1], dtype)], check.static)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_sequences_of_no_numbers(check: Checker, name: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[name]
    arrays = [zeros(2, 1, 0), zeros(1, gates * 3, 0)]

    def build(b: Any, x: Any, w: Any) -> Any:
        recurrence = np.ones((1, gates * 3, 3), np.float32)
        return b.add_all(operator_named(name), x, w, recurrence)

    agree(check, build, arrays, check.static)
    check.declines(build, *arrays, why="its last size must be known", typing=check.symbolic)


def test_updates_of_one_number(check: Checker) -> None:
    arrays = [number(1), zeros(0, dtype=np.int64), number(2)]
    agree(check, adds("SCATTER_ND"), arrays, check.static)


@pytest.mark.parametrize("padding", [0, 1, 2])
def test_padding_of_the_output_of_a_transposed_convolution(check: Checker, padding: int) -> None:
    """It is less than the stride, if ONNX Runtime is to take it, whatever the dilation."""
    filters = np.ones((1, 1, 2, 2), np.float32)
    for stride, dilation in ((1, 3), (2, 1), (2, 3), (3, 1)):
        build = adds(
            "CONV_2D_TRANSPOSE",
            filters,
            strides=[stride, stride],
            dilations=[dilation, dilation],
            output_padding=[padding, 0],
        )
        agree(check, build, [np.ones((1, 1, 2, 2), np.float32)], check.static)


def test_boxes_of_negative_width_do_not_overlap(check: Checker) -> None:
    boxes = np.array([[[0, 0, 27.375, 1], [8.75, 7.4375, -1, 16.5]]], np.float32)
    build = adds("NON_MAX_SUPPRESSION_INDICES", 2, center_point_box=True)
    model = check.built(build, [boxes, zeros(1, 1, 2)])
    for device in (check.device, ReferenceDevice()):
        found = check.outputs_of(device, model, [boxes, zeros(1, 1, 2)])[0]
        np.testing.assert_array_equal(found, [[0, 0, 0], [0, 0, 1]])
    assert check.device.supports(model.operations[0], Options())
