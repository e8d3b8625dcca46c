"""Corners of operators where engines go astray: single numbers, nothing, infinities.

Where a device declines a case, that will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.test_refusals import IMAGE, adds, assert_refused, integers

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, DeviceError, ElementType, ModelError, TensorType
from crosschip.ops import operator_named
from crosschip.ops.standard.layout import Expand

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

INF = np.inf
LARGEST = np.finfo(np.float32).max
NUMBER = np.array(3, np.float32)
BOX = np.array([[0, 0, 2, 2], [1, 1, 1, 1], [2, 2, 1, 1]], np.float32)


def agree(check: Checker, build: Build, arrays: list[Array], typing: Any) -> None:
    """Compare a device with the reference, as compiled and as loaded, if it takes the model."""
    model = check.built(build, arrays, typing)
    if not all(check.device.supports(o, Options()) for o in model.operations):
        return
    expected = check.outputs_of(ReferenceDevice(), model, arrays)
    check.compare(model, arrays, expected, 1e-5)
    saved = check.device.compile(model, Options()).save()
    assert saved is not None
    for array, wanted in zip(
        check.device.load(saved, model, Options()).run(arrays), expected, strict=True
    ):
        np.testing.assert_allclose(array, wanted, 1e-5)


def tops(count: Any, largest: bool) -> Build:
    """The greatest or the least of the last axis, with their indices."""
    return lambda b, *xs: b.add_all(operator_named("TOP_K"), *xs, *count, -1, largest=largest)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("sign", [1, -1])
def test_infinities_are_beyond_the_largest_number(check: Checker, dtype: Any, sign: int) -> None:
    largest = np.finfo(dtype).max
    row = sign * np.array([1, largest, INF, -largest, -INF, largest, INF], dtype)
    for largest_first in (True, False):
        agree(check, tops((5,), largest_first), [row], check.static)
    for name in ("ARG_MAX", "ARG_MIN"):
        agree(check, adds(name, 0), [row], check.static)
        agree(check, adds(name, 0, keepdim=False), [row], check.symbolic)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_counts_that_are_computed(check: Checker, count: int) -> None:
    rows = np.array([[1, 3, 2], [5, 4, 6]], np.float32)
    agree(check, tops((), True), [rows, integers(count)], check.static)
    agree(check, tops((), True), [rows, integers(count)], check.symbolic)
    for wrong in (-1, 4):
        assert_refused(check, tops((), True), [rows, integers(wrong)], check.static)


def test_counts_after_one_that_does_not_fit(check: Checker) -> None:
    three, one = np.array([1, 3, 2], np.float32), np.array([1], np.float32)
    model = check.built(tops((2,), True), [three], check.symbolic)
    program = check.device.compile(model, Options())
    for _ in range(2):
        np.testing.assert_array_equal(program.run([three])[0], [3, 2])
        with pytest.raises(DeviceError, match=check.device.name):
            program.run([one])


NOTHING: dict[str, tuple[Build, Array]] = {
    "REDUCE_MEAN": (adds("REDUCE_MEAN", [0]), np.zeros((0, 2), np.float32)),
    "REDUCE_MEAN of all": (adds("REDUCE_MEAN"), np.zeros((0, 2), np.float32)),
    "REDUCE_SUM": (adds("REDUCE_SUM", [0]), np.zeros((0, 2), np.int32)),
    "REDUCE_MAX": (adds("REDUCE_MAX", [0]), np.zeros((0, 2), np.bool_)),
    "REDUCE_MIN": (adds("REDUCE_MIN", [0]), np.zeros((0, 2), np.bool_)),
    "ARG_MAX": (adds("ARG_MAX", 0), np.zeros((2, 0), np.float32)),
    "REDUCE_MAX from the end": (adds("REDUCE_MAX", [-2]), np.zeros((0, 2), np.float32)),
}


@pytest.mark.parametrize("name", NOTHING)
def test_of_nothing(check: Checker, name: str) -> None:
    build, array = NOTHING[name]
    agree(check, build, [array], check.static)
    agree(check, build, [array], check.symbolic)
    agree(check, build, [np.ones((3, 2), array.dtype)], check.symbolic)


@pytest.mark.parametrize(
    ("name", "more"),
    [("SLICE", ([], [])), ("PAD", ([],)), ("TILE", ([],)), ("NON_ZERO", ())],
)
@pytest.mark.parametrize("number", [0, 3])
def test_single_numbers(check: Checker, name: str, more: Any, number: int) -> None:
    named = {"starts": more[0], "ends": more[1]} if name == "SLICE" else {}
    build = adds(name, *(() if named else more), **named)
    agree(check, build, [np.array(number, np.float32)], check.static)


def test_repeated_along_no_axes(check: Checker) -> None:
    agree(check, adds("TILE", []), [np.array([3, 4], np.float32)], check.static)


def test_steps_backwards_from_the_far_end(check: Checker) -> None:
    build = adds("SLICE", starts=[0], ends=[2**31 - 1], steps=[-1])
    agree(check, build, [np.array([3, 4], np.float32)], check.static)


@pytest.mark.parametrize("fmod", [False, True])
def test_remainders_by_infinity(check: Checker, fmod: bool) -> None:
    dividends = np.array([[1, -1, 0, INF, -INF, np.nan]], np.float32)
    divisors = np.array([[INF], [-INF], [2.5]], np.float32)
    agree(check, adds("MOD", fmod=fmod), [dividends, divisors], check.static)
    agree(check, adds("MOD", divisors, fmod=fmod), [dividends], check.static)


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_of_infinity(check: Checker, approximate: bool) -> None:
    agree(check, adds("GELU", approximate), [np.array([INF, 1, -1], np.float32)], check.static)


@pytest.mark.parametrize("bounds", [(INF, INF), (-INF, -INF), (-INF, INF)])
def test_infinite_bounds(check: Checker, bounds: tuple[float, float]) -> None:
    agree(check, adds("CLIP", *bounds), [np.array([-1, 1], np.float32)], check.static)


@pytest.mark.parametrize("axis", [0, 1])
def test_hardmax_of_nan(check: Checker, axis: int) -> None:
    rows = np.array([[1, np.nan, INF], [np.nan, 2, -INF]], np.float32)
    agree(check, adds("HARDMAX", axis), [rows], check.static)


@pytest.mark.parametrize("ratio", [0, 2])
def test_regions_without_extent(check: Checker, ratio: int) -> None:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    build = adds("ROI_ALIGN", np.zeros(3, np.int32), 2, 2, ratio, aligned=True)
    agree(check, build, [image, BOX], check.static)
    upwards = np.array([[0, 0, 1, -1.5]], np.float32)
    build = adds("ROI_ALIGN", np.zeros(1, np.int32), 1, 1, ratio, aligned=True)
    agree(check, build, [image, upwards], check.static)


@pytest.mark.parametrize("index", [-1, 1])
@pytest.mark.parametrize("typing", ["static", "symbolic"])
def test_regions_of_images_that_there_are_not(check: Checker, index: int, typing: str) -> None:
    arrays = [IMAGE, BOX, integers(0, 0, index).astype(np.int32)]
    build = adds("ROI_ALIGN", 1, 1)
    if typing == "static":
        assert_refused(check, build, arrays, check.static)
    assert_refused(check, lambda b, x, r: build(b, x, r, arrays[2]), arrays[:2], check.static)


@pytest.mark.parametrize("name", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 1, 0, 0)])
def test_windows_larger_than_an_open_image(check: Checker, name: str, pads: Any) -> None:
    build = adds(name, pads=pads, kernel_shape=[3, 3])
    assert_refused(check, build, [IMAGE], check.symbolic)
    for size in (3, 4):
        agree(check, build, [np.ones((2, 1, size, 3), np.float32)], check.symbolic)


@pytest.mark.parametrize("shape", [[5], [2]])
def test_one_axis_of_another_size(check: Checker, shape: list[int]) -> None:
    assert_refused(check, adds("RESHAPE"), [np.ones(3, np.float32), integers(*shape)], check.static)
    assert_refused(
        check, adds("RESHAPE"), [np.ones((1, 3), np.float32), integers(*shape)], check.static
    )
    assert_refused(check, adds("RESHAPE"), [np.ones((1, 3), np.float32), integers(0)], check.static)
    for right in ([3], [-1], [0]):
        agree(check, adds("RESHAPE"), [np.ones(3, np.float32), integers(*right)], check.static)


CONSTANT: dict[str, tuple[Build, list[Array]]] = {
    "ATANH": (lambda b: b.add(operator_named("ATANH"), np.zeros(0, np.float32)), []),
    "WHERE": (
        lambda b, x: b.add(
            operator_named("WHERE"), np.array(True), b.constant(np.zeros(0, np.float32)), x
        ),
        [np.ones((1, 1), np.float32)],
    ),
    "INSTANCE_NORMALIZATION": (
        lambda b: b.add(operator_named("INSTANCE_NORMALIZATION"), np.zeros((1, 0, 2), np.float32)),
        [],
    ),
    "GATHER_ND": (
        lambda b, x: b.add(operator_named("GATHER_ND"), x, np.zeros((2, 0), np.int64)),
        [np.ones((2, 2), np.float32)],
    ),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_constants_without_elements(check: Checker, name: str) -> None:
    build, arrays = CONSTANT[name]
    agree(check, build, arrays, check.static)


@pytest.mark.parametrize("threshold", [1.0, 1.5, INF])
def test_boxes_that_cannot_overlap_enough(check: Checker, threshold: float) -> None:
    boxes, scores = BOX[None], np.array([[[0.5, 0.25, 0.75]]], np.float32)
    build = adds("NON_MAX_SUPPRESSION_INDICES", 3)
    agree(check, build, [boxes, scores], check.static)
    limits = np.array(threshold, np.float32)
    agree(
        check,
        lambda b, x, s, t: b.add(operator_named("NON_MAX_SUPPRESSION_INDICES"), x, s, 3, t),
        [boxes, scores, limits],
        check.static,
    )


@pytest.mark.parametrize("name", ["MAX_POOL_2D", "TOP_K", "ARG_MAX", "SHAPE"])
def test_types_of_indices(check: Checker, name: str) -> None:
    arguments: dict[str, Any] = {
        "MAX_POOL_2D": {"kernel_shape": [1, 1], "return_indices_dtype": 1},
        "TOP_K": {"k": 1, "return_indices_dtype": 1},
        "ARG_MAX": {"axis": 0, "dtype": 1},
        "SHAPE": {"dtype": 1},
    }
    with pytest.raises(ModelError, match="neither int32 nor int64"):
        check.built(adds(name, **arguments[name]), [IMAGE], check.static)


def test_slices_are_counted(check: Checker) -> None:
    def build(b: Any, x: Any, end: Any) -> Any:
        return b.add(operator_named("SLICE"), x, axes=[], starts=[], ends=end, steps=[0])

    with pytest.raises(ModelError, match="equally many"):
        check.built(build, [NUMBER, integers(0)], check.static)


def test_a_scale_for_each_channel(check: Checker) -> None:
    image, one, two = np.arange(4, dtype=np.float32).reshape(1, 2, 2), np.ones(1), np.ones(2)
    build = adds("GROUP_NORMALIZATION", groups=1)
    for scale in (one, two):
        arrays = [image, scale.astype(np.float32)]
        if scale is one:
            assert_refused(check, lambda b, x, s: build(b, x, scale=s), arrays, check.symbolic)
        else:
            agree(check, lambda b, x, s: build(b, x, scale=s), arrays, check.symbolic)


@pytest.mark.parametrize(
    ("name", "named"), [("UNSQUEEZE", {"axes": []}), ("EXPAND", {"shape": []}), ("PAD", {})]
)
def test_along_no_axes(check: Checker, name: str, named: Any) -> None:
    array = np.array([2], np.float32)
    if named:
        agree(check, adds(name, **named), [array], check.static)
        if "shape" in named:
            agree(check, adds(name), [array, integers()], check.static)
    else:
        with pytest.raises(ModelError, match="pads: has shape"):
            check.built(adds(name), [array, integers()], check.static)


@pytest.mark.parametrize("limit", [-1, -2, 1])
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
def test_limits_of_suppression(check: Checker, limit: int, eta: float) -> None:
    boxes, scores = BOX[None], np.array([[[0.5, 0.25, 0.75]]], np.float32)
    build = adds("NON_MAX_SUPPRESSION", nms_top_k=limit, keep_top_k=limit, nms_eta=eta)
    agree(check, build, [boxes, scores], check.static)
    agree(check, adds("NON_MAX_SUPPRESSION_INDICES", limit, 0.5), [boxes, scores], check.static)
    unlabelled = adds("NON_MAX_SUPPRESSION", background_label=limit)
    agree(check, unlabelled, [boxes, scores], check.static)


def test_the_greatest_of_infinities(check: Checker) -> None:
    image = np.array([[[[-INF, 1, np.nan], [INF, -INF, 2]]]], np.float32)
    build = adds("MAX_POOL_2D", kernel_shape=[1, 2])
    model = check.built(build, [image])
    if check.device.supports(model.operations[0], Options()):
        found = check.outputs_of(check.device, model, [image])[0]
        np.testing.assert_array_equal(found[..., 0].ravel(), [1, INF])


@pytest.mark.parametrize("repeats", [[2, 1, 2, 2, 2], [2, 3], [3]])
def test_more_or_fewer_repeats_than_axes(check: Checker, repeats: list[int]) -> None:
    array = np.arange(8, dtype=np.float32)
    agree(check, adds("TILE", repeats), [array.reshape(2, 2, 2, 1)], check.static)
    agree(check, adds("TILE", repeats), [array.reshape(8, 1)], check.static)


def test_outputs_without_elements(check: Checker) -> None:
    number = np.array(2, np.float32)
    agree(check, adds("SHAPE"), [number], check.static)
    agree(check, adds("ONE_HOT", 0, number, number), [np.array(0, np.int32)], check.static)
    agree(check, adds("PAD", [-1, -1]), [np.ones(2, np.float32)], check.static)
    agree(
        check,
        adds("WHERE"),
        [np.array(True), np.zeros(0, np.float32), np.ones((1, 1), np.float32)],
        check.static,
    )


def test_channels_of_many_axes(check: Checker) -> None:
    agree(check, adds("LRN"), [np.ones((1, 3, 2, 1, 1, 1), np.float32)], check.static)


def test_sizes_that_are_refused(check: Checker) -> None:
    row = np.zeros(0, np.float32)
    with pytest.raises(ModelError, match=r"shape: \[-2\] has a negative size"):
        check.built(adds("EXPAND", [-2]), [row], check.static)
    with pytest.raises(ModelError, match="split: must list at least one size"):
        check.built(lambda b, x: b.add_all(operator_named("SPLIT"), x, 0, []), [row], check.static)


def test_rolled_along_no_axes(check: Checker) -> None:
    model = check.built(adds("ROLL", shifts=[], axes=[]), [NUMBER], check.static)
    assert check.outputs_of(ReferenceDevice(), model, [NUMBER])[0] == NUMBER
    agree(check, adds("ROLL", shifts=[], axes=[]), [NUMBER], check.static)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_expanding_to_nothing_what_is_something_is_refused(check: Checker) -> None:
    """OpenVINO passes over a computed size of 0 where the input has another one than 1."""
    b = Builder("expand")
    x = b.constant(np.ones((1, 1, 2), np.float32))
    shape = b.input("shape", TensorType(ElementType.INT64, (1,)))
    b.output("y", b.add(Expand, x, shape))
    program = check.device.compile(b.build(), Options())
    assert program.run([np.array([2])])[0].shape == (1, 1, 2)
    for wrong in (0, -2):
        with pytest.raises(DeviceError, match=r"EXPAND|openvino"):
            program.run([np.array([wrong])])


def test_nan_is_true(check: Checker) -> None:
    for array in (np.array(np.nan, np.float32), np.array([0, np.nan, -0.0, 2], np.float32)):
        agree(check, adds("CAST", ElementType.BOOL), [array], check.static)


def test_a_slope_of_0_and_infinity(check: Checker) -> None:
    agree(check, adds("LEAKY_RELU", 0.0), [np.array([-INF, INF, 1], np.float32)], check.symbolic)


def test_a_convolution_of_constants(check: Checker) -> None:
    """With OpenVINO, each run would add its bias to the result of the run before."""
    ten = np.full((1, 1, 1, 1), 10, np.float32)
    model = check.built(
        lambda b, bias: b.add(operator_named("CONV_2D"), b.constant(ten), b.constant(ten), bias),
        [np.ones(1, np.float32)],
    )
    if check.device.supports(model.operations[0], Options()):
        program = check.device.compile(model, Options())
        for number in (1, 2, 3):
            (made,) = program.run([np.full(1, number, np.float32)])
            np.testing.assert_array_equal(made, [[[[100 + number]]]])


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_bfloat16_convolutions(check: Checker) -> None:
    """On bfloat16 itself, OpenVINO makes NaN beside an infinity, and crashes of narrow padding."""
    bfloat16 = ElementType.BFLOAT16.dtype
    image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3).astype(bfloat16)
    image[0, 0, 1, 1] = -INF
    one = np.ones((1, 1, 1, 1), bfloat16)
    agree_exactly(check, adds("CONV_2D"), [image, one])
    narrow = adds("CONV_2D", strides=[1, 2], dilations=[1, 2], pads=[0, 1, 1, 1])
    agree_exactly(check, narrow, [one, one])


def agree_exactly(check: Checker, build: Build, arrays: list[Array]) -> None:
    model = check.built(build, arrays, check.static)
    expected = check.outputs_of(ReferenceDevice(), model, arrays)
    for made, wanted in zip(check.outputs_of(check.device, model, arrays), expected, strict=True):
        np.testing.assert_array_equal(made.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
@pytest.mark.parametrize("index", [0, -1, 1])
@pytest.mark.parametrize("name", ["GATHER", "GATHER_ND", "SCATTER_ND", "SCATTER_ELEMENTS"])
def test_no_index_into_nothing(check: Checker, name: str, index: int) -> None:
    shape = {"GATHER": (1,), "SCATTER_ELEMENTS": (1, 4)}.get(name, (1, 1))
    arrays: list[Array] = [np.zeros((0, 4), np.float32), np.full(shape, index, np.int64)]
    arrays += [np.ones((1, 4), np.float32)] if "SCATTER" in name else []
    more = (0,) if name in ("GATHER", "SCATTER_ELEMENTS") else ()
    assert_refused(check, adds(name, *more), arrays, check.symbolic)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_a_constant_state_and_an_open_batch(check: Checker, name: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[name]
    weight, recurrence = (np.full((1, 2 * gates, n), 0.1, np.float32) for n in (3, 2))
    state = np.full((1, 1, 2), 0.5, np.float32)

    def build(b: Builder, x: Any) -> Any:
        constants = [b.constant(array) for array in (weight, recurrence, state)]
        names = ("weight", "recurrence_weight", "initial_hidden")
        named: dict[str, Any] = dict(zip(names, constants, strict=True))
        return b.add_all(operator_named(name), x, **named)[0]

    agree(check, build, [np.ones((2, 1, 3), np.float32)], check.symbolic)


def test_a_number_becomes_a_list(check: Checker) -> None:
    for shape in ([1], [-1], [1, 1]):
        agree(check, adds("RESHAPE", shape), [NUMBER], check.static)
        agree(check, adds("RESHAPE"), [NUMBER, integers(*shape)], check.static)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_scales_that_are_computed(check: Checker) -> None:
    """Nobody knows whether they leave a size as it is, and OpenVINO then resamples nothing."""

    def build(b: Builder, x: Any, scales: Any, name: str = "RESIZE_NEAREST") -> Any:
        return b.add(operator_named(name), x, scales=scales)

    for name in ("RESIZE_LINEAR", "RESIZE_CUBIC"):
        check.declines(
            lambda b, x, scales, n=name: build(b, x, scales, n),
            *(IMAGE, np.array([0.6, 1.3], np.float32)),
            why="scales: is computed",
        )
    for wrong in (0, -1, np.nan):
        assert_refused(check, build, [IMAGE, np.array([1, wrong], np.float32)], check.static)
    agree(check, build, [IMAGE, np.array([2, 0.5], np.float32)], check.static)


def test_a_normalization_of_a_constant(check: Checker) -> None:
    """With OpenVINO, each run would add its bias to the result of the run before."""
    row = np.array([[1, 2, 4]], np.float32)
    model = check.built(
        lambda b, bias: b.add(operator_named("LAYER_NORMALIZATION"), b.constant(row), None, bias),
        [np.ones(3, np.float32)],
    )
    if check.device.supports(model.operations[0], Options()):
        program = check.device.compile(model, Options())
        first, second = (program.run([np.full(3, n, np.float32)])[0] for n in (1, 2))
        np.testing.assert_allclose(second, first + 1, rtol=1e-5)


@pytest.mark.parametrize("name", ["MAX", "MIN"])
@pytest.mark.parametrize("pair", [(np.nan, -1.5), (-1.5, np.nan)])
def test_nan_among_constants(check: Checker, name: str, pair: tuple[float, float]) -> None:
    def build(b: Builder, x: Any) -> Any:
        known = [b.constant(np.array(number, np.float32)) for number in pair]
        return b.add(operator_named("ADD"), b.add(operator_named(name), *known), x)

    agree(check, build, [np.ones(2, np.float32)], check.static)


@pytest.mark.parametrize("repeats", [(1, 2, 1, 2), (2, 2, 2, 1), (1, 2, 1, 2, 1)])
@pytest.mark.parametrize("shape", [(2,), (2, 3), (3, 1)])
def test_several_repeats(check: Checker, shape: tuple[int, ...], repeats: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    agree(check, adds("TILE", repeats), [array], check.symbolic)


@pytest.mark.parametrize("name", ["ABS", "CLIP", "NEG", "RELU", "RELU6", "SIGMOID", "TANH"])
def test_nan_that_is_constant(check: Checker, name: str) -> None:
    def build(b: Builder, x: Any) -> Any:
        bounds = (-1.0, 1.0) if name == "CLIP" else ()
        known = b.constant(np.array([np.nan, -2.0, 2.0], np.float32))
        return b.add(operator_named("ADD"), b.add(operator_named(name), known, *bounds), x)

    agree(check, build, [np.ones(3, np.float32)], check.static)


def test_one_of_uint32(check: Checker) -> None:
    def build(b: Builder, indices: Any) -> Any:
        ends = [b.constant(np.array(number, np.uint32)) for number in (0, 2**32 - 1)]
        return b.add(operator_named("ONE_HOT"), indices, 1, *ends)

    agree(check, build, [np.ones((), np.float32)], check.static)


def test_nothing_is_not_reshaped_to_less(check: Checker) -> None:
    arrays: list[Array] = [np.zeros(0, np.float32), np.array([0, -2], np.int32)]
    assert_refused(check, adds("RESHAPE"), arrays, check.static)


def test_the_greatest_of_nothing(check: Checker) -> None:
    def build(b: Builder, x: Any, k: Any) -> Any:
        return b.add_all(operator_named("TOP_K"), x, k)[0]

    agree(check, build, [np.zeros(0, np.float32), np.zeros((), np.int32)], check.static)


def test_entries_that_are_alike(check: Checker) -> None:
    columns = np.array([[0, 0, 0, 0], [0, 1, 0, 1]], np.float32)
    agree(check, adds("UNIQUE", axis=1), [columns], check.static)
