"""Recognition of composite operators in exporters' spellings, and of near misses."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.modelling import close, float32, model_of, outputs_of

from crosschip.ir import Builder, Model, Operand, TensorType, symbol
from crosschip.ir.types import ElementType
from crosschip.ops.standard.activation import Relu, Sigmoid, Softmax, Tanh
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Pow, Sub
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.unary import Erf, Reciprocal, Rsqrt, Sqrt, Square
from crosschip.passes import (
    COMPOSITES,
    JOINED_HEADS,
    Recognize,
    RemoveUnused,
    run,
    verified,
)

N, WIDTH = symbol("N"), 6
Make = Callable[[Builder, Operand], Operand]
PASSES = (Recognize(COMPOSITES), RemoveUnused())


def recognized(model: Model) -> Model:
    with verified():
        return run(model, PASSES)


def types(make: Make) -> list[str]:
    """Return the operators in a model of [N, 4, 6] after recognition."""
    return [o.type for o in recognized(model_of(make, float32(N, 4, WIDTH))).operations]


# Activations


def raised(b: Builder, x: Operand, root: float = sqrt(2)) -> Operand:
    return b.add(Add, b.add(Erf, b.add(Div, x, root)), 1.0)


def cube(b: Builder, x: Operand) -> Operand:
    return b.add(Mul, b.add(Pow, x, 3.0), 0.044715)


def curve(b: Builder, total: Operand, factor: float = sqrt(2 / pi)) -> Operand:
    return b.add(Add, b.add(Tanh, b.add(Mul, total, factor)), 1.0)


GELUS: dict[str, Make] = {
    "torch's": lambda b, x: b.add(Mul, b.add(Mul, x, raised(b, x)), 0.5),
    "half first": lambda b, x: b.add(Mul, b.add(Mul, x, 0.5), raised(b, x)),
    "half of the sum": lambda b, x: b.add(Mul, x, b.add(Mul, raised(b, x), 0.5)),
    "divided by two": lambda b, x: b.add(Div, b.add(Mul, raised(b, x), x), 2.0),
    "multiplied by the inverse root": lambda b, x: b.add(
        Mul, b.add(Mul, x, b.add(Add, b.constant(np.ones((), np.float32)), _erf(b, x))), 0.5
    ),
    "by the hyperbolic tangent": lambda b, x: b.add(
        Mul, b.add(Mul, x, 0.5), curve(b, b.add(Add, x, cube(b, x)))
    ),
    "of a product of three": lambda b, x: b.add(
        Mul,
        b.add(
            Mul, curve(b, b.add(Add, b.add(Mul, b.add(Mul, b.add(Mul, x, x), x), 0.044715), x)), x
        ),
        0.5,
    ),
    "with the square inside": lambda b, x: b.add(Mul, b.add(Mul, x, 0.5), _by_square(b, x)),
}


def _erf(b: Builder, x: Operand) -> Operand:
    return b.add(Erf, b.add(Mul, x, sqrt(1 / 2)))


def _cubed(b: Builder, x: Operand) -> Operand:
    return b.add(Mul, b.add(Mul, x, x), x)


def _by_square(b: Builder, x: Operand) -> Operand:
    inner = b.add(Add, b.add(Mul, b.add(Mul, x, x), 0.044715), 1.0)
    return curve(b, b.add(Mul, x, inner))


NO_GELUS: dict[str, Make] = {
    "another root": lambda b, x: b.add(Mul, b.add(Mul, x, raised(b, x, 1.5)), 0.5),
    "no half": lambda b, x: b.add(Mul, x, raised(b, x)),
    "a third": lambda b, x: b.add(Mul, b.add(Mul, x, raised(b, x)), 1 / 3),
    "a half for each": lambda b, x: b.add(
        Mul, b.add(Mul, x, raised(b, x)), b.constant(np.full(WIDTH, 0.5, np.float32))
    ),
    "of something else": lambda b, x: b.add(Mul, b.add(Mul, x, raised(b, b.add(Relu, x))), 0.5),
    "twice": lambda b, x: b.add(Mul, b.add(Mul, b.add(Mul, x, x), raised(b, x)), 0.5),
    "another factor": lambda b, x: b.add(
        Mul, b.add(Mul, x, 0.5), curve(b, b.add(Add, x, cube(b, x)), 0.8)
    ),
    "a square": lambda b, x: b.add(
        Mul, b.add(Mul, x, 0.5), curve(b, b.add(Add, x, b.add(Mul, b.add(Mul, x, x), 0.044715)))
    ),
    "another sum": lambda b, x: b.add(
        Mul, b.add(Mul, x, 0.5), b.add(Add, b.add(Erf, b.add(Div, x, sqrt(2))), 2.0)
    ),
}


@pytest.mark.parametrize("kind", GELUS)
def test_gelu(kind: str) -> None:
    assert types(lambda b, x: GELUS[kind](b, b.add(Mul, x, 3.0))) == ["MUL", "GELU"]


@pytest.mark.parametrize("kind", NO_GELUS)
def test_what_is_no_gelu(kind: str) -> None:
    assert "GELU" not in types(NO_GELUS[kind])


def test_swish() -> None:
    assert types(lambda b, x: b.add(Mul, b.add(Sigmoid, x), x)) == ["SWISH"]
    assert types(lambda b, x: b.add(Mul, x, b.add(Sigmoid, b.add(Mul, x, 1.7)))) == [
        "MUL",
        "SIGMOID",
        "MUL",
    ]


# Normalizations


def vector(b: Builder, *shape: int, seed: int = 0) -> Operand:
    return b.constant(np.random.default_rng(seed).uniform(0.5, 1, shape).astype(np.float32))


def layer(
    b: Builder,
    x: Operand,
    axes: tuple[int, ...] = (-1,),
    power: Callable[[Builder, Operand], Operand] = lambda b, d: b.add(Pow, d, 2.0),
    divide: Callable[[Builder, Operand, Operand], Operand] = lambda b, d, v: b.add(
        Div, d, b.add(Sqrt, v)
    ),
    scale: tuple[int, ...] = (WIDTH,),
    bias: bool = True,
) -> Operand:
    d = b.add(Sub, x, b.add(ReduceMean, x, axes))
    v = b.add(Add, b.add(ReduceMean, power(b, d), axes), 1e-5)
    scaled = b.add(Mul, divide(b, d, v), vector(b, *scale))
    return b.add(Add, scaled, vector(b, *scale, seed=1)) if bias else scaled


def again(b: Builder, x: Operand, axes: tuple[int, ...] = (-1,)) -> Operand:
    """Return a normalization that subtracts the mean twice, as older exporters do."""
    mean = b.add(ReduceMean, x, axes)
    v = b.add(ReduceMean, b.add(Pow, b.add(Sub, x, mean), 2.0), axes)
    normal = b.add(Div, b.add(Sub, x, mean), b.add(Sqrt, b.add(Add, v, 1e-5)))
    return b.add(Add, b.add(Mul, vector(b, WIDTH), normal), vector(b, WIDTH, seed=1))


LAYERS: dict[str, Make] = {
    "by powers": lambda b, x: layer(b, x),
    "by a product": lambda b, x: layer(b, x, power=lambda b, d: b.add(Mul, d, d)),
    "by a square": lambda b, x: layer(b, x, power=lambda b, d: b.add(Square, d)),
    "by the inverse root": lambda b, x: layer(
        b, x, divide=lambda b, d, v: b.add(Mul, b.add(Rsqrt, v), d)
    ),
    "by the inverse of the root": lambda b, x: layer(
        b, x, divide=lambda b, d, v: b.add(Mul, d, b.add(Reciprocal, b.add(Sqrt, v)))
    ),
    "by one through the root": lambda b, x: layer(
        b, x, divide=lambda b, d, v: b.add(Mul, d, b.add(Div, _one(b), b.add(Pow, v, 0.5)))
    ),
    "by a negative power": lambda b, x: layer(
        b, x, divide=lambda b, d, v: b.add(Mul, d, b.add(Pow, v, -0.5))
    ),
    "over two axes": lambda b, x: layer(b, x, (1, 2), scale=(4, WIDTH)),
    "the mean subtracted twice": again,
    "without a bias": lambda b, x: layer(b, x, bias=False),
}


def _one(b: Builder) -> Operand:
    return b.constant(np.ones((), np.float32))


def root(b: Builder, x: Operand, axes: tuple[int, ...] = (-1,), keep: bool = True) -> Operand:
    """Return an RMS normalization."""
    mean = b.add(ReduceMean, b.add(Pow, x, 2.0), axes, keep)
    return b.add(Mul, b.add(Mul, x, b.add(Rsqrt, b.add(Add, mean, 1e-6))), vector(b, WIDTH))


NO_LAYERS: dict[str, Make] = {
    "over an axis before": lambda b, x: layer(b, x, (1,)),
    "a scale of fewer": lambda b, x: layer(b, x, scale=(1,)),
    "a scale of more": lambda b, x: layer(b, x, scale=(4, WIDTH)),
    "a third power": lambda b, x: layer(b, x, power=lambda b, d: b.add(Pow, d, 3.0)),
    "no root": lambda b, x: layer(b, x, divide=lambda b, d, v: b.add(Div, d, v)),
    "the root of the numbers": lambda b, x: layer(
        b, x, divide=lambda b, d, v: b.add(Div, x, b.add(Sqrt, v))
    ),
    "the wrong way around": lambda b, x: layer(
        b, x, divide=lambda b, d, v: b.add(Div, b.add(Sqrt, v), d)
    ),
    "an RMS over an axis before": lambda b, x: root(b, x, (1,)),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_layer_normalization(kind: str) -> None:
    assert types(LAYERS[kind]) == ["LAYER_NORMALIZATION"]


def test_rms_normalization() -> None:
    assert types(root) == ["RMS_NORMALIZATION"]
    assert types(lambda b, x: b.add(Add, root(b, x), vector(b, WIDTH))) == [
        "RMS_NORMALIZATION",
        "ADD",
    ]


@pytest.mark.parametrize("kind", NO_LAYERS)
def test_what_is_no_normalization(kind: str) -> None:
    assert not {"LAYER_NORMALIZATION", "RMS_NORMALIZATION"} & set(types(NO_LAYERS[kind]))


# What all have in common


EVERY = {**GELUS, **LAYERS, "an RMS": root}


@pytest.mark.parametrize("kind", EVERY)
@settings(max_examples=4)
@given(st.integers(1, 3), st.integers(0, 99))
def test_the_results_are_the_same(kind: str, entries: int, seed: int) -> None:
    model = model_of(EVERY[kind], float32(N, 4, WIDTH))
    x = np.random.default_rng(seed).normal(size=(entries, 4, WIDTH)).astype(np.float32)
    after = recognized(model)
    for name, array in outputs_of(model, {"x0": x}).items():
        close(outputs_of(after, {"x0": x})[name], array)


@pytest.mark.parametrize("kind", EVERY)
def test_what_is_between_may_be_an_output(kind: str) -> None:
    x = {"x0": np.random.default_rng(0).normal(size=(2, 4, WIDTH)).astype(np.float32)}
    count = len(model_of(EVERY[kind], float32(N, 4, WIDTH)).operations)
    for part in range(count):

        def make(b: Builder, x: Operand, part: int = part) -> tuple[Operand, ...]:
            y = EVERY[kind](b, x)
            return y, b.operations[part].outputs[0]

        model = model_of(make, float32(N, 4, WIDTH))
        after = recognized(model)
        for name, array in outputs_of(model, x).items():
            close(outputs_of(after, x)[name], array)


@pytest.mark.parametrize("part", [3, 5])
def test_parts_that_something_else_reads_stay(part: int) -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        y = layer(b, x)
        return y, b.operations[part].outputs[0]

    model = model_of(make, float32(N, 4, WIDTH))
    assert recognized(model) is model


def test_what_is_centred_for_others_too_is_normalized_from_there() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        y = layer(b, x)
        return y, b.operations[1].outputs[0]

    model = model_of(make, float32(N, 4, WIDTH))
    after = recognized(model)
    assert [o.type for o in after.operations] == ["REDUCE_MEAN", "SUB", "RMS_NORMALIZATION", "ADD"]
    x = {"x0": np.random.default_rng(0).normal(size=(2, 4, WIDTH)).astype(np.float32)}
    for name, array in outputs_of(model, x).items():
        close(outputs_of(after, x)[name], array)


def test_what_two_read_is_recognized_once() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        y = layer(b, x)
        return b.add(Relu, y), b.add(Tanh, y)

    after = recognized(model_of(make, float32(N, 4, WIDTH)))
    assert [o.type for o in after.operations] == ["LAYER_NORMALIZATION", "RELU", "TANH"]


def test_float16_stays_in_parts() -> None:
    half = TensorType(ElementType.FLOAT16, (N, 4, WIDTH))
    model = model_of(lambda b, x: b.add(Mul, x, b.add(Sigmoid, x)), half)
    assert recognized(model) is model


# Attention

S, T, HEADS, SIZE = symbol("S"), symbol("T"), 2, 4


def heads(b: Builder, x: Operand, perm: tuple[int, ...] = (0, 2, 1, 3)) -> Operand:
    return b.add(Transpose, b.add(Reshape, x, (0, 0, HEADS, SIZE)), perm)


def attended(
    b: Builder,
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None = None,
    scale: Make = lambda b, s: b.add(Div, s, 2.0),
    axis: int = -1,
) -> Operand:
    """Return attention on split heads, with the keys transposed."""
    scores = scale(b, b.add(MatMul, q, k))
    if mask is not None:
        scores = b.add(Add, scores, mask)
    return b.add(MatMul, b.add(Softmax, scores, axis), v)


def back(b: Builder, x: Operand) -> Operand:
    return b.add(Reshape, b.add(Transpose, x, (0, 2, 1, 3)), (0, 0, HEADS * SIZE))


Whole = Callable[[Builder, Operand, Operand, Operand, Operand], Operand]
ATTENTIONS: dict[str, Whole] = {
    "in a row": lambda b, q, k, v, m: back(
        b, attended(b, heads(b, q), heads(b, k, (0, 2, 3, 1)), heads(b, v), m)
    ),
    "keys transposed again": lambda b, q, k, v, m: back(
        b, attended(b, heads(b, q), _swapped(b, heads(b, k)), heads(b, v), m)
    ),
    "without a mask": lambda b, q, k, v, m: back(
        b, attended(b, heads(b, q), heads(b, k, (0, 2, 3, 1)), heads(b, v))
    ),
    "scaled on both sides": lambda b, q, k, v, m: back(
        b,
        attended(
            b,
            b.add(Mul, heads(b, q), 0.5),
            b.add(Mul, _swapped(b, b.add(Mul, heads(b, k), 3.0)), 0.5),
            heads(b, v),
            m,
            lambda b, s: s,
        ),
    ),
    "the mask first": lambda b, q, k, v, m: back(
        b,
        b.add(
            MatMul,
            b.add(
                Softmax,
                b.add(Add, m, b.add(MatMul, heads(b, q), heads(b, k), transpose_y=True)),
                3,
            ),
            heads(b, v),
        ),
    ),
}


def _swapped(b: Builder, x: Operand) -> Operand:
    return b.add(Transpose, x, (0, 1, 3, 2))


NO_ATTENTIONS: dict[str, Whole] = {
    "over the queries": lambda b, q, k, v, m: attended(
        b, heads(b, q), _swapped(b, heads(b, k)), heads(b, v), m, axis=2
    ),
    "scaled by each head": lambda b, q, k, v, m: attended(
        b,
        heads(b, q),
        _swapped(b, heads(b, k)),
        heads(b, v),
        m,
        lambda b, s: b.add(Mul, s, vector(b, HEADS, 1, 1)),
    ),
    "masked before it is scaled": lambda b, q, k, v, m: attended(
        b,
        heads(b, q),
        _swapped(b, heads(b, k)),
        heads(b, v),
        None,
        lambda b, s: b.add(Div, b.add(Add, s, m), 2.0),
    ),
    "a mask of more entries": lambda b, q, k, v, m: attended(
        b, heads(b, q), _swapped(b, heads(b, k)), heads(b, v), vector(b, 3, 1, 1, 1)
    ),
    "a mask of one query": lambda b, q, k, v, m: attended(
        b, heads(b, q), _swapped(b, heads(b, k)), heads(b, v), vector(b, 1, 1, 2, 1)
    ),
    "scores that go out, too": lambda b, q, k, v, m: b.add(
        Concat, [s := b.add(Softmax, b.add(MatMul, heads(b, q), _swapped(b, heads(b, k))), 3),
                 b.add(MatMul, s, heads(b, v))], 3
    ),
}  # fmt: skip


def attention_model(make: Whole) -> Model:
    def with_mask(b: Builder, q: Operand, k: Operand, v: Operand, m: Operand) -> Operand:
        return make(b, q, k, v, m)

    keys = float32(N, T, HEADS * SIZE)
    return model_of(with_mask, float32(N, S, HEADS * SIZE), keys, keys, float32(N, 1, 1, T))


def after_attention(model: Model) -> Model:
    with verified():
        return run(model, (Recognize(COMPOSITES), Recognize((JOINED_HEADS,)), RemoveUnused()))


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_attention(kind: str) -> None:
    model = attention_model(ATTENTIONS[kind])
    after = after_attention(model)
    assert [operation.type for operation in after.operations] == ["ATTENTION"]
    generator = np.random.default_rng(0)
    for entries, queries, keys in ((1, 1, 1), (2, 3, 5), (2, 1, 4), (1, 4, 4)):
        shapes = [(entries, queries, 8), (entries, keys, 8), (entries, keys, 8)]
        arrays = [generator.normal(size=shape).astype(np.float32) for shape in shapes]
        arrays.append(np.where(generator.random((entries, 1, 1, keys)) < 0.8, 0, -1e4))
        inputs = {f"x{i}": array.astype(np.float32) for i, array in enumerate(arrays)}
        before = outputs_of(model, inputs)["y0"]
        close(outputs_of(after, inputs)["y0"], before)


@pytest.mark.parametrize("kind", NO_ATTENTIONS)
def test_what_is_no_attention(kind: str) -> None:
    model = attention_model(NO_ATTENTIONS[kind])
    assert "ATTENTION" not in [operation.type for operation in after_attention(model).operations]


def test_heads_that_something_else_reads_stay_apart() -> None:
    def make(b: Builder, q: Operand, k: Operand) -> tuple[Operand, ...]:
        keys = heads(b, k)
        return back(b, attended(b, heads(b, q), _swapped(b, keys), keys)), keys

    after = after_attention(model_of(make, float32(N, S, 8), float32(N, T, 8)))
    assert [operation.type for operation in after.operations].count("TRANSPOSE") == 3


def test_keys_of_fewer_heads_are_not_recognized() -> None:
    def make(b: Builder, q: Operand, k: Operand) -> Operand:
        return attended(b, q, _swapped(b, k), k)

    model = model_of(make, float32(N, HEADS, S, SIZE), float32(N, 1, T, SIZE))
    assert after_attention(model) is model
