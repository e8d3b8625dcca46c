"""Samples of calls: which are kept, which shapes are far from others, and their size."""

from __future__ import annotations

import numpy as np
import pytest

from crosschip.hal import HostBuffer
from crosschip.ir import Array
from crosschip.runtime.call_samples import CallSamples, is_far


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("a", "b", "far"),
    [
        (((4,),), ((4,),), False),
        (((4,),), ((15,),), False),
        (((4,),), ((16,),), True),
        (((16,),), ((4,),), True),
        (((0,),), ((3,),), False),
        (((0,),), ((4,),), True),
        (((1, 3, 224), (7,)), ((1, 3, 300), (7,)), False),
        (((1, 3, 224), (7,)), ((1, 3, 224), (28,)), True),
        (((1, 3),), ((1, 3, 1),), True),
        (((),), ((),), False),
    ],
)
def test_shapes_are_far_by_the_factor_four(
    a: tuple[tuple[int, ...], ...], b: tuple[tuple[int, ...], ...], far: bool
) -> None:
    assert is_far(a, b) is is_far(b, a) is far


def test_samples_are_copies_of_the_latest_calls_of_different_shapes() -> None:
    samples = CallSamples(lambda: None)
    array = zeros(1, 2)
    samples.add([array])
    array[:] = 7
    for size in range(2, 20):
        samples.add([zeros(size, 2)])
    samples.add([zeros(10, 2)])
    shapes = [shapes for shapes, _ in samples.recent()]
    assert shapes == [((size, 2),) for size in (4, 5, 6, 7, 8, 9, *range(11, 20), 10)]
    samples.clear()
    samples.add([array, [array], HostBuffer(array)])
    ((_, values),) = samples.recent()
    assert values is not None
    array[:] = 9
    assert values[0].tolist() == values[1][0].tolist() == values[2].tolist() == [[7, 7]]


def test_large_inputs_are_not_copied_and_all_copies_have_a_limit() -> None:
    samples = CallSamples(lambda: None)
    samples.add([zeros(1 << 23, 2)])
    assert samples.recent() == [(((1 << 23, 2),), None)]
    for size in range(4):
        samples.add([zeros((1 << 22) + size)])
    ends = [shapes[0][0] for shapes, values in samples.recent() if values is not None]
    assert ends == [(1 << 22) + size for size in (1, 2, 3)]


def test_calls_far_from_all_tested_ones_are_reported() -> None:
    calls: list[int] = []
    samples = CallSamples(lambda: calls.append(1))
    samples.add([zeros(4)])
    assert calls == [1]  # there is none tested
    samples.tested += [((4,),), ((32,),)]
    samples.is_open = False
    for size in (1, 5, 9, 15, 33, 127):
        samples.add([zeros(size)])
    assert calls == [1, 1]  # 1 is far from both
    samples.add([zeros(128)])
    assert len(calls) == 3
    assert [shapes for shapes, _ in samples.recent()] == [((4,),), ((1,),), ((128,),)]
    assert samples.are_far_from([((4,),)])
    assert not samples.are_far_from([((2,),), ((100,),)])
