"""Windows on images of one, two and three axes, against counting them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Builder, ElementType, TensorType, unknown
from crosschip.ops.definition.operator import Operator, UnknownRank
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.pooling import MaxPool2D


@st.composite
def windows_and_images(draw: st.DrawFn) -> tuple[Windows, tuple[int, ...]]:
    rank = draw(st.integers(1, 3))

    def numbers(low: int, high: int, count: int = rank) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(count))

    windows = Windows(
        numbers(1, 3),
        numbers(1, 3),
        numbers(1, 2),
        draw(st.sampled_from(AutoPad)),
        numbers(0, 3, 2 * rank),
    )
    image = numbers(0, 6)
    sides = windows.sides(image)
    room = (
        size + sides[2 * axis] + sides[2 * axis + 1] - windows.spans[axis]
        for axis, size in enumerate(image)
        if size or not windows.auto_pad.keeps_size  # of nothing, those make nothing
    )
    assume(min(room, default=0) >= 0)
    return windows, image


def starts(windows: Windows, image: Sequence[int], axis: int) -> list[int]:
    """The pixels at which the windows that fit begin, tried out one after the other."""
    before, after = windows.sides(image)[2 * axis : 2 * axis + 2]
    places = range(-before, image[axis] + after, windows.strides[axis])
    return [at for at in places if at + windows.spans[axis] <= image[axis] + after]


@given(windows_and_images())
def test_there_are_as_many_as_fit(case: tuple[Windows, tuple[int, ...]]) -> None:
    windows, image = case
    fitting = [len(starts(windows, image, axis)) for axis in range(len(image))]
    assert list(windows.counts(image)) == fitting
    if windows.auto_pad.keeps_size:
        assert fitting == [-(-n // s) for n, s in zip(image, windows.strides, strict=True)]


@given(windows_and_images())
def test_the_pixels_that_they_meet(case: tuple[Windows, tuple[int, ...]]) -> None:
    windows, image = case
    pixels = np.arange(1, 1 + np.prod(image)).reshape(1, 1, *image)
    firsts = [starts(windows, image, axis) for axis in range(len(image))]
    for place, found in windows.sliding_windows(pixels, 0):
        assert found.shape[2:] == windows.counts(image)
        steps = [at * dilation for at, dilation in zip(place, windows.dilations, strict=True)]
        for index in product(*(range(len(first)) for first in firsts)):
            at = [first[i] + step for first, i, step in zip(firsts, index, steps, strict=True)]
            inside = all(0 <= i < size for i, size in zip(at, image, strict=True))
            assert found[0, 0, *index] == (pixels[0, 0, *at] if inside else 0)


@given(windows_and_images())
def test_explicit_padding_changes_nothing(case: tuple[Windows, tuple[int, ...]]) -> None:
    windows, image = case
    assume(0 not in image)
    explicit = windows.explicit(image)
    assert explicit.auto_pad is AutoPad.NONE
    assert explicit.counts(image) == windows.counts(image)
    assert explicit.sides(image) == windows.sides(image)


@pytest.mark.parametrize("operator", [Conv2D, MaxPool2D])
def test_images_without_pixels_have_no_simpler_windows(operator: type[Operator]) -> None:
    b = Builder()
    image = b.input("image", TensorType(ElementType.FLOAT32, (1, 1, 0, 3)))
    filters = [np.ones((1, 1, 2, 2), np.float32)] if operator is Conv2D else []
    named: dict[str, Any] = {} if filters else {"kernel_shape": (2, 2)}
    b.output("y", b.add(operator, image, *filters, auto_pad=AutoPad.SAME, **named))
    model = b.build()
    (operation,) = model.operations
    assert isinstance(operation, Operator)
    assert operation.decomposition(Builder("simpler")) is None
    (found,) = ReferenceProgram(model).run([np.zeros((1, 1, 0, 3), np.float32)])
    assert found.shape == (1, 1, 0, 3)


def on_axis(windows: Windows, axis: int) -> Windows:
    """The windows on one axis of the image only."""
    return replace(
        windows,
        kernel=windows.kernel[axis : axis + 1],
        strides=windows.strides[axis : axis + 1],
        dilations=windows.dilations[axis : axis + 1],
        pads=windows.pads[2 * axis : 2 * axis + 2],
    )


@given(windows_and_images())
def test_axes_are_independent(case: tuple[Windows, tuple[int, ...]]) -> None:
    windows, image = case
    counts, sides = windows.counts(image), windows.sides(image)
    for axis, size in enumerate(image):
        alone = on_axis(windows, axis)
        assert alone.counts([size]) == counts[axis : axis + 1]
        assert alone.sides([size]) == sides[2 * axis : 2 * axis + 2]


def test_padding_of_an_image_that_is_not_known() -> None:
    """It is known all the same where the windows are one pixel apart."""
    next_to_each_other = Windows((3,), (1,), (2,), AutoPad.SAME, (0, 0))
    assert next_to_each_other.sides([unknown()]) == (2, 2)
    with pytest.raises(UnknownRank):
        Windows((3,), (2,), (1,), AutoPad.SAME, (0, 0)).sides([unknown()])
    with pytest.raises(UnknownRank):
        Windows((unknown(),), (1,), (1,), AutoPad.SAME, (0, 0)).sides([5])
