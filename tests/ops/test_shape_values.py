"""Sizes that follow from shapes: symbolic at build time, computed at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conformance.decomposed import CoreDevice
from tests.ops.test_examples import CASES

from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options
from crosschip.ir import Builder, ElementType, Operand, TensorType, symbol
from crosschip.ir.dimension import Dim, minimum
from crosschip.ir.types import NARROW_TYPES
from crosschip.ops.definition.examples import arrays_for, model_of
from crosschip.ops.definition.shape_values import Sizes
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mod, Sub
from crosschip.ops.standard.comparison import Equal, NotEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, Range, Rank, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Stack
from crosschip.ops.standard.layout import Expand, Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.rearranging import Tile
from crosschip.ops.standard.reduction import ReduceProd
from crosschip.ops.standard.slicing import Slice
from crosschip.runtime.placement.placement import place

N, H, W = symbol("N"), symbol("H"), symbol("W")


@pytest.fixture
def b() -> Builder:
    return Builder()


@pytest.fixture
def x(b: Builder) -> Operand:
    return b.input("x", TensorType(ElementType.FLOAT32, (N, 3, H, W)))


def test_shapes_are_known_through_what_moves_them(b: Builder, x: Operand) -> None:
    shape = b.add(ShapeOf, x)
    space = b.add(Slice, shape, (0,), (2,), (4,))
    one = b.add(Gather, shape, np.array(0))
    sizes = b.add(Concat, [space, b.add(Unsqueeze, one, (0,))], axis=0)
    as_int32 = b.add(Cast, sizes, ElementType.INT32)
    assert b.add(Fill, as_int32, np.float32(0)).type.shape == (H, W, N)
    pair = b.add(Stack, [one, b.add(Squeeze, b.add(Slice, shape, (0,), (1,), (2,)), (0,))])
    assert b.add(Expand, np.zeros((1, 1)), pair).type.shape == (N, 3)
    flat = b.add(Reshape, x, b.add(Concat, [pair, b.constant(np.array([-1]))], axis=0))
    assert flat.type.shape == (N, 3, H * W)
    assert b.add(Tile, x, shape).type.shape == (N * N, 9, H * H, W * W)
    length = b.add(Gather, shape, np.array(2))
    assert b.add(Range, np.int64(0), length, np.int64(1)).type.shape == (H,)
    assert b.add(Fill, b.add(Rank, x), np.float32(0)).type.shape == (4,)


def test_parts_of_axes_of_open_sizes(b: Builder, x: Operand) -> None:
    """As many rows of a position table are selected as there are tokens."""
    length = b.add(Slice, b.add(ShapeOf, x), (0,), (2,), (3,))
    table = b.constant(np.zeros((64, 5), np.float32))
    rows = b.add(Slice, table, (0,), (0,), length)
    assert rows.type.shape == (minimum(64, H), 5)
    words = b.add(Slice, x, (3,), (0,), (1,))
    assert words.type.shape == (N, 3, H, minimum(1, W))
    assert b.add(
        Add,
        rows,
        b.add(
            Expand,
            np.zeros((1, 1), np.float32),
            b.add(Concat, [length, b.constant(np.array([5]))], 0),
        ),
    ).type.shape == (H, 5)
    for start, end, size in (
        (1, 2**31, W - minimum(1, W)),
        (0, -1, W - minimum(1, W)),
        (-3, 2**31, minimum(3, W)),
        (2, 1, 0),
        (5, 7, minimum(7, W) - minimum(5, W)),
    ):
        assert b.add(Slice, x, (3,), (start,), (end,)).type.shape == (N, 3, H, size)


def test_conditions_on_sizes(b: Builder, x: Operand) -> None:
    """Exporters' pattern for the shape of Expand: -1 stands for 1."""
    shape = b.add(ShapeOf, x)
    asked = b.add(Concat, [b.add(Slice, shape, (0,), (0,), (2,)), b.constant(np.array([-1]))], 0)
    chosen = b.add(Where, b.add(Equal, asked, np.full(3, -1)), np.ones(3, np.int64), asked)
    assert chosen.type.shape_value == (N, 3, 1)
    assert b.add(NotEqual, asked, np.full(3, -1)).type.shape_value == (True, True, False)
    assert b.add(Equal, asked, np.full(3, 3)).type.shape_value is None


def test_arithmetic_of_sizes(b: Builder, x: Operand) -> None:
    shape = b.add(ShapeOf, x)
    half = b.add(Div, shape, np.array([2]))
    assert half.type.shape_value == (N // 2, 1, H // 2, W // 2)
    assert b.add(Mod, shape, np.array([2])).type.shape_value == (
        N - 2 * (N // 2),
        1,
        H - 2 * (H // 2),
        W - 2 * (W // 2),
    )
    assert b.add(Max, shape, np.array([1])).type.shape_value == (
        N + 1 - minimum(1, N),
        3,
        H + 1 - minimum(1, H),
        W + 1 - minimum(1, W),
    )
    assert b.add(Min, shape, np.array([8])).type.shape_value == (
        minimum(8, N),
        3,
        minimum(8, H),
        minimum(8, W),
    )
    for divisor in (np.array([0]), np.array([-2])):
        assert b.add(Div, shape, divisor).type.shape_value is None
    assert b.add(Div, b.add(Sub, shape, np.array([9])), np.array([2])).type.shape_value is None
    pads = b.add(Concat, [half, b.constant(np.zeros(4, np.int64))], 0)
    assert b.add(Pad, x, pads).type.shape == (N + N // 2 + 1, 3 + H // 2 + W // 2, H, W)
    width = b.add(Gather, shape, np.array(3))
    assert b.add(Range, np.int64(1), width, np.int64(2)).type.shape == (
        (W - minimum(1, W) + 1) // 2,
    )


EXPRESSIONS: list[tuple[Any, int]] = [
    (lambda n, h, w: n, 2),
    (lambda n, h, w: 7, 7),
    (lambda n, h, w: n * h * w, 40),
    (lambda n, h, w: (h + 1) // 2, 2),
    (lambda n, h, w: 2 * h * ((w - 1) // 2) - 3 * n, 10),
    (lambda n, h, w: (h * w) // (n + 1) + 1, 7),
    (lambda n, h, w: 0 * n, 0),
    (lambda n, h, w: minimum(h, n * w, 9) * 2, 8),
]


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS)
def test_an_expression_is_computed(b: Builder, x: Operand, expression: Any, value: int) -> None:
    sizes = Sizes(b, x)
    n, channels, h, w = sizes.shape
    assert channels == 3
    b.output("y", sizes.computed(expression(n, h, w)))
    (result,) = ReferenceProgram(b.build()).run([np.zeros((2, 3, 4, 5), np.float32)])
    np.testing.assert_array_equal(result, np.array([value]), strict=True)


def test_a_known_shape_is_not_computed(b: Builder, x: Operand) -> None:
    sizes = Sizes(b, x)
    assert sizes((1, 2, 3)) == (1, 2, 3)
    assert b.operations == []
    computed = sizes((sizes.shape[1], sizes.shape[3]))
    assert isinstance(computed, Operand)
    known: tuple[Dim, ...] | None = computed.type.shape_value
    assert known == (3, W)


OPERATORS = """
    RESHAPE TRANSPOSE SQUEEZE UNSQUEEZE FLATTEN EXPAND SHAPE RANK SLICE STRIDED_SLICE CROP CONCAT
    STACK SPLIT UNSTACK GATHER MESHGRID FILL FILL_LIKE RANGE ONE_HOT PAD TILE ROLL REVERSE_SEQUENCE
    TRILU CHANNEL_SHUFFLE DEPTH_TO_SPACE SPACE_TO_DEPTH BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND CAST
    BIT_CAST QUANTIZE DEQUANTIZE GATHER_ND GATHER_ELEMENTS SCATTER_ND SCATTER_ELEMENTS
    SPARSE_TO_DENSE NON_ZERO UNIQUE ASSERT
"""


@pytest.mark.parametrize("name", [n for n in CASES if n.rpartition("-")[0] in OPERATORS.split()])
def test_decompositions_work_with_no_size_known(name: str) -> None:
    """The core decomposition computes the same as the operator's reference."""
    operator, arguments = CASES[name]
    arrays = list(arrays_for(arguments).values())
    model = model_of(operator, arguments, named=True)
    device = CoreDevice()
    placed = place(model, {device.name: lambda model: device.query(model, Options())}).model
    expected = ReferenceProgram(model).run(arrays)
    for actual, wanted in zip(ReferenceProgram(placed).run(arrays), expected, strict=True):
        assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
        if ElementType.of(wanted.dtype) in NARROW_TYPES:
            actual, wanted = actual.astype(np.float32), wanted.astype(np.float32)
        np.testing.assert_array_equal(actual, wanted)


def test_a_shape_is_a_list_even_of_what_has_any_number_of_axes(b: Builder) -> None:
    shape = b.add(ShapeOf, b.input("x", TensorType(ElementType.FLOAT32, None)))
    assert shape.type.shape is not None
    assert len(shape.type.shape) == 1
    assert b.add(ReduceProd, shape, (0,), keepdim=False).type.shape == ()
