"""Removal of identities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.modelling import dedented, float32, model_of

from crosschip.ir import Builder, ElementType, Operand, TensorType, symbol
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.slicing import Slice
from crosschip.passes import RemoveIdentities, RemoveUnused

N, M = symbol("N"), symbol("M")
END = 2**31 - 1
remove = RemoveIdentities()

Make = Callable[[Builder, Operand], Operand]

IDENTITIES: dict[str, Make] = {
    "assign": lambda b, x: b.add(Assign, x),
    "cast to its own type": lambda b, x: b.add(Cast, x, ElementType.FLOAT32),
    "concat of one": lambda b, x: b.add(Concat, [x], 1),
    "reshape to its own shape": lambda b, x: b.add(Reshape, x, (-1, 3, 4)),
    "reshape that keeps sizes": lambda b, x: b.add(Reshape, x, (0, 0, -1)),
    "flatten of one axis": lambda b, x: b.add(Flatten, x, 2, 2),
    "expand to its own shape": lambda b, x: b.add(Expand, x, (-1, 3, 4)),
    "expand to ones": lambda b, x: b.add(Expand, x, (1, 1, 1)),
    "slice of everything": lambda b, x: b.add(Slice, x, (0, 2), (0, 0), (END, 4)),
    "slice with a step of one": lambda b, x: b.add(Slice, x, (1,), (0,), (3,), (1,)),
    "transpose to the same order": lambda b, x: b.add(Transpose, x, (0, 1, 2)),
    "transpose counted from the end": lambda b, x: b.add(Transpose, x, (-3, 1, -1)),
}

NO_IDENTITIES: dict[str, Make] = {
    "cast to another type": lambda b, x: b.add(Cast, x, ElementType.FLOAT64),
    "concat of two": lambda b, x: b.add(Concat, [x, x], 1),
    "reshape to another shape": lambda b, x: b.add(Reshape, x, (3, -1, 4)),
    "flatten of two axes": lambda b, x: b.add(Flatten, x, 1, 2),
    "unsqueeze": lambda b, x: b.add(Unsqueeze, x, (0,)),
    "squeeze": lambda b, x: b.add(Squeeze, x, (0,)),
    "expand to more": lambda b, x: b.add(Expand, x, (2, 1, 3, 4)),
    "slice of a part": lambda b, x: b.add(Slice, x, (1,), (1,), (3,)),
    "slice backwards": lambda b, x: b.add(Slice, x, (1,), (-1,), (-(2**31),), (-1,)),
    "slice to a size that may cut": lambda b, x: b.add(Slice, x, (0,), (0,), (100,)),
    "transpose of equal axes": lambda b, x: b.add(Transpose, x, (0, 2, 1)),
}


@pytest.mark.parametrize("kind", IDENTITIES)
def test_an_identity_is_removed(kind: str) -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        same = IDENTITIES[kind](b, x)
        return b.add(Relu, same), same

    assert str(remove(model_of(make, float32(N, 3, 4)))) == dedented("""
        model model
          input x0: float32[N, 3, 4]
          %relu_0 = RELU(input=%x0): float32[N, 3, 4]
          output y0 = %relu_0
          output y1 = %x0
    """)


def test_parts_without_elements_are_left_out() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        nothing = b.constant(np.zeros((2, 0, 4), np.float32))
        return b.add(Concat, [nothing, x, nothing, x], 1), b.add(Concat, [x, nothing], -2)

    assert str(remove(model_of(make, float32(2, 3, 4)))) == dedented("""
        model model
          input x0: float32[2, 3, 4]
          %concat_0 = CONCAT(parts=[%x0, %x0], axis=1): float32[2, 6, 4]
          output y0 = %concat_0
          output y1 = %x0
    """)


def test_what_has_no_elements_at_all_stays() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Concat, [x, x], 1)

    model = model_of(make, float32(2, 0, 4))
    assert str(remove(model)) == str(model)


@pytest.mark.parametrize("kind", NO_IDENTITIES)
def test_what_does_something_stays(kind: str) -> None:
    model = model_of(NO_IDENTITIES[kind], float32(N, 3, 4))
    assert str(remove(model)) == str(model)


def test_a_chain_of_identities_is_removed_whole() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        y = b.add(Assign, b.add(Assign, b.add(Cast, x, ElementType.FLOAT32)))
        return b.add(Assign, b.add(Relu, y))

    assert str(remove(model_of(make, float32(2)))) == dedented("""
        model model
          input x0: float32[2]
          %relu_0 = RELU(input=%x0): float32[2]
          output y0 = %relu_0
    """)


@pytest.mark.parametrize(
    "make",
    [
        lambda b, x, s: b.add(Reshape, x, s),
        lambda b, x, s: b.add(Expand, x, s),
        lambda b, x, s: b.add(Transpose, x, s),
        lambda b, x, s: b.add(Slice, x, starts=s, ends=(END, END)),
        lambda b, x, s: b.add(Slice, x, starts=(0, 0), ends=(END, END), steps=s),
    ],
    ids=["reshape", "expand", "transpose", "slice from", "slice by"],
)
def test_what_is_computed_when_the_model_runs_may_do_anything(make: Callable[..., Operand]) -> None:
    model = model_of(make, float32(1, 3), TensorType(ElementType.INT64, (2,)))
    assert str(remove(model)) == str(model)


def test_sizes_about_which_nothing_is_known_may_differ() -> None:
    sizes = TensorType(ElementType.INT64, (2,))

    def make(b: Builder, x: Operand, s: Operand) -> Operand:
        return b.add(Reshape, b.add(Reshape, x, s), s)

    model = model_of(make, float32(2, 3), sizes)
    assert str(remove(model)) == str(model)


def test_what_no_output_depends_on_is_removed() -> None:
    def make(b: Builder, x: Operand, unused: Operand) -> tuple[Operand, ...]:
        b.add(Relu, b.add(Relu, unused, name="dead_0"), name="dead_1")
        weights = b.constant(np.zeros(9, np.float32), "weights")
        b.add(Concat, [x, weights], 0, name="dead_2")
        return b.add(Relu, x), weights

    model = model_of(make, float32(2), float32(3))
    assert str(RemoveUnused()(model)) == dedented("""
        model model
          input x0: float32[2]
          input x1: float32[3]
          constant @weights: float32[9]
          %relu_0 = RELU(input=%x0): float32[2]
          output y0 = %relu_0
          output y1 = @weights
    """)
