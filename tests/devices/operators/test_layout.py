"""Reshapes, transpositions and broadcasts on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    Example,
    adds,
    agree,
    assert_refused,
    claimed_example,
    integers,
    number,
    zeros,
)

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, DeviceError, ElementType, ModelError, TensorType
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.slicing import Slice

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

IMAGE = (1, 2, 6, 5)
CLAIMS: dict[str, Example] = {
    "SQUEEZE": (adds("SQUEEZE"), (IMAGE,)),
    "FLATTEN": (adds("FLATTEN"), (IMAGE,)),
    "RESHAPE": (lambda b, x: b.add(Reshape, x, (3, -1)), (IMAGE,)),
    "TRANSPOSE": (lambda b, x: b.add(Transpose, x, (3, 1, 0, 2)), (IMAGE,)),
    "UNSQUEEZE": (lambda b, x: b.add(Unsqueeze, x, (1,)), (IMAGE,)),
    "EXPAND": (lambda b, x: b.add(Expand, x, (3, 2, 6, 5)), (IMAGE,)),
}


def test_reshape(check: Checker) -> None:
    for shape in ((4, 6), (-1,), (0, -1), (2, 0, 4), (1, 24, 1), (0, 0, 2, -1)):
        check(lambda b, x, shape=shape: b.add(Reshape, x, shape), (2, 3, 4))
    check(lambda b, x: b.add(Reshape, x, ()), (1, 1))
    check(lambda b, x: b.add(Reshape, x, (3, 0)), (0, 0), symbolic_too=False, rankless_too=False)


def test_transpose(check: Checker) -> None:
    for perm in ((0, 1, 2), (2, 0, 1), (0, 2, 1), (-1, -2, -3), (1, -3, 2)):
        check(lambda b, x, perm=perm: b.add(Transpose, x, perm), (2, 3, 4))
    check(lambda b, x: b.add(Transpose, x, (0, 2, 3, 1)), (2, 3, 4, 5))


def test_squeeze_and_unsqueeze(check: Checker) -> None:
    for axes in ((0,), (-1,), (0, 2), (-1, -3)):
        check(lambda b, x, axes=axes: b.add(Squeeze, x, axes), (1, 3, 1))
        check(lambda b, x, axes=axes: b.add(Unsqueeze, x, axes), (2, 3))
    check(lambda b, x: b.add(Squeeze, x), (1, 3, 1), symbolic_too=False)


def test_flatten(check: Checker) -> None:
    for start, end in ((0, -1), (1, -1), (1, 2), (0, 1), (-2, -2), (0, 0), (3, 3)):
        check(
            lambda b, x, start=start, end=end: b.add(Flatten, x, start, end),
            (2, 3, 4, 5),
            rankless_too=False,
        )
    check(lambda b, x: b.add(Flatten, x), (), rankless_too=False)
    check(lambda b, x: b.add(Flatten, x, 0), (7,), rankless_too=False)


def test_expand(check: Checker) -> None:
    for shape in ((2, 3, 4), (5, 2, 3, 4), (-1, 3, -1), (1, 1), ()):
        check(lambda b, x, shape=shape: b.add(Expand, x, shape), (2, 1, 4), rankless_too=False)


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, CLAIMS[name])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_computed_shapes(check: Checker, dtype: type[np.integer]) -> None:
    """Shapes that are inputs of the model."""

    def computed(operator: Any, shape: tuple[int, ...], *values: int) -> None:
        # the rank of the output follows from the length of the list
        wanted = integers(*values, dtype=dtype)
        build = lambda b, x, s: b.add(operator, x, s)  # noqa: E731
        check(build, shape, wanted, symbolic_too=False, rankless_too=False)

    computed(Reshape, (2, 3, 4), 4, -1)
    computed(Reshape, (2, 3, 4), 0, 12)
    computed(Reshape, (2, 3, 4), -1)
    computed(Expand, (2, 1, 4), 2, 3, 4)
    computed(Expand, (2, 1, 4), 1, 3, -1)
    computed(Expand, (3, 1), 2, 1, 5)


def test_shapes_computed_from_shapes(check: Checker) -> None:
    def like(b: Any, x: Any, y: Any) -> Any:
        sizes = b.add(ShapeOf, y, ElementType.INT64)
        head = b.add(Slice, sizes, (0,), (0,), (1,))
        return b.add(Reshape, x, b.add(Concat, [head, b.constant(integers(-1))], axis=0))

    check(like, (6, 4), (3, 5), rankless_too=False)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_shapes_of_many_axes_that_are_computed(check: Checker) -> None:
    """Quirk `computed-shape-of-many-axes`."""

    def build(b: Builder, x: Any, shape: Any) -> Any:
        return b.add(Expand, x, shape)

    check.declines(build, (), np.ones(21, np.int64), why="shape: is computed, of more than 16")
    check.typed(build, np.array(2.5, np.float32), np.ones(16, np.int64), typing=check.static)
    check(lambda b, x: b.add(Expand, x, (1,) * 32), ())


@pytest.mark.parametrize("shape", [[5], [2]])
def test_one_axis_of_another_size(check: Checker, shape: list[int]) -> None:
    assert_refused(check, adds("RESHAPE"), [np.ones(3, np.float32), integers(*shape)], check.static)
    assert_refused(
        check, adds("RESHAPE"), [np.ones((1, 3), np.float32), integers(*shape)], check.static
    )
    assert_refused(check, adds("RESHAPE"), [np.ones((1, 3), np.float32), integers(0)], check.static)
    for right in ([3], [-1], [0]):
        agree(check, adds("RESHAPE"), [np.ones(3, np.float32), integers(*right)], check.static)


def test_a_number_becomes_a_list(check: Checker) -> None:
    for shape in ([1], [-1], [1, 1]):
        agree(check, adds("RESHAPE", shape), [number(3)], check.static)
        agree(check, adds("RESHAPE"), [number(3), integers(*shape)], check.static)


def test_a_number_stays_one(check: Checker) -> None:
    for build in (adds("EXPAND", []), adds("RESHAPE", [])):
        model = check.built(build, [number(2)])
        if check.device.supports(model.operations[0], Options()):
            check.compare(model, [number(2)], [number(2)], 0)


def test_along_no_axes(check: Checker) -> None:
    array = np.array([2], np.float32)
    agree(check, adds("UNSQUEEZE", axes=[]), [array], check.static)
    agree(check, adds("EXPAND", shape=[]), [array], check.static)
    agree(check, adds("EXPAND"), [array, integers()], check.static)


def test_nothing_is_not_reshaped_to_less(check: Checker) -> None:
    arrays: list[Array] = [np.zeros(0, np.float32), np.array([0, -2], np.int32)]
    assert_refused(check, adds("RESHAPE"), arrays, check.static)


def test_flattening_nothing(check: Checker) -> None:
    """With dynamic dimensions, a size of 0 must not copy another size."""
    for shape, start, end in (((2, 3, 4, 0), 1, 2), ((2, 3, 0), 0, 1), ((0, 3, 4), 1, 2)):
        arrays = [np.zeros(shape, np.float32)]

        def flattened(b: Any, x: Any, start: int = start, end: int = end) -> Any:
            return b.add(Flatten, x, start, end)

        model = check.built(flattened, arrays, check.symbolic)
        check.compare(model, arrays, check.outputs_of(ReferenceDevice(), model, arrays), 0)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_expanding_to_nothing_what_is_something_is_refused(check: Checker) -> None:
    """A computed size of 0 does not broadcast with a size other than 1."""
    b = Builder("expand")
    x = b.constant(np.ones((1, 1, 2), np.float32))
    shape = b.input("shape", TensorType(ElementType.INT64, (1,)))
    b.output("y", b.add(Expand, x, shape))
    program = check.device.compile(b.build(), Options())
    assert program.run([np.array([2])])[0].shape == (1, 1, 2)
    for wrong in (0, -2):
        with pytest.raises(DeviceError, match=r"EXPAND|openvino"):
            program.run([np.array([wrong])])


def test_negative_sizes(check: Checker) -> None:
    with pytest.raises(ModelError, match=r"shape: \[-2\] has a negative size"):
        check.built(adds("EXPAND", [-2]), [zeros(0)])
