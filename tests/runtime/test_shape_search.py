"""Sizes at which a model runs, derived from the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32, model_of

from crosschip.hal import Sizes
from crosschip.ir import (
    Builder,
    ElementType,
    Model,
    Operand,
    TensorType,
    symbol,
    unknown,
)
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.runtime.shapes.shape_search import Shapes, ShapeSearch


def first(model: Model, sizes: Sizes = Sizes()) -> Shapes:  # noqa: B008  # immutable
    return next(ShapeSearch(model, sizes).shapes())


def test_a_reshape_fixes_the_size_that_it_does_not_follow() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        down = b.add(Conv2D, x, b.constant(np.zeros((4, 3, 3, 3), np.float32)), strides=[16, 16])
        return b.add(Reshape, down, shape=[0, 4, 3, -1])

    model = model_of(make, float32(symbol("N"), 3, unknown(), symbol("W")))
    height = first(model)["x0"][2]
    assert (height - 3) // 16 + 1 == 3
    assert first(model)["x0"][:2] == (1, 3)


def test_sizes_of_several_inputs_fit_each_other() -> None:
    def make(b: Builder, past: Operand, now: Operand, mask: Operand) -> Operand:
        return b.add(Add, b.add(Concat, [past, now], axis=1), mask)

    types = [float32(symbol("batch"), symbol(name)) for name in ("past", "step", "total")]
    shapes = first(model_of(make, *types))
    past, step, total = (shapes[f"x{i}"][1] for i in range(3))
    assert past + step == total


def test_windows_need_so_much() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Conv2D, x, b.constant(np.zeros((8, 1, 1, 512), np.float32)))

    assert first(model_of(make, float32(1, 1, 1, symbol("samples"))))["x0"] == (1, 1, 1, 512)


def test_an_input_of_any_rank_has_one_that_fits() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Add, b.add(MatMul, x, b.constant(np.zeros((7, 2), np.float32))), x2(b))

    def x2(b: Builder) -> Operand:
        return b.constant(np.zeros((2,), np.float32))

    model = model_of(make, TensorType(ElementType.FLOAT32, None))
    assert first(model)["x0"][-1] == 7


def test_what_runs_at_no_size_has_none_and_the_search_ends() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        return b.add(Reshape, x, shape=[7, 2]), b.add(Reshape, x, shape=[5, 2])

    model = model_of(make, float32(symbol("N"), 2))
    search = ShapeSearch(model, Sizes())
    assert list(search.shapes()) == []
    assert search.mismatch is not None
    assert search.mismatch.operation in model.operations
    assert search.usual() == {"x0": (1, 2)}


def test_sizes_are_found_wherever_the_range_begins() -> None:
    model = model_of(lambda b, x: b.add(Reshape, x, shape=[7, -1]), float32(symbol("N"), 3))
    found = first(model, Sizes.of({"N": (5000, 5010)}, []))
    assert found == {"x0": (5005, 3)}


@given(
    factor=st.integers(1, 40),
    rest=st.integers(1, 40),
    least=st.integers(1, 64),
    width=st.integers(0, 64),
)
def test_sizes_keep_to_ranges_and_profiles(factor: int, rest: int, least: int, width: int) -> None:
    """Some size is found wherever there is one: a multiple of a number, within bounds."""
    model = model_of(
        lambda b, x: b.add(Relu, b.add(Reshape, x, shape=[factor, -1, rest])),
        float32(symbol("N"), rest),
    )
    most = least + width
    fits = [size for size in range(least, most + 1) if size % factor == 0]
    ranges: Mapping[str, Any] = {"N": (least, most)}
    found = [shapes["x0"][0] for shapes in ShapeSearch(model, Sizes.of(ranges, [])).shapes()]
    assert bool(found) == bool(fits)
    assert set(found) <= set(fits)
    for size in fits[:1]:
        assert first(model, Sizes.of(ranges, [{"N": size}])) == {"x0": (size, rest)}
