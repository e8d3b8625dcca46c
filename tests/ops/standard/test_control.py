"""Assertions, checked by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Array, Builder, DeviceError, ElementType
from crosschip.ops.standard.control import Assert

if TYPE_CHECKING:
    pass


def asserted(condition: Array, summarize: int = 3) -> list[Array]:
    b = Builder()
    data = [np.arange(5), np.array([[7, 8]])]
    x = b.input("x", b.constant(condition).type)
    made = b.add_all(Assert, x, [b.constant(array) for array in data], summarize)
    for index, operand in enumerate(made):
        b.output(str(index), operand)
    return list(ReferenceProgram(b.build()).run([condition]))


@pytest.mark.parametrize("condition", [True, [True, True], [[]]])
def test_what_holds_passes_the_data_on(condition: object) -> None:
    first, second = asserted(np.array(condition, np.bool_))
    np.testing.assert_array_equal(first, np.arange(5))
    np.testing.assert_array_equal(second, [[7, 8]])


@pytest.mark.parametrize(
    ("summarize", "shown"), [(3, r"\[0, 1, 2\]; \[7, 8\]"), (0, r"\[\]; \[\]"), (-1, r"4\]; ")]
)
def test_what_does_not_hold_stops_the_model(summarize: int, shown: str) -> None:
    with pytest.raises(DeviceError, match=rf"ASSERT assert_0: condition: does not hold.*{shown}"):
        asserted(np.array([True, False]), summarize)


def test_element_types_of_an_assertion() -> None:
    b = Builder()
    condition = b.constant(np.array(True))
    (made,) = b.add_all(Assert, condition, [b.constant(np.ones(2, np.int8))])
    assert made.type.element_type is ElementType.INT8
