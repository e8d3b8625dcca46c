"""Shapes, filling, ranges and one-hot tensors, compared with PyTorch and by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ops.oracle import functional, of_onnx, of_torch, torch

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Array, Builder, DeviceError, ElementType, Quantization, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.creation import Fill, FillLike, OneHot, Range, Rank, ShapeOf

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


SHAPE = (2, 3, 4)


def test_shape_and_fill(check: Checker) -> None:
    check(lambda b, x: b.add(ShapeOf, x), lambda x: np.array(x.shape), SHAPE)
    check(
        lambda b, x: b.add(ShapeOf, x, ElementType.INT32),
        lambda x: np.array(x.shape, np.int32),
        SHAPE,
    )
    check(lambda b, x: b.add(Fill, (2, 3), x), lambda x: torch.full((2, 3), float(x[0])), (1,))


def test_shape_and_rank_of_more_elements_than_memory_holds() -> None:
    """Quantized elements are not read, though `Sampling` shows zeros of typical sizes."""
    sizes = (1 << 20, 1 << 20, 1 << 10)
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT8, sizes, Quantization((0.5,))))
    b.output("shape", b.add(ShapeOf, x))
    b.output("rank", b.add(Rank, x))
    array = np.broadcast_to(np.int8(0), sizes)
    operations = [each for each in b.build().operations if isinstance(each, Operator)]
    outputs = [operation.kernel()([array, None])[0] for operation in operations]
    assert outputs[0].tolist() == list(sizes)
    assert outputs[1] == 3


def test_one_hot(check: Checker) -> None:
    indices = np.array([[0, 2], [3, 1]])
    check(
        lambda b, i: b.add(OneHot, i, 5, np.int64(1), np.int64(0)),
        of_torch(lambda i: functional.one_hot(i, 5)),
        indices,
    )
    for axis in (0, 1, -1, -3):
        for of in (indices, np.array([[-1, -4], [3, -2]])):

            def with_values(i: Array, axis: int = axis) -> Array:
                values = np.array([0.5, 7], np.float32)
                hot: Array = of_onnx("OneHot", axis=axis)(i, np.array(4), values)[0]
                return hot

            check(
                lambda b, i, axis=axis: b.add(OneHot, i, 4, np.float32(7), np.float32(0.5), axis),
                with_values,
                of,
            )


def test_indices_of_nothing_hot(check: Checker) -> None:
    """ONNX's evaluator wraps indices, whereas its specification gives all `off_value`."""
    check(
        lambda b, i: b.add(OneHot, i, 3, np.bool_(True), np.bool_(False)),
        lambda i: np.array([[0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]], np.bool_),
        np.array([3, -4, -3, 2]),
    )
    check(
        lambda b, i: b.add(OneHot, i, 3, np.int8(1), np.int8(-1)),
        lambda i: np.array([[-1, 1, -1], [1, -1, -1], [-1, -1, 1]], np.int8),
        np.array([1.9, -0.9, -1.5], np.float32),
    )
    check(
        lambda b, i: b.add(OneHot, i, 0, np.bool_(True), np.bool_(False)),
        lambda i: np.zeros((2, 0), np.bool_),
        np.array([0, 1]),
    )


def test_rank(check: Checker) -> None:
    for shape in (SHAPE, (), (0,)):
        check(lambda b, x: b.add(Rank, x), lambda x: np.array(x.ndim, np.int32), shape)


def test_fill(check: Checker) -> None:
    check(lambda b, x: b.add(Fill, (), x), of_torch(lambda x: torch.full((), float(x[0]))), (1,))
    check(lambda b, x: b.add(Fill, (0, 3), x), of_torch(lambda x: x.expand(0, 3)), ())
    check(
        lambda b, x: b.add(FillLike, x, np.float32(0.5)),
        of_torch(lambda x: torch.full_like(x, 0.5)),
        SHAPE,
    )
    check(
        lambda b, x: b.add(FillLike, x, np.array([7])),
        of_torch(lambda x: torch.full_like(x, 7, dtype=torch.int64)),
        (2, 0),
    )


def bounds(*values: float, dtype: type[np.generic]) -> list[Array]:
    return [np.array(value, dtype) for value in values]


# The checker only counts how often it is asked.
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(-9, 9), end=st.integers(-9, 9), step=st.integers(-4, 4).filter(bool))
def test_ranges_are_those_of_python(check: Checker, start: int, end: int, step: int) -> None:
    for dtype in (np.int64, np.int32, np.int8):
        check(
            lambda b, *parts: b.add(Range, *parts),
            lambda *parts, dtype=dtype: np.array(range(start, end, step), dtype),
            *bounds(start, end, step, dtype=dtype),
            counted=True,
        )


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        (2**64 - 2, 0, 1),
        (0, 0, 2**64 - 2),
        (2**64 - 5, 2**64 - 1, 2),
        (1, 2**64 - 1, 2**62),
    ],
)
def test_ranges_of_large_numbers(check: Checker, start: int, end: int, step: int) -> None:
    check(
        lambda b, *parts: b.add(Range, *parts),
        lambda *parts: np.array(range(start, end, step), np.uint64),
        *bounds(start, end, step, dtype=np.uint64),
        counted=True,
    )


def test_ranges_of_reals(check: Checker) -> None:
    for start, end, step in ((0.0, 2.0, 0.3), (5.0, -1.0, -0.7), (0.5, 4.5, 1.0)):
        for dtype in (np.float32, np.float64):
            check(
                lambda b, *parts: b.add(Range, *parts),
                of_torch(
                    lambda *parts: torch.arange(*(p.item() for p in parts), dtype=parts[0].dtype)
                ),
                *bounds(start, end, step, dtype=dtype),
                counted=True,
            )


def test_a_range_that_runs_away_from_its_end_is_empty(check: Checker) -> None:
    check(
        lambda b, *parts: b.add(Range, *parts),
        lambda *parts: np.zeros(0, np.float32),
        *bounds(1, 0, 2, dtype=np.float32),
        counted=True,
    )


def test_a_range_of_constants_has_a_known_size() -> None:
    b = Builder()
    made = b.add(Range, np.float32(1), np.float32(2), np.float32(0.25))
    assert made.type.static_shape == (4,)
    numbers = b.add(Range, np.int64(2), np.int64(6), np.int64(2))
    assert b.add(Fill, numbers, np.float32(0)).type.shape == (2, 4)


def test_a_range_of_quantized_constants_runs_over_what_they_stand_for() -> None:
    b = Builder("range")
    start, end, step = (
        b.constant(np.array(stored, np.int8), quantization=Quantization((scale,)))
        for stored, scale in ((0, 0.25), (8, 0.5), (4, 0.25))
    )
    b.output("y", b.add(Range, start, end, step))
    model = b.build()
    (found,) = ReferenceProgram(model).run([])
    assert found.shape == (4,)
    assert all(output.type.static_shape in (None, (4,)) for output in model.outputs.values())


@pytest.mark.parametrize("step", [0.0, np.nan, np.inf])
def test_a_range_that_never_ends(step: float) -> None:
    b = Builder()
    parts = [b.input(str(i), b.constant(np.float32(1)).type) for i in range(3)]
    b.output("y", b.add(Range, *parts))
    with pytest.raises(DeviceError, match=r"RANGE range_0: (step|start): "):
        ReferenceProgram(b.build()).run(bounds(0, 1, step, dtype=np.float32))
