"""Random models of integers for property tests, with inputs at the ends of what few bits hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType, symbol
from crosschip.ops import Operator
from crosschip.ops.standard import (
    arithmetic,
    comparison,
    creation,
    indexing,
    joining,
    logical,
    padding,
    rearranging,
    reduction,
    searching,
    slicing,
    unary,
)
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.matrix import MatMul

ROWS, COLUMNS = 2, 3
INT64, INT32 = ElementType.INT64, ElementType.INT32
_ENDS = [0, 1, 2, 3, 5, 7, 8, 24, 31, 32, 33, 63]


def number(draw: st.DrawFn, most: int) -> int:
    """A number near a power of 2, or a small one."""
    near = draw(st.sampled_from([-1, 0, 1]))
    sign = draw(st.sampled_from([1, -1]))
    bits = draw(st.sampled_from([bits for bits in (*_ENDS, 15, 16) if bits <= most]))
    return int(np.clip(sign * (2**bits) + near, -(2**63), 2**63 - 1))


@dataclass
class Integers:
    """A model of integers in the making; every tensor of it is [rows, 3].

    Attributes:
        draw: draws.
        bits: how many of them inputs take.
        open: whether the number of rows is open.
        b: where the model is built.
        values: the tensors of int64 so far.
        truths: those of booleans.
        inputs: the elements of the model's inputs.
        model: the model, once it has grown.
    """

    draw: st.DrawFn
    bits: int = 63
    open: bool = False
    b: Builder = field(default_factory=lambda: Builder("integers"))
    values: list[Operand] = field(default_factory=list)
    truths: list[Operand] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    model: Model = field(init=False)

    def grow(self) -> None:
        """Draw all of it."""
        rows = symbol("rows") if self.open else ROWS
        for index in range(self.draw(st.integers(1, 2))):
            type_ = self.draw(st.sampled_from([INT64, INT64, INT32]))
            x = self.b.input(f"x{index}", TensorType(type_, (rows, COLUMNS)))
            drawn = [number(self.draw, self.bits) for _ in range(ROWS * COLUMNS)]
            held = np.iinfo(type_.dtype)
            array = np.array([min(max(d, held.min), held.max) for d in drawn], type_.dtype)
            self.inputs[f"x{index}"] = array.reshape(ROWS, COLUMNS)
            self.values.append(x if type_ is INT64 else self.b.add(Cast, x, INT64))
            if type_ is INT32 and self.draw(st.booleans()):
                self.values.append(self.b.add(Cast, self.b.add(arithmetic.Add, x, x), INT64))
        for _ in range(self.draw(st.integers(1, 6))):
            self.draw(st.sampled_from(STEPS))(self)
        for index, value in enumerate([*self.values[-2:], *self.truths[-1:]]):
            self.b.output(f"y{index}", value)
        self.model = self.b.build()

    def value(self) -> Operand:
        """One of the tensors of int64 so far, or a constant."""
        choice = self.draw(st.integers(-1, len(self.values) - 1))
        return self.values[choice] if choice >= 0 else self.constant()

    def constant(self) -> Operand:
        """A constant of one number."""
        return self.b.constant(np.array([[number(self.draw, min(self.bits, 33))]], np.int64))

    def truth(self) -> Operand:
        """A tensor of booleans."""
        if not self.truths:
            compare(self)
        return self.draw(st.sampled_from(self.truths))

    def __repr__(self) -> str:
        return f"{self.model}\n{self.inputs}"


def two(operator: type[Operator], **more: Any) -> Callable[[Integers], None]:
    """The step that adds an operator on two tensors."""

    def step(g: Integers) -> None:
        g.values.append(g.b.add(operator, g.values[-1], g.value(), **more))

    return step


def one(operator: type[Operator], *arguments: object) -> Callable[[Integers], None]:
    """The step that adds an operator on one tensor."""

    def step(g: Integers) -> None:
        g.values.append(g.b.add(operator, g.values[-1], *arguments))

    return step


def compare(g: Integers) -> None:
    operators = (comparison.Equal, comparison.Less, comparison.LessEqual, comparison.Greater)
    operator = g.draw(st.sampled_from([*operators, comparison.NotEqual]))
    g.truths.append(g.b.add(operator, g.values[-1], g.value()))


def choose(g: Integers) -> None:
    g.values.append(g.b.add(logical.Where, g.truth(), g.values[-1], g.value()))


def count(g: Integers) -> None:
    g.values.append(g.b.add(Cast, g.truth(), INT64))


def clip(g: Integers) -> None:
    low, high = sorted(number(g.draw, 40) for _ in range(2))
    g.values.append(g.b.add(arithmetic.Clip, g.values[-1], low, high))


def reduce(g: Integers) -> None:
    operators = (reduction.ReduceSum, reduction.ReduceMax, reduction.ReduceMin)
    operator = g.draw(st.sampled_from([*operators, reduction.ReduceProd]))
    reduced = g.b.add(operator, g.values[-1], (g.draw(st.sampled_from([0, 1])),))
    g.values.append(g.b.add(arithmetic.Add, g.values[0], reduced))


def run_up(g: Integers) -> None:
    axis, flags = g.draw(st.sampled_from([0, 1])), g.draw(st.booleans())
    g.values.append(g.b.add(reduction.CumSum, g.values[-1], axis, flags, not flags))


def place(g: Integers) -> None:
    found = g.b.add(searching.ArgMax, g.values[-1], g.draw(st.sampled_from([0, 1])), True)
    g.values.append(g.b.add(arithmetic.Add, g.values[0], found))


def best(g: Integers) -> None:
    values, places = g.b.add_all(searching.TopK, g.values[-1], COLUMNS, 1)
    g.values += [values, places]


def join(g: Integers) -> None:
    joined = g.b.add(joining.Concat, [g.values[-1], g.values[0]], 1)
    g.values.append(g.b.add(slicing.Slice, joined, (1,), (2,), (2 + COLUMNS,)))


def look_up(g: Integers) -> None:
    places = g.b.add(arithmetic.Mod, g.values[-1], g.b.constant(np.array([[4]])))
    table = g.b.constant(np.array([number(g.draw, 40) for _ in range(4)]))
    g.values.append(g.b.add(indexing.Gather, table, places, 0))


def enumerate_(g: Integers) -> None:
    sizes = g.b.add(creation.ShapeOf, g.values[-1])
    last = g.b.add(indexing.Gather, sizes, g.b.constant(np.array(1)), 0)
    step = g.b.constant(np.array(1))
    line = g.b.add(creation.Range, g.b.constant(np.array(0)), last, step)
    g.values.append(g.b.add(arithmetic.Add, g.values[0], line))


def through_floats(g: Integers) -> None:
    real = g.b.add(Cast, g.values[-1], ElementType.FLOAT32)
    factor = np.array(g.draw(st.sampled_from([0.5, 3, -1e4])), np.float32)
    scaled = g.b.add(arithmetic.Mul, real, g.b.constant(factor))
    if g.draw(st.booleans()):
        scaled = g.b.add(unary.Floor, scaled)
    if g.draw(st.booleans()):
        scaled = g.b.add(arithmetic.Clip, scaled, -1e6, 1e6)
    g.values.append(g.b.add(Cast, scaled, INT64))


def pad(g: Integers) -> None:
    value = g.b.constant(np.array(number(g.draw, 33)))
    padded = g.b.add(padding.Pad, g.values[-1], (0, 0, 0, 1), padding.PadMode.CONSTANT, value)
    g.values.append(g.b.add(slicing.Slice, padded, (1,), (1,), (1 + COLUMNS,)))


def multiply(g: Integers) -> None:
    square = g.b.constant(np.array([[1, 0, -1], [2, 1, 0], [0, 3, 1]]))
    g.values.append(g.b.add(MatMul, g.values[-1], square))


STEPS: Sequence[Callable[[Integers], None]] = [
    *map(two, (arithmetic.Add, arithmetic.Sub, arithmetic.Mul, arithmetic.Min, arithmetic.Max)),
    *map(two, (arithmetic.Div, arithmetic.Mod, arithmetic.FloorDiv, arithmetic.SquaredDifference)),
    *map(two, (logical.BitwiseAnd, logical.BitwiseOr, logical.BitwiseXor)),
    two(arithmetic.Mod, fmod=True),
    *map(one, (unary.Abs, unary.Neg, unary.Sign, logical.BitwiseNot)),
    one(rearranging.Roll, (1,), (1,)),
    *(compare, choose, count, clip, reduce, run_up, place, best, join, look_up, enumerate_),
    *(through_floats, pad, multiply),
]


@st.composite
def integers(draw: st.DrawFn, *, bits: int = 63, open: bool = False) -> Integers:
    """Models of int64, in part of int32 and float32, with inputs."""
    made = Integers(draw, bits, open)
    made.grow()
    return made
