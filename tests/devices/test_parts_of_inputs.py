"""Indices that are parts of inputs, which are checked before OpenVINO runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from crosschip.devices.openvino import OpenVinoDevice
from crosschip.devices.openvino.program import OpenVinoProgram
from crosschip.hal import Options
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    Model,
    Operand,
    TensorType,
    symbol,
)
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.slicing import Slice

SIZES = (6, 40, 6)
"""The rows of the tables that the columns point into, of which two have as many."""
TABLES = [np.random.default_rng(size).random((size, 4), np.float32) for size in SIZES]


def model_of_boxes(type_: ElementType = ElementType.INT64) -> Model:
    """Each column of indices selects rows of another table."""
    b = Builder("boxes")
    boxes = b.input("boxes", TensorType(type_, (symbol("n"), 5, 3)))
    first = b.add(Gather, boxes, np.array(0), 2)
    second = b.add(Cast, b.add(Gather, boxes, np.array([1]), -1), ElementType.INT32)
    third = b.add(Transpose, b.add(Gather, boxes, np.array(-1), 2), (1, 0))
    for place, (table, column) in enumerate(zip(TABLES, (first, second, third), strict=True)):
        b.output(f"y{place}", b.add(Gather, table, column, 0, name=f"look_up_{place}"))
    return b.build()


def program_of(model: Model, *, saved: bool) -> OpenVinoProgram:
    device = OpenVinoDevice()
    program = device.compile(model, Options(threads=1))
    if saved:
        stored = program.save()
        assert stored is not None
        program = device.load(stored, model, Options(threads=1))
    assert isinstance(program, OpenVinoProgram)
    return program


def drawn(count: int = 2) -> Array:
    random = np.random.default_rng(7)
    columns = [random.integers(-size, size, (count, 5)) for size in SIZES]
    return np.stack(columns, 2)


@pytest.mark.parametrize("saved", [False, True])
def test_columns_are_looked_at_before_a_run(saved: bool) -> None:
    program = program_of(model_of_boxes(), saved=saved)
    assert not program._requirements.rules
    for boxes in (drawn(), drawn()[::-1].copy(), np.maximum(drawn(), 0), drawn(0)):
        one, two, three = program.run([boxes])
        np.testing.assert_array_equal(one, TABLES[0][boxes[..., 0]])
        np.testing.assert_array_equal(two, TABLES[1][boxes[..., 1:2]])
        np.testing.assert_array_equal(three, TABLES[2][boxes[..., 2].T])


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("column", range(3))
@pytest.mark.parametrize("beyond", [0, -1, 2**40])
def test_what_is_beyond_a_table_is_refused(saved: bool, column: int, beyond: int) -> None:
    program = program_of(model_of_boxes(), saved=saved)
    boxes = drawn()
    boxes[1, 3, column] = beyond - SIZES[column] if beyond < 0 else beyond + SIZES[column]
    with pytest.raises(DeviceError, match=f"'look_up_{column}': indices: .* is not from"):
        program.run([boxes])


def _picked_twice(b: Builder, x: Operand) -> Operand:
    return b.add(Gather, b.add(Gather, x, np.array(0), 2), np.array(1), 1)


def _of_a_view(b: Builder, x: Operand) -> Operand:
    return b.add(Gather, b.add(Reshape, x, (5, -1)), np.array(1), 0)


def _several(b: Builder, x: Operand) -> Operand:
    return b.add(Gather, x, np.array([0, 2]), 2)


def _narrowed(b: Builder, x: Operand) -> Operand:
    return b.add(Cast, b.add(Cast, x, ElementType.FLOAT32), ElementType.INT32)


def _sliced(b: Builder, x: Operand) -> Operand:
    return b.add(Slice, x, [1], [0], [1])


@pytest.mark.parametrize("make", [_picked_twice, _of_a_view, _several, _narrowed, _sliced])
def test_other_parts_are_looked_at_in_the_run(make: Callable[[Builder, Operand], Operand]) -> None:
    b = Builder("other")
    boxes = b.input("boxes", TensorType(ElementType.INT64, (2, 5, 3)))
    b.output("y", b.add(Gather, TABLES[0], make(b, boxes), 0))
    program = program_of(b.build(), saved=False)
    given = np.full((2, 5, 3), 5)
    (made,) = program.run([given])
    np.testing.assert_array_equal(made.reshape(-1, 4), np.tile(TABLES[0][5], (made.size // 4, 1)))
    with pytest.raises(DeviceError, match="one is out of range"):
        program.run([given + 1])
