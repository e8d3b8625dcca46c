"""Upper bounds of integers, as expressions over dimensions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32

import crosschip
from crosschip.ir import Builder, ElementType, Operand, TensorType, symbol
from crosschip.ir.dimension import substitute
from crosschip.lowering.ranges.upper_bounds import UpperBounds
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.searching import ArgMax

SIZES = ("n", "m")


def sizes_of(b: Builder, x: Operand) -> list[Operand]:
    """Return the sizes of an input as lists of one integer."""
    shape = b.add(ShapeOf, x)
    return [b.add(Gather, shape, np.array(axis), 0) for axis in range(len(SIZES))]


def positions(draw: st.DrawFn, b: Builder, x: Operand) -> Operand:
    """Return integers computed from positions on axes, as columns or rows."""
    sizes = sizes_of(b, x)

    def leaf() -> Operand:
        axis = draw(st.integers(0, 1))
        if draw(st.booleans()):
            flat = b.add(ArgMax, x, 1 - axis)
        else:
            flat = b.add(Range, np.array(0), sizes[axis], 1)
        return b.add(Reshape, flat, [(-1, 1), (1, -1)][axis])

    made = leaf()
    for _ in range(draw(st.integers(0, 4))):
        constants = (b.constant(np.array(numbers)) for numbers in (3, [[[4]], [[0]]]))
        factor = draw(st.sampled_from([*sizes, *constants]))
        made = b.add(Mul, made, factor) if draw(st.booleans()) else b.add(Add, made, leaf())
    return made


@given(data=st.data(), n=st.integers(1, 4), m=st.integers(1, 4))
def test_no_integer_is_greater_than_the_last(data: st.DataObject, n: int, m: int) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, tuple(map(symbol, SIZES))))
    b.output("y", data.draw(st.composite(lambda draw: positions(draw, b, x))()))
    model = b.build()
    lasts = UpperBounds()
    for operation in model.operations:
        lasts.follow(operation)
    last = lasts.of(model.outputs["y"])
    assert last is not None
    given = np.random.default_rng(0).random((n, m), np.float32)
    with crosschip.compile(model, ["reference"], cache=False) as compiled:
        made = compiled.run({"x": given})["y"]
    most = substitute(last, {"n": n, "m": m})
    assert isinstance(most, int)
    assert not made.size or 0 <= made.min() <= made.max() <= most
    reached = lasts.reached(model.outputs["y"], 1)
    if reached is not None:
        assert reached == [last]
        assert not made.size or made.max() == most


def test_positions_in_a_flattened_tensor_end_with_its_last_element() -> None:
    b = Builder()
    n, m = map(symbol, SIZES)
    x = b.input("x", TensorType(ElementType.FLOAT32, (n, m)))
    rows, columns = sizes_of(b, x)
    row = b.add(Reshape, b.add(Range, np.array(0), rows, 1), (-1, 1))
    column = b.add(Range, np.array(0), columns, 1)
    flat = b.add(Add, b.add(Mul, row, columns), column)
    pairs = b.add(Concat, [row, b.add(Mul, row, 2)], 1)
    b.output("flat", flat)
    b.output("pairs", pairs)
    lasts = UpperBounds()
    for operation in b.build().operations:
        lasts.follow(operation)
    assert lasts.of(flat) == n * m - 1
    assert lasts.of_columns(pairs, 2) == lasts.reached(pairs, 2) == [n - 1, 2 * n - 2]
    assert lasts.reached(pairs, 3) is lasts.reached(flat, 1) is None
    assert lasts.reached(column, 1) == [m - 1]
    assert lasts.of_columns(pairs, 3) == [None] * 3


def test_constants_beside_others_end_with_their_greatest() -> None:
    b = Builder()
    rows = b.constant(np.array([[1], [0], [2]]))
    found = b.add(Reshape, b.add(ArgMax, b.input("x", float32(3, 7)), 1), (-1, 1))
    pairs = b.add(Concat, [rows, found], 1)
    b.output("pairs", pairs)
    lasts = UpperBounds()
    for operation in b.build().operations:
        lasts.follow(operation)
    assert lasts.of_columns(pairs, 2) == [2, 6]
    assert lasts.reached(pairs, 2) is None
    assert lasts.of(b.constant(np.array([3, -1]))) is None
    assert lasts.of(b.constant(np.zeros(0, np.int64))) is None
