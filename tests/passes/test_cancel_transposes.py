"""Removal and merging of transpositions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import dedented, float32, model_of, outputs_of

from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Model,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.ops.standard.activation import HardSwish, Relu
from crosschip.ops.standard.arithmetic import Add, Clip, Mul
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.normalization import BatchNormalization
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.passes import CancelTransposes, RemoveUnused, run, simplify, verified

N = symbol("N")
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
cancel = CancelTransposes()


def types_of(model: Model) -> list[str]:
    return [operation.type for operation in model.operations]


def same(model: Model, rewritten: Model, seed: int = 0) -> None:
    """Compare two models on random inputs, bit for bit."""
    random = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for name, operand in model.inputs.items():
        shape = tuple(size if isinstance(size, int) else 2 for size in operand.type.shape or ())
        inputs[name] = random.normal(size=shape).astype(operand.type.element_type.dtype)
    wanted, found = outputs_of(model, inputs), outputs_of(rewritten, inputs)
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_transpositions_that_undo_each_other_vanish() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        there = b.add(Transpose, x, (0, 2, 3, 1))
        return b.add(Relu, b.add(Transpose, there, (0, 3, 1, 2)))

    model = model_of(make, float32(N, 3, 4, 5))
    assert str(model) == dedented("""
        model model
          input x0: float32[N, 3, 4, 5]
          %transpose_0 = TRANSPOSE(input=%x0, perm=[0, 2, 3, 1]): float32[N, 4, 5, 3]
          %transpose_1 = TRANSPOSE(input=%transpose_0, perm=[0, 3, 1, 2]): float32[N, 3, 4, 5]
          %relu_0 = RELU(input=%transpose_1): float32[N, 3, 4, 5]
          output y0 = %relu_0
    """)
    assert str(RemoveUnused()(cancel(model))) == dedented("""
        model model
          input x0: float32[N, 3, 4, 5]
          %relu_0 = RELU(input=%x0): float32[N, 3, 4, 5]
          output y0 = %relu_0
    """)


def test_transpositions_that_do_not_become_one() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Transpose, b.add(Transpose, x, (-1, 0, 1)), (0, -1, 1))

    assert str(RemoveUnused()(cancel(model_of(make, float32(2, 3, 4))))) == dedented("""
        model model
          input x0: float32[2, 3, 4]
          %transpose_1 = TRANSPOSE(input=%x0, perm=[2, 1, 0]): float32[4, 3, 2]
          output y0 = %transpose_1
    """)


def test_a_transposition_that_somebody_else_reads_stays() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        there = b.add(Transpose, x, (1, 0))
        return b.add(Relu, there), b.add(Transpose, there, (1, 0))

    assert str(RemoveUnused()(cancel(model_of(make, float32(2, 3))))) == dedented("""
        model model
          input x0: float32[2, 3]
          %transpose_0 = TRANSPOSE(input=%x0, perm=[1, 0]): float32[3, 2]
          %relu_0 = RELU(input=%transpose_0): float32[3, 2]
          output y0 = %relu_0
          output y1 = %x0
    """)


def test_a_long_row_of_transpositions_becomes_one() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(3000):
            x = b.add(Transpose, x, (1, 2, 0))
        return b.add(Transpose, x, (0, 2, 1))

    assert str(RemoveUnused()(cancel(model_of(make, float32(2, 3, 4))))) == dedented("""
        model model
          input x0: float32[2, 3, 4]
          %transpose_3000 = TRANSPOSE(input=%x0, perm=[0, 2, 1]): float32[2, 4, 3]
          output y0 = %transpose_3000
    """)


def test_a_transposition_of_a_computed_order_stays() -> None:
    order = TensorType(ElementType.INT32, (2,))

    def make(b: Builder, x: Operand, perm: Operand) -> tuple[Operand, ...]:
        first = b.add(Transpose, x, perm)
        return b.add(Transpose, first, perm), b.add(Transpose, first, (1, 0))

    model = model_of(make, float32(2, 3), order)
    assert str(cancel(model)) == str(model)


def filtered(b: Builder, x: Operand, seed: int) -> Operand:
    """Return a convolution on channels-last images, as NNRt programs have it."""
    channels = x.type.shape[-1] if x.type.shape else 0
    assert isinstance(channels, int)
    filters = np.random.default_rng(seed).normal(size=(4, channels, 3, 3)).astype(np.float32)
    made = b.add(Conv2D, b.add(Transpose, x, FIRST), b.constant(filters), pads=(1, 1, 1, 1))
    return b.add(Transpose, made, LAST)


def test_operations_between_convolutions_are_moved() -> None:
    """A channels-last network with a residual connection and each kind of constant."""

    def make(b: Builder, x: Operand) -> Operand:
        first = b.add(HardSwish, filtered(b, x, 1))
        second = b.add(Clip, filtered(b, first, 2), -1.0, 1.0)
        total = b.add(Add, second, first)
        scale, one = np.arange(4, dtype=np.float32), np.float32(0.5)
        total = b.add(Mul, b.add(Mul, total, b.constant(scale)), b.constant(one))
        joined = b.add(Concat, [total, b.add(Relu, second)], -1)
        return filtered(b, joined, 3)

    model = model_of(make, float32(N, 6, 5, 3))
    with verified():
        rewritten = cancel(model)
    same(model, rewritten)
    found = types_of(rewritten)
    assert (found[0], found[-1], found.count("TRANSPOSE")) == ("TRANSPOSE", "TRANSPOSE", 2)


def test_what_a_normalization_follows_is_folded_all_the_same() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        made = b.add(Transpose, filtered(b, x, 1), FIRST)
        ones = [b.constant(np.full(4, n + 1, np.float32)) for n in range(4)]
        made = b.add(BatchNormalization, made, *ones)
        return filtered(b, b.add(Transpose, made, LAST), 2)

    model = model_of(make, float32(1, 6, 5, 3))
    assert types_of(simplify(model)) == ["TRANSPOSE", "CONV_2D", "CONV_2D", "TRANSPOSE"]


def test_what_gains_nothing_stays() -> None:
    """The result is a model output, or its readers need it as it is."""

    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        last = b.add(Transpose, x, LAST)
        return b.add(Relu, last), b.add(Reshape, b.add(Clip, last), (0, -1))

    model = model_of(make, float32(2, 3, 4, 5))
    assert str(cancel(model)) == str(model)


def test_small_operands_are_transposed_instead_of_large_ones() -> None:
    def make(b: Builder, x: Operand, y: Operand) -> Operand:
        scaled = b.add(Mul, b.add(Transpose, x, LAST), y)
        return b.add(Transpose, scaled, FIRST)

    model = model_of(make, float32(2, 3, 4, 5), float32(1, 1, 1, 3))
    rewritten = RemoveUnused()(cancel(model))
    assert str(rewritten) == dedented("""
        model model
          input x0: float32[2, 3, 4, 5]
          input x1: float32[1, 1, 1, 3]
          %x1.to_0_3_1_2 = TRANSPOSE(input=%x1, perm=[0, 3, 1, 2]): float32[1, 3, 1, 1]
          %mul_0.moved = MUL(input0=%x0, input1=%x1.to_0_3_1_2): float32[2, 3, 4, 5]
          output y0 = %mul_0.moved
    """)
    same(model, rewritten)


def test_a_scale_for_each_channel_is_not_moved() -> None:
    kept = Quantization((0.5, 0.25, 0.125), (0, 0, 0), axis=3)

    def make(b: Builder, x: Operand) -> Operand:
        integers = b.add(Quantize, b.add(Transpose, x, LAST), 3, kept.scale, (0.0,) * 3)
        reals = b.add(Dequantize, integers)
        return b.add(Transpose, b.add(Relu, reals), FIRST)

    model = model_of(make, float32(2, 3, 4, 5))
    rewritten = RemoveUnused()(cancel(model))
    same(model, rewritten)
    assert types_of(rewritten)[:2] == ["TRANSPOSE", "QUANTIZE"]


def test_one_scale_is_moved() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        integers = b.add(Quantize, b.add(Transpose, x, LAST), scale=(0.5,))
        (doubled,) = b.add_all(Add, integers, integers, quantization=(Quantization((0.25,), (3,)),))
        return b.add(Dequantize, b.add(Transpose, doubled, FIRST))

    model = model_of(make, float32(2, 3, 4, 5))
    with verified():
        rewritten = RemoveUnused()(cancel(model))
    same(model, rewritten)
    assert types_of(rewritten) == ["QUANTIZE", "ADD", "DEQUANTIZE"]


def test_more_transposed_elements_break_the_promise() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Transpose, b.add(Relu, x), (1, 0))

    worse = model_of(lambda b, x: b.add(Relu, make(b, x)), float32(2, 3))
    better = model_of(lambda b, x: b.add(Reshape, x, (3, 2)), float32(2, 3))
    cancel.ensures(worse, worse)
    with pytest.raises(ModelError, match="6 elements are transposed, but 0 were"):
        cancel.ensures(better, worse)


ORDERS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)]


@st.composite
def nets(draw: st.DrawFn) -> Model:
    """Draw networks of transpositions, movable and other operations, with several outputs."""
    b = Builder("net")
    sizes = {2: 2, 3: 3, 4: 4}
    shape = tuple(draw(st.permutations(list(sizes.values()))))
    known = [b.input("x0", float32(*shape))]
    if draw(st.booleans()):
        known.append(b.input("x1", float32(N, *shape[1:])))
    if draw(st.booleans()):
        known.append(b.input("x2", float32(1, shape[1], 1)))
    for _ in range(draw(st.integers(3, 14))):
        x = draw(st.sampled_from(known[-2:]))
        known.append(grown(draw, b, known, x))
    count = draw(st.integers(1, 3))
    for place in range(count):
        b.output(f"y{place}", known[-1 - place] if place < len(known) else known[-1])
    return b.build()


def grown(draw: st.DrawFn, b: Builder, known: list[Operand], x: Operand) -> Operand:
    """Add an operation on the operands so far, of any shape."""
    shape = x.type.shape or ()
    like = [o for o in known if (o.type.shape or ())[1:] == shape[1:] and len(shape) == 3]
    kind = draw(st.sampled_from(["turn", "turn", "relu", "add", "scale", "join", "round", "pick"]))
    if kind == "turn":
        return b.add(Transpose, x, draw(st.sampled_from(ORDERS)))
    if kind == "add":
        other = draw(st.sampled_from(like))
        same_rows = (other.type.shape or ())[0] == shape[0]
        return b.add(Add, x, other) if same_rows else b.add(Relu, x)
    if kind == "scale":
        size = shape[-1] if draw(st.booleans()) else 1
        along = (size,) if isinstance(size, int) else ()
        factors = np.linspace(1, 2, *along or (1,), dtype=np.float32).reshape(along)
        return b.add(Mul, b.constant(factors), x)
    if kind == "join":
        return b.add(Concat, [x, x], draw(st.integers(-3, 2)))
    if kind == "round":
        return b.add(Dequantize, b.add(Quantize, x, scale=(0.125,)))
    if kind == "pick":
        return b.add(Where, b.constant(np.bool_(draw(st.booleans()))), x, b.add(Relu, x))
    return b.add(Relu, x)


@given(nets())
def test_any_net_stays_what_it_is(model: Model) -> None:
    with verified():
        rewritten = run(model, [cancel, RemoveUnused()])
    same(model, rewritten)
    assert cancel(rewritten) is rewritten


@pytest.mark.parametrize("name", ["z.to_0_2_3_1", "z.to_0_3_1_2"])
def test_new_transposes_have_unused_names(name: str) -> None:
    """An earlier run of the pass may have left a transpose with the name that it would choose."""
    builder = Builder("names")
    x, z = builder.input("x", float32(1, 3, 4, 2)), builder.input("z", float32(1, 2, 3, 4))
    other = builder.add(Relu, z, name=name)
    total = builder.add(Add, builder.add(Transpose, x, FIRST), z)
    builder.output("a", builder.add(Transpose, total, LAST))
    builder.output("b", other)
    model = builder.build()
    rewritten = run(model, (cancel,))
    rewritten.verify()
    same(model, rewritten)
