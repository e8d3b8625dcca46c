"""Indices and sizes that are proven while a model is built are not checked in runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr

import crosschip
from crosschip.devices.openvino import OpenVinoDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, DeviceError, ElementType, Operand, TensorType, symbol
from crosschip.ops.standard.activation import Gelu
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather, GatherND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceProd
from crosschip.ops.standard.searching import ArgMax
from crosschip.ops.standard.unary import Abs

N, M = symbol("n"), symbol("m")

Make = Callable[[Builder, Operand, Operand, Operand], Operand]
"""Adds what reads a tensor of open sizes at places that these two sizes make."""


def _counted(b: Builder, end: Operand) -> Operand:
    return b.add(Range, np.array(0), end, np.array(1))


def _flat(b: Builder, rows: Operand, columns: Operand) -> Operand:
    row = b.add(Reshape, _counted(b, rows), (-1, 1))
    return b.add(Add, b.add(Mul, row, columns), _counted(b, columns))


def _in_flattened(b: Builder, x: Operand, rows: Operand, columns: Operand) -> Operand:
    return b.add(Gather, b.add(Reshape, x, (-1,)), _flat(b, rows, columns), 0)


def _on_grid(b: Builder, x: Operand, rows: Operand, columns: Operand) -> Operand:
    shape = b.add(
        Concat, [b.add(Reshape, each, (1,)) for each in (rows, columns, b.constant(np.array(1)))], 0
    )
    row = b.add(Reshape, _counted(b, rows), (-1, 1, 1))
    column = b.add(Reshape, _counted(b, columns), (1, -1, 1))
    places = [b.add(Expand, each, shape) for each in (row, column)]
    return b.add(GatherND, x, b.add(Concat, places, 2))


def _one_further(b: Builder, x: Operand, rows: Operand, columns: Operand) -> Operand:
    more = b.add(Add, rows, b.constant(np.array(1)))
    return b.add(Gather, x, _counted(b, more), 0)


def _of_the_other_axis(b: Builder, x: Operand, rows: Operand, columns: Operand) -> Operand:
    return b.add(Gather, x, _counted(b, columns), 0)


def _run(make: Make, given: Array) -> tuple[Array, int]:
    """Return the outputs of a model and the number of checked rules."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (N, M)))
    shape = b.add(ShapeOf, x)
    sizes = [b.add(Gather, shape, np.array(axis), 0) for axis in (0, 1)]
    b.output("y", make(b, x, *sizes))
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        (program,) = compiled.executable.programs
        return compiled.run({"x": given})["y"], len(program._rules)  # type: ignore[attr-defined]  # it is a guard


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (0, 4)])
@pytest.mark.parametrize("make", [_in_flattened, _on_grid])
def test_places_that_are_there_in_every_run_are_not_looked_at(
    make: Make, shape: tuple[int, int]
) -> None:
    given = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    made, rules = _run(make, given)
    np.testing.assert_array_equal(made, given)
    assert not rules


def test_the_last_tokens_of_known_rows_are_not_looked_at() -> None:
    """As in text transformers with a static batch."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 5, 3)))
    ids = b.input("ids", TensorType(ElementType.INT32, (2, 5)))
    last = b.add(Reshape, b.add(ArgMax, ids, 1), (-1, 1))
    places = b.add(Concat, [b.constant(np.array([[0], [1]])), last], 1)
    b.output("y", b.add(GatherND, x, places))
    random = np.random.default_rng(2)
    given, ends = random.random((2, 5, 3), np.float32), random.permuted(np.arange(10).reshape(2, 5))
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        (program,) = compiled.executable.programs
        assert not program._rules  # type: ignore[attr-defined]  # it is a guard
        made = compiled.run({"x": given, "ids": ends.astype(np.int32)})["y"]
    np.testing.assert_array_equal(made, given[[0, 1], ends.argmax(1)])


def test_one_axis_of_all_elements() -> None:
    """The requested size is checked unless it is -1."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (N, M)))
    count = b.input("count", TensorType(ElementType.INT64, (1,)))
    shape = b.add(ShapeOf, x)
    total = b.add(ReduceProd, shape, (0,), True)
    b.output("flat", b.add(Reshape, x, (-1,)))
    b.output("counted", b.add(Reshape, x, total))
    b.output("asked", b.add(Reshape, x, count))
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        for sizes in [(2, 3), (1, 1), (4, 1), (0, 3)]:
            given = np.random.default_rng(5).random(sizes, np.float32)
            made = compiled.run({"x": given, "count": np.array([given.size])})
            for name, array in made.items():
                np.testing.assert_array_equal(array, given.ravel(), err_msg=name)
        with pytest.raises(DeviceError, match="does not hold the input's elements"):
            compiled.run({"x": np.ones((2, 3), np.float32), "count": np.array([5])})


@pytest.mark.parametrize("size", [5, 2**24 - 1, 2**24, 2**24 + 1])
def test_places_beyond_a_table_are_told_from_those_in_it(size: int) -> None:
    """Two lookups with the same indices are checked once."""
    b = Builder()
    places = b.add(Add, b.input("places", TensorType(ElementType.INT32, (N,))), np.int32(0))
    table = np.arange(size).astype(np.uint8)
    b.output("one", b.add(Gather, table, places, 0))
    b.output("other", b.add(Gather, table[::-1].copy(), places, 0))
    with OpenVinoDevice() as device:
        program = device.compile(b.build(), Options(threads=1))
        for place in (0, size - 1, -size, 2, -2):
            one, other = program.run([np.array([place], np.int32)])
            assert (one, other) == (table[place], table[::-1][place])
        for place in (size, -size - 1, size + 1, 2**31 - 1, -(2**31), 2**25, 2**24 + 2, -(2**25)):
            with pytest.raises(DeviceError, match="indices: one is out of range"):
                program.run([np.array([1, place, 1], np.int32)])
        assert len(program._requirements.rules) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [_one_further, _of_the_other_axis])
def test_places_that_may_be_missing_are(make: Make) -> None:
    with pytest.raises(DeviceError, match="indices: one is out of range"):
        _run(make, np.ones((2, 3), np.float32))


def test_sizes_that_are_made_of_elements_are_looked_at() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (N, 1)))
    size = b.input("size", TensorType(ElementType.INT64, (1,)))
    b.output("y", b.add(Expand, x, b.add(Concat, [b.constant(np.array([1])), size], 0)))
    given = np.arange(3, dtype=np.float32).reshape(3, 1)
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        made = compiled.run({"x": given, "size": np.array([4])})["y"]
        np.testing.assert_array_equal(made, given.repeat(4, 1))
        with pytest.raises(DeviceError, match="shape: has a negative size"):
            compiled.run({"x": given, "size": np.array([-3])})


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("size", [1, 5, 300])
def test_absolute_values_leave_what_they_are_of(dtype: type[np.generic], size: int) -> None:
    """Other readers of the concatenation, before and after."""
    b = Builder()
    kind = ElementType(np.dtype(dtype).name)
    x = b.input("x", TensorType(kind, (N,)))
    joined = b.add(Concat, [x, b.constant(np.array([-1], dtype))], 0)
    b.output("before", b.add(Mul, joined, joined))
    b.output("absolute", b.add(Abs, joined))
    b.output("after", b.add(Add, joined, joined))
    b.output("joined", joined)
    given = (np.random.default_rng(4).standard_normal(size) * 9).astype(dtype)
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        made = compiled.run({"x": given})
    whole = np.append(given, np.array([-1], dtype))
    np.testing.assert_array_equal(made["before"], whole * whole)
    np.testing.assert_array_equal(made["absolute"], np.abs(whole))
    np.testing.assert_array_equal(made["after"], whole + whole)
    np.testing.assert_array_equal(made["joined"], whole)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_gelu_of_a_view_of_a_product_is_computed_with_it(order: tuple[int, ...]) -> None:
    """Fused, it may return NaN for infinity only."""
    b = Builder()
    weight = np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32)
    x = b.input("x", TensorType(ElementType.FLOAT32, (N, 4)))
    view = b.add(Reshape, b.add(MatMul, x, weight), (-1, 2, 8))
    b.output("y", b.add(Gelu, b.add(Transpose, view, order)))
    model = b.build()
    given = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float32) * 10
    with OpenVinoDevice() as device:
        program = device.compile(model, Options(threads=1))
        (made,) = program.run([given])
        layers = program._compiled_model.get_runtime_model()  # type: ignore[attr-defined]
    names = [node.get_rt_info()["originalLayersNames"].value for node in layers.get_ops()]
    assert not any("Select" in name for name in names)
    product = given.astype(np.float64) @ weight
    expected = product * ndtr(product)
    turned = expected.reshape(-1, 2, 8).transpose(order)
    np.testing.assert_allclose(made, turned, rtol=1e-4, atol=1e-4)
