"""Simplification of computed shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import dedented, float32, model_of, outputs_of

from crosschip.ir import (
    Builder,
    Dim,
    ElementType,
    ModelError,
    Operand,
    TensorType,
    symbol,
)
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.passes import ResolveShapes, simplify, verified

N, M = symbol("N"), symbol("M")
resolve = ResolveShapes()


def size(b: Builder, x: Operand, axis: int) -> Operand:
    """Return the size of an axis as a list of one integer, as exporters write it."""
    one = b.add(Gather, b.add(ShapeOf, x), np.array(axis), 0)
    return b.add(Unsqueeze, one, (0,))


def listed(b: Builder, *sizes: Operand | int) -> Operand:
    parts = [b.constant(np.array([s])) if isinstance(s, int) else s for s in sizes]
    return b.add(Concat, parts, 0)


def test_heads_are_split_without_computing_a_shape() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        y = b.add(Relu, x)
        shape = listed(b, size(b, y, 0), size(b, y, 1), 2, 4)
        apart = b.add(Transpose, b.add(Reshape, y, shape), (0, 2, 1, 3))
        whole = b.add(Transpose, apart, (0, 2, 1, 3))
        return b.add(Reshape, whole, listed(b, size(b, whole, 0), size(b, whole, 1), 8))

    with verified():
        after = simplify(model_of(make, float32(N, M, 8)))
    assert str(after) == dedented("""
        model model
          input x0: float32[N, M, 8]
          %relu_0 = RELU(input=%x0): float32[N, M, 8]
          %reshape_0 = RESHAPE(input=%relu_0, shape=[0, 0, 2, 4]): float32[N, M, 2, 4]
          %reshape_1 = RESHAPE(input=%reshape_0, shape=[0, 0, 8]): float32[N, M, 8]
          output y0 = %reshape_1
    """)


def test_a_size_about_which_nothing_is_known_is_kept() -> None:
    def make(b: Builder, x: Operand, s: Operand) -> Operand:
        y = b.add(Reshape, x, s)
        return b.add(Reshape, y, listed(b, size(b, y, 0), 2, 2))

    sizes = TensorType(ElementType.INT64, (2,))
    after = simplify(model_of(make, float32(N, 4), sizes))
    (*_, last) = after.operations
    assert isinstance(last, Reshape)
    assert tuple(last.shape) == (0, 2, 2)


def reshaped(*shape: Dim) -> tuple[int, ...] | None:
    """Return the constant shape of a RESHAPE of [N, M, 4]; `None` if it stays computed."""

    def make(b: Builder, x: Operand) -> Operand:
        sizes: list[Operand | int] = []
        for wanted in shape:
            if isinstance(wanted, int):
                sizes.append(wanted)
            elif wanted == N * M:
                sizes.append(b.add(Mul, size(b, x, 0), size(b, x, 1)))
            elif wanted == N + M:
                sizes.append(b.add(Add, size(b, x, 0), size(b, x, 1)))
            else:
                sizes.append(size(b, x, (N, M).index(wanted)))
        return b.add(Reshape, x, listed(b, *sizes))

    with verified():
        after = resolve(model_of(make, float32(N, M, 4)))
    last = after.operations[-1]
    assert isinstance(last, Reshape)
    return tuple(last.shape) if last.inputs[1] and last.inputs[1].is_constant else None


@pytest.mark.parametrize(
    ("shape", "constant"),
    [
        ((N, M, 2, 2), (0, 0, 2, 2)),
        ((N, -1, 2), (0, -1, 2)),
        ((N * M, 4), (-1, 4)),
        ((2, N * M, 2), (2, -1, 2)),
        ((M, N, 4), None),  # which of two is -1?
        ((4, N * M), (4, -1)),
        ((N, 4, M), None),  # of 0 entries, -1 would have any size
        ((N + M, 4), None),  # it fits only where there are two of each
        ((N * M, -1), None),
    ],
    ids=str,
)
def test_the_constant_that_does(shape: Sequence[Dim], constant: tuple[int, ...] | None) -> None:
    assert reshaped(*shape) == constant


def test_zeros_that_are_sizes_stay() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Reshape, x, listed(b, size(b, x, 0), 0), allow_zero=True)

    model = model_of(make, float32(N, 0))
    after = resolve(model)
    last = after.operations[-1]
    assert isinstance(last, Reshape)
    assert last.allow_zero


def test_sizes_are_computed_once() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        y = b.add(Relu, x)
        return y, size(b, x, 0), size(b, y, 0), b.add(ShapeOf, y, ElementType.INT32)

    assert str(simplify(model_of(make, float32(N, 3)))) == dedented("""
        model model
          input x0: float32[N, 3]
          %relu_0 = RELU(input=%x0): float32[N, 3]
          %shape_0 = SHAPE(input=%x0): int64[2]
          %gather_0 = GATHER(input=%shape_0, indices=0): int64[]
          %unsqueeze_0 = UNSQUEEZE(input=%gather_0, axes=[0]): int64[1]
          %shape_2 = SHAPE(input=%relu_0, dtype=int32): int32[2]
          output y0 = %relu_0
          output y1 = %unsqueeze_0
          output y2 = %unsqueeze_0
          output y3 = %shape_2
    """)


# A size of 0 that is computed is kept, on whichever axis, and may not hold the elements then.
@given(st.integers(1, 3), st.integers(1, 3), st.permutations(range(4)), st.booleans())
def test_it_means_the_same(n: int, m: int, order: Sequence[int], is_flat: bool) -> None:
    def make(b: Builder, x: Operand, other: Operand) -> tuple[Operand, ...]:
        parts: list[Operand | int] = [size(b, x, 0), size(b, other, 0), 2, 3]
        if is_flat:
            parts = [b.add(Mul, size(b, other, 0), size(b, x, 0)), 2, 3]
            return b.add(Reshape, x, listed(b, *parts)), listed(b, size(b, other, 0))
        shape = listed(b, *(parts[index] for index in order))
        return b.add(Reshape, x, shape), shape

    model = model_of(make, float32(N, M, 6), float32(M))
    x = np.arange(n * m * 6, dtype=np.float32).reshape(n, m, 6)
    inputs = {"x0": x, "x1": np.zeros(m, np.float32)}
    with verified():
        after = resolve(model)
    results = outputs_of(after, inputs)
    for name, array in outputs_of(model, inputs).items():
        np.testing.assert_array_equal(results[name], array, strict=True)


def test_a_pass_that_leaves_a_shape_to_be_computed_is_caught() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Reshape, x, listed(b, size(b, x, 0), 2, 2))

    model = model_of(make, float32(N, 4))
    with pytest.raises(ModelError, match="still computes its shape"):
        resolve.ensures(model, model)
