"""Reductions and cumulative sums on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.devices.checks import adds, agree, claimed, values, zeros

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, TensorType, symbol
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator, operator_named
from crosschip.ops.standard.arithmetic import Add, Div, Mul
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.reduction import CumSum, ReduceMax, ReduceMean, ReduceSum

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

SHAPE, VECTOR, IMAGE = (2, 3, 4), (7,), (1, 2, 6, 5)
_NAMES = """
    REDUCE_SUM REDUCE_MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_L1 REDUCE_L2
    REDUCE_SUM_SQUARE REDUCE_LOG_SUM REDUCE_LOG_SUM_EXP REDUCE_ALL REDUCE_ANY
"""
REDUCTIONS = _NAMES.split()


def reduction(name: str, axes: tuple[int, ...], keepdim: bool) -> Build:
    return lambda b, x: b.add(operator_named(name), x, axes, keepdim)


CLAIMS: dict[str, tuple[tuple[int, ...], Build]] = {
    **{name: (IMAGE, adds(name)) for name in ("REDUCE_MEAN", "REDUCE_SUM", "REDUCE_MAX")},
    **{f"{name} one": (SHAPE, reduction(name, (1,), True)) for name in REDUCTIONS},
    **{f"{name} two": (SHAPE, reduction(name, (-1, 0), False)) for name in REDUCTIONS},
    **{f"{name} all": (SHAPE, reduction(name, (), False)) for name in REDUCTIONS},
    **{f"{name} list": (VECTOR, reduction(name, (0,), True)) for name in REDUCTIONS},
    "CUM_SUM": (SHAPE, lambda b, x: b.add(CumSum, x, 1)),
    "CUM_SUM backwards": (SHAPE, lambda b, x: b.add(CumSum, x, -1, True, True)),
    "CUM_SUM list": (VECTOR, lambda b, x: b.add(CumSum, x, 0)),
}
DECOMPOSED = {
    "onnxruntime": {"REDUCE_ALL", "REDUCE_ANY"},
    "openvino": {"REDUCE_SUM_SQUARE", "REDUCE_LOG_SUM", "REDUCE_LOG_SUM_EXP"},
}
"""The operators that engines leave to others."""

NOTHING: dict[str, tuple[Build, Array]] = {
    "REDUCE_MEAN": (adds("REDUCE_MEAN", [0]), np.zeros((0, 2), np.float32)),
    "REDUCE_MEAN of all": (adds("REDUCE_MEAN"), np.zeros((0, 2), np.float32)),
    "REDUCE_SUM": (adds("REDUCE_SUM", [0]), np.zeros((0, 2), np.int32)),
    "REDUCE_MAX": (adds("REDUCE_MAX", [0]), np.zeros((0, 2), np.bool_)),
    "REDUCE_MIN": (adds("REDUCE_MIN", [0]), np.zeros((0, 2), np.bool_)),
    "REDUCE_MAX from the end": (adds("REDUCE_MAX", [-2]), np.zeros((0, 2), np.float32)),
}
"""Operators, and arrays with nothing on the axes that are reduced."""


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("operator", [ReduceMean, ReduceSum, ReduceMax], ids=lambda o: o.type)
def test_reduction(check: Checker, operator: type[Operator], keepdim: bool) -> None:
    for axes in ((0,), (-1,), (1, 2), (-1, 0), (0, 1, 2), ()):
        check(lambda b, x, axes=axes: b.add(operator, x, axes, keepdim), (3, 4, 5))
    check(lambda b, x: b.add(operator, x, (2, 3), keepdim), (2, 3, 4, 5))


def drawn(element_type: ElementType, shape: tuple[int, ...], name: str, device: str) -> Array:
    """Return random elements with logarithms and products of moderate size."""
    found = values(element_type, shape)
    if element_type in FLOATS and "LOG_SUM" in name:
        return np.abs(found) + np.ones((), found.dtype)
    are_sizes = device == "openvino" or "REDUCE_PROD" in name
    return found % 30 if element_type is ElementType.INT64 and are_sizes else found


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    shape, build = CLAIMS[name]
    claims = claimed(check, build, lambda each: [drawn(each, shape, name, check.device.name)])
    operator = name.split()[0]
    least = ElementType.BOOL if operator in ("REDUCE_ALL", "REDUCE_ANY") else ElementType.FLOAT32
    assert (least in claims) == (operator not in DECOMPOSED[check.device.name])


@pytest.mark.parametrize("keepdim", [True, False])
def test_sizes_known_only_at_run_time(check: Checker, keepdim: bool) -> None:
    for axes in ((1,), (0, -1)):
        check(reduction("REDUCE_SUM", axes, keepdim), (2, 3, 4))
        check(reduction("REDUCE_MAX", axes, keepdim), (2, 3, 4))
    check(lambda b, x: b.add(CumSum, x, 1), (2, 3, 4))


def test_integers_that_do_not_fit_into_a_float(check: Checker) -> None:
    wide = np.array([[2**53, 1, 1], [2**62, 2**62, 5]])
    if check.device.name == "onnxruntime":
        check(reduction("REDUCE_SUM", (1,), False), wide, rankless_too=False)
        check(reduction("REDUCE_PROD", (1,), False), wide, symbolic_too=False, rankless_too=False)
        many = np.ones((2, 33), np.int64)
        check.declines(reduction("REDUCE_PROD", (1,), False), many, why="multiplied as float64")
        check.declines(
            reduction("REDUCE_SUM", (1,), True), wide[:, :0], why="no elements on axis 1"
        )
    else:
        for name in ("REDUCE_SUM", "REDUCE_MAX", "REDUCE_MIN"):
            exact = np.array([[2**22 - 1, 3, 1 - 2**22], [5, -(2**22), 2]])
            check(reduction(name, (1,), True), exact, symbolic_too=False)
        check(
            reduction("REDUCE_PROD", (1,), True), np.array([[1023, -1024, 7]]), symbolic_too=False
        )
        total = reduction("REDUCE_SUM", (1,), True)
        check.declines(lambda b, x: total(b, b.constant(wide)), (1,), why="24 bits")


def test_no_elements(check: Checker) -> None:
    for name in ("REDUCE_SUM", "REDUCE_PROD"):
        check(reduction(name, (1,), True), (2, 0), rankless_too=False)
    own = {"onnxruntime": {"REDUCE_MEAN"}, "openvino": {"REDUCE_MEAN", "REDUCE_MAX", "REDUCE_MIN"}}
    for name in ("REDUCE_MEAN", "REDUCE_MAX", "REDUCE_MIN"):
        if name in own[check.device.name]:
            check.declines(reduction(name, (-1,), True), (2, 0), why="no elements on axis -1")
        else:
            check(reduction(name, (-1,), True), (2, 0), rankless_too=False)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
@pytest.mark.parametrize("name", ["REDUCE_MAX", "REDUCE_MIN", "REDUCE_MEAN"])
def test_extremes_of_nothing(check: Checker, name: str) -> None:
    model = check.built(adds(name, [1]), [zeros(2, 0)], check.symbolic)
    expected = check.outputs_of(ReferenceDevice(), model, [zeros(2, 0)])
    check.compare(model, [zeros(2, 0)], expected, 0)


@pytest.mark.parametrize("name", NOTHING)
def test_of_nothing(check: Checker, name: str) -> None:
    build, array = NOTHING[name]
    agree(check, build, [array], check.static)
    agree(check, build, [array], check.symbolic)
    agree(check, build, [np.ones((3, 2), array.dtype)], check.symbolic)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_truth_of_nothing(check: Checker) -> None:
    check(lambda b, x: b.add(ReduceMax, x, (1,)), np.zeros((2, 0), np.bool_))


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_logarithms_of_sums_with_nan(check: Checker) -> None:
    rows = np.array([[np.inf, np.nan], [np.nan, 1], [np.inf, 1], [-np.inf, -np.inf]], np.float32)
    agree(check, adds("REDUCE_LOG_SUM_EXP", [1]), [rows], check.static)


@pytest.mark.slow
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sums_meet_constants_of_their_own_channels(axis: int, keepdim: bool) -> None:
    """Quirk `reduction-beside-constant`."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (5, 3, 7)))
    sums = b.add(Mul, b.add(ReduceSum, x, (axis,), keepdim), np.float32(-0.5))
    sizes = sums.type.static_shape
    assert sizes is not None
    for place in range(len(sizes)):
        channels = [size if i == place else 1 for i, size in enumerate(sizes)]
        constant = values(ElementType.FLOAT32, tuple(channels), seed=place)
        b.output(f"y{place}", b.add(Add, constant, sums))
    model, array = b.build(), values(ElementType.FLOAT32, (5, 3, 7), seed=9)
    expected = ReferenceDevice().compile(model, Options()).run([array])
    with crosschip.compile(model, devices=["openvino"], cache=False) as compiled:
        found = compiled.run({"x": array})
    for name, wanted in zip(model.outputs, expected, strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("zero_point", [0, 9])
@pytest.mark.parametrize("name", ["REDUCE_MEAN", "REDUCE_SUM", "REDUCE_MAX", "REDUCE_MIN"])
def test_what_integers_stand_for_is_reduced(name: str, zero_point: int) -> None:
    """Quirk `reduction-beside-constant`, with scales of integers."""
    b = Builder()
    shape = (symbol("A"), symbol("B"), symbol("C"))
    x = b.input("x", TensorType(ElementType.FLOAT32, shape))
    numbers = (0.0625,), (float(zero_point),), ElementType.INT8
    reals = b.add(Dequantize, b.add(Quantize, x, 0, *numbers))
    every = [(0,), (1,), (2,), (1, 2), (0, 2)]
    for index, axes in enumerate(every):
        b.output(f"y{index}", b.add(operator_named(name), reals, axes, keepdim=bool(index % 2)))
    model = b.build()
    for sizes in ((17, 2, 8), (8, 3, 1), (3, 1, 17)):
        array = values(ElementType.FLOAT32, sizes, seed=9)
        expected = ReferenceDevice().compile(model, Options()).run([array])
        for known in ({}, {"x": sizes}):
            with crosschip.compile(model, ["openvino"], shapes=known, cache=False) as compiled:
                found = compiled.run({"x": array})
            for output, wanted in zip(model.outputs, expected, strict=True):
                np.testing.assert_allclose(found[output], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["REDUCE_MEAN", "REDUCE_SUM", "REDUCE_MAX"])
def test_what_is_reduced_is_divided(name: str) -> None:
    """Quirk `reduction-beside-constant`, with divisors."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (17, 2, 8)))
    for index, axes in enumerate([(0,), (1,), (2,), (1, 2)]):
        made = b.add(operator_named(name), x, axes, keepdim=bool(index % 2))
        b.output(f"quotient{index}", b.add(Div, made, np.float32(0.0625)))
        steps = b.add(Quantize, made, 0, (0.0625,), (3.0,), ElementType.INT8)
        b.output(f"quantized{index}", b.add(Dequantize, steps))
    model, array = b.build(), values(ElementType.FLOAT32, (17, 2, 8), seed=9)
    expected = ReferenceDevice().compile(model, Options()).run([array])
    with crosschip.compile(model, ["openvino"], cache=False) as compiled:
        found = compiled.run({"x": array})
    for output, wanted in zip(model.outputs, expected, strict=True):
        step = 0.0626 if output.startswith("quantized") else 1e-4
        np.testing.assert_allclose(found[output], wanted, rtol=1e-5, atol=step)
