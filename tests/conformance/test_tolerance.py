"""The error that rounding alone makes, which a device may make too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from crosschip.conformance.latitude import least_size
from crosschip.conformance.tolerance import sensitivity
from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Builder, ElementType, Model, Operand, TensorType
from crosschip.ir.builder import constant
from crosschip.ops.standard.normalization import GroupNormalization
from crosschip.ops.standard.recurrent import RNN

CLOSE = np.array([[1.5, 1.5001, 1.2, 1.9]], np.float32)
"""Two groups of two numbers; the first are so close that their difference is inexact."""


def normalized(*, held: bool) -> Model:
    b = Builder()
    type_ = TensorType(ElementType.FLOAT32, CLOSE.shape)
    x = constant(CLOSE, "input") if held else b.input("input", type_)
    return whole(b, b.add_all(GroupNormalization, x, groups=2, epsilon=1e-8))


def whole(b: Builder, made: Sequence[Operand]) -> Model:
    """The model of one operation with all that it makes, as the cases of the kit are."""
    for index, operand in enumerate(made):
        b.output(f"output{index}", operand)
    return b.build()


@pytest.mark.parametrize("held", [False, True])
def test_a_difference_of_close_numbers_that_the_model_holds_or_gets(held: bool) -> None:
    model = normalized(held=held)
    inputs = [] if held else [CLOSE]
    expected = ReferenceProgram(model).run(inputs)
    moved, *_ = sensitivity(model, inputs, {"input"}, expected)
    # The spacing of float32 at 1.5 is 1.2e-7, and the numbers are 1e-4 apart.
    assert 1e-4 < moved < 0.1


def test_numbers_that_matter_are_left_as_they_are() -> None:
    model = normalized(held=True)
    moved, *_ = sensitivity(model, [], (), ReferenceProgram(model).run([]))
    assert moved < 1e-4


def test_steps_of_a_recurrent_network_are_as_exact_as_numbers_near_1() -> None:
    """However small what goes into them is."""
    b = Builder()
    x = b.input("input", TensorType(ElementType.FLOAT32, (1, 1, 1)))
    small = np.full((1, 1, 1), 1e-3, np.float32)
    made = b.add_all(RNN, x, small, small, activations=[6], activation_alpha=[3.0])
    model, inputs = whole(b, made), [small]
    expected = ReferenceProgram(model).run(inputs)
    assert least_size(model) == 3
    exact, _ = sensitivity(model, inputs, {"input"}, expected)
    near_one, _ = sensitivity(model, inputs, {"input"}, expected, size=3.0)
    assert exact < near_one < 1e-6
