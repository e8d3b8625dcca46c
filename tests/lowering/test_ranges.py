"""Range analysis, against reference results."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from tests.random_integers import Integers, integers

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Builder, Dim, ElementType, Model, TensorType, symbol
from crosschip.ir.dimension import substitute
from crosschip.lowering.ranges.analysis import LONGEST, Assumptions, Ranges
from crosschip.lowering.ranges.interval import Interval, of_size
from crosschip.lowering.ranges.rules import RULES
from crosschip.ops import examples_of, operator_named, operators
from crosschip.ops.definition.examples import model_of
from crosschip.ops.standard.arithmetic import Add, Min, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.reduction import CumSum, ReduceMax, ReduceSum
from crosschip.ops.standard.searching import ArgMax, NonZero, SearchSorted, TopK
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Log

INT32 = Interval(-(2**31), 2**31 - 1)


def assumptions(model: Model, *inputs: Interval, longest: int = LONGEST) -> Assumptions:
    """Return the assumption that inputs are in these ranges."""
    given = dict(zip(model.inputs.values(), inputs, strict=False))
    return Assumptions(given, {}, longest, frozenset("NM"), INT32)


def ranges_of(model: Model, assumed: Assumptions) -> Ranges:
    """Return the ranges of a model's operands."""
    ranges = Ranges(assumed, {}, floats=True)
    for operation in model.operations:
        ranges.follow(operation)
    return ranges


@pytest.mark.slow
@settings(max_examples=300)
@given(integers())
def test_what_is_computed_is_in_its_range(example: Integers) -> None:
    model = example.model
    made = [output for operation in model.operations for output in operation.outputs]
    every = Model("all", model.inputs, model.operations, {o.name: o for o in made})
    arrays = [example.inputs[name] for name in model.inputs]
    given = (Interval(int(array.min()), int(array.max())) for array in arrays)
    ranges = ranges_of(model, assumptions(model, *given))
    for operand, elements in zip(made, ReferenceProgram(every).run(arrays), strict=True):
        found = ranges.of(operand)
        numbers = elements[np.isfinite(elements)]
        if found is not None and numbers.size:
            assert found.low <= numbers.min().item(), operand
            assert numbers.max().item() <= found.high, operand


def test_ranges_of_what_is_bounded_by_sizes() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), 10)))
    best, places = b.add_all(TopK, x, 3, 1)
    expected = {
        b.add(ArgMax, x, 1): (0, 9),
        b.add(ArgMax, x, 0): (0, 99),
        b.add(SearchSorted, b.add(Reshape, x, (-1,)), np.ones(3, np.float32)): (0, 1000),
        places: (0, 9),
        b.add(NonZero, x): (0, 99),
        b.add(ShapeOf, x): (0, 100),
    }
    length = b.add(Gather, b.add(ShapeOf, x), np.array(0), 0)
    expected[b.add(Range, np.array(0), length, np.array(1))] = (0, 100)
    for index, operand in enumerate([*expected, best]):
        b.output(f"y{index}", operand)
    model = b.build()
    ranges = ranges_of(model, assumptions(model, longest=100))
    for operand, (low, high) in expected.items():
        assert ranges.of(operand) == Interval(low, high), operand
    assert ranges.of(best) is None


@pytest.mark.parametrize("name", operators())
def test_indices_and_counts_have_a_range(name: str) -> None:
    """Without one, devices that compute int64 in 32 bits do not run what reads them."""
    for arguments in examples_of(operator_named(name)):
        (operation,) = model_of(operator_named(name), arguments).operations
        inputs = {operand.type.element_type for operand in operation.inputs if operand is not None}
        outputs = {output.type.element_type for output in operation.outputs}
        assert ElementType.INT64 not in outputs - inputs or type(operation) in RULES, (
            f"{name} makes int64 of other elements: say what range they have, with @range_of in "
            "src/crosschip/lowering/ranges/rules.py"
        )


def test_sizes_that_show_in_a_run_only() -> None:
    """A data-dependent size is bounded by the sizes that it derives from."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT64, (symbol("N"), 10)))
    count = b.input("count", TensorType(ElementType.INT64, ()))
    some = b.add(Slice, x, axes=(0,), starts=b.add(Reshape, count, (1,)), ends=(2**40,))
    best, _ = b.add_all(TopK, x, b.add(Min, count, np.array(50)), 0)
    expected = [
        (b.add(NonZero, x), -1, 1000),
        (b.add(Range, np.array(0), count, np.array(2)), 0, 3),
        (b.add(Expand, np.ones(1, np.float32), b.add(Reshape, count, (1,))), 0, 5),
        (some, 0, 100),
        (best, 0, 5),
        (b.add(Add, some, best), 0, 100),
    ]
    counts = {
        b.add(Gather, b.add(ShapeOf, operand), np.array(axis), 0): most
        for operand, axis, most in expected
    }
    for index, operand in enumerate(counts):
        b.output(f"y{index}", operand)
    model = b.build()
    ranges = ranges_of(model, assumptions(model, Interval(-9, 9), Interval(1, 5), longest=100))
    for operand, most in counts.items():
        assert ranges.of(operand) == Interval(0, most), operand


def test_sums_over_sizes() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT64, (symbol("N"), 4)))
    total, running = b.add(ReduceSum, x, (0, 1)), b.add(CumSum, x, 0)
    greatest = b.add(ReduceMax, x, (1,))
    of_nothing = b.add(ReduceMax, x, (0,))
    for index, operand in enumerate((total, running, greatest, of_nothing)):
        b.output(f"y{index}", operand)
    model = b.build()
    ranges = ranges_of(model, assumptions(model, Interval(-1, 3), longest=100))
    assert ranges.of(total) == Interval(-400, 1200)
    assert ranges.of(running) == Interval(-100, 300)
    assert ranges.of(greatest) == Interval(-1, 3)
    assert ranges.of(of_nothing) == Interval(-(2**63), 2**63 - 1)  # there may be no rows
    assert ranges.sources(total) == {x, "N"}


def test_integers_of_logarithms() -> None:
    """The logarithm of 0 is an infinity, whose cast to an integer is undefined."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT64, (3,)))
    real = b.add(Log, b.add(Cast, x, ElementType.FLOAT32))
    whole = b.add(Cast, real, ElementType.INT64)
    b.output("y", whole)
    model = b.build()
    found = ranges_of(model, assumptions(model, Interval(0, 1000))).of(whole)
    assert found is not None
    assert -110 < found.low < -100
    assert math.log(1000) < found.high < 10


def test_numbers_that_wrap_around_may_be_anything() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT64, (3,)))
    squares = b.add(Mul, x, x)
    chosen = b.add(Where, np.array(True), squares, x)
    b.output("y", chosen)
    model = b.build()
    whole = Interval(-(2**63), 2**63 - 1)
    assert ranges_of(model, assumptions(model, Interval(0, 2**32))).of(chosen) == whole
    found = ranges_of(model, assumptions(model, Interval(-5, 2**31))).of(chosen)
    assert found == Interval(-5 * 2**31, 2**62)


def test_expressions_over_sizes_keep_to_what_is_assumed_of_them() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), symbol("M"))))
    sizes = b.add(ShapeOf, x)
    n, m = (b.add(Gather, sizes, np.array([axis]), 0) for axis in (0, 1))
    product = b.add(Mul, n, m)
    sum_ = b.add(Add, product, np.array([3]))
    b.output("y", sum_)
    ranges = ranges_of(b.build(), assumptions(b.build()))
    assert ranges.fits(product, INT32)
    n_by_m = symbol("N") * symbol("M")
    assert ranges.sources(sum_) == {"N", "M", n_by_m, n_by_m + 3}


def test_positions_in_flattened_tensors_are_bounded_by_their_sizes() -> None:
    """Row index times row length plus column index is bounded by the number of elements."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), symbol("M"))))
    sizes = b.add(ShapeOf, x)
    n, m = (b.add(Gather, sizes, np.array(axis), 0) for axis in (0, 1))
    zero, one = np.array(0), np.array(1)
    rows = b.add(Unsqueeze, b.add(Range, zero, n, one), (1,))
    starts = b.add(Mul, rows, m)
    places = b.add(Add, starts, b.add(ArgMax, x, 1, keepdim=True))
    b.output("y", places)
    ranges = ranges_of(b.build(), assumptions(b.build()))
    assert ranges.fits(starts, INT32)
    assert ranges.fits(places, INT32)
    n_by_m = symbol("N") * symbol("M")
    assert {n_by_m, n_by_m + symbol("M")} <= ranges.sources(places)


@pytest.mark.parametrize(
    ("numerator", "expected"),
    [(symbol("N") * 2 + 1, (1, 201)), (symbol("N") - 5, (-5, 95)), ((symbol("N") + 1) // 2, None)],
)
def test_values_of_expressions(numerator: Dim, expected: tuple[int, int] | None) -> None:
    found = of_size(numerator, {"N": 100})
    values = [substitute(numerator, {"N": n}) for n in range(101)]
    assert all(isinstance(value, int) and found.low <= value <= found.high for value in values)
    if expected is not None:
        assert found == Interval(*expected)
