"""Groups of operations, and which of them to try, against trying all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32, model_of

from crosschip.ir import Builder, Model, Operand
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.matrix import MatMul
from crosschip.tuning.groups import Group, best_run, best_subset, combined_error, groups_of

GROUPS = st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1)), min_size=1, max_size=6).map(
    lambda drawn: ([Group((str(i),), share) for i, (share, _) in enumerate(drawn)], drawn)
)


def chain(widths: list[int]) -> Model:
    """Products with weights of these widths, each with a RELU behind it."""

    def make(b: Builder, x: Operand) -> Operand:
        for before, width in zip([4, *widths], widths, strict=False):
            x = b.add(Relu, b.add(MatMul, x, np.ones((before, width), np.float32)))
        return x

    return model_of(make, float32(2, 4))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 10))
def test_groups_are_all_operations_in_their_order(widths: list[int], count: int) -> None:
    model = chain(widths)
    groups = groups_of(model.operations, count)
    assert [name for group in groups for name in group.operations] == [
        operation.name for operation in model.operations
    ]
    assert 1 <= len(groups) <= count
    assert all(group.operations for group in groups)
    assert sum(group.share for group in groups) == pytest.approx(1)


def test_groups_have_about_the_same_arithmetic() -> None:
    shares = [group.share for group in groups_of(chain([4] * 16).operations, 4)]
    assert shares == pytest.approx([0.25] * 4)


def test_without_arithmetic_they_are_of_the_same_size() -> None:
    model = model_of(lambda b, x: b.add(Relu, b.add(Relu, x)), float32(2))
    assert [group.share for group in groups_of(model.operations, 2)] == [0.5, 0.5]


@given(GROUPS, st.floats(0, 2))
def test_the_run_with_the_most_arithmetic(
    drawn: tuple[list[Group], list[tuple[float, float]]], most: float
) -> None:
    groups, values = drawn
    errors = [error for _, error in values]
    chosen = best_run(groups, errors, most)
    assert chosen == list(range(chosen[0], chosen[0] + len(chosen))) if chosen else True
    assert combined_error(errors[i] for i in chosen) <= most or not chosen
    best = max(
        (
            sum(group.share for group in groups[first:last])
            for first, last in combinations(range(len(groups) + 1), 2)
            if combined_error(errors[first:last]) <= most
        ),
        default=0.0,
    )
    assert sum(groups[i].share for i in chosen) == pytest.approx(best)


@given(GROUPS, st.floats(0, 2))
def test_a_subset_stays_below_the_bound(
    drawn: tuple[list[Group], list[tuple[float, float]]], most: float
) -> None:
    groups, values = drawn
    errors = [error for _, error in values]
    chosen = best_subset(groups, errors, most)
    assert combined_error(errors[i] for i in chosen) <= most or not chosen
    assert chosen == sorted(set(chosen))
    if combined_error(errors) <= most:
        assert len(chosen) == len(groups)
    if not chosen:
        assert min(errors) > most
