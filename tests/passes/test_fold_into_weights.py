"""Folding into weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.modelling import dedented, float32, model_of, outputs_of

from crosschip.ir import Array, Builder, ElementType, Operand, TensorType, symbol
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization
from crosschip.passes import FoldConstants, FoldIntoWeights, RemoveUnused, run

N = symbol("N")
fold = [FoldConstants(), FoldIntoWeights(), RemoveUnused()]


def f(*values: float) -> Array:
    return np.array(values, np.float32)


def weights(*shape: int) -> Array:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def normalized(b: Builder, x: Operand, *, channels: int = 2) -> Operand:
    """Return `(x - 1) / sqrt(4) * 6 + 10` for each channel."""
    values = (np.full(channels, value, np.float32) for value in (6, 10, 1, 4))
    return b.add(BatchNormalization, x, *values, epsilon=0.0)


def test_batch_normalization_after_a_convolution() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        convolved = b.add(Conv2D, x, weights(2, 1, 1, 1), f(5, 7))
        return b.add(Relu, normalized(b, convolved))

    model = model_of(make, float32(N, 1, 3, 3))
    assert str(model) == dedented("""
        model model
          input x0: float32[N, 1, 3, 3]
          %conv_2d_0 = CONV_2D(input=%x0, filter=[[[[1.0]]], [[[2.0]]]], bias=[5.0, 7.0]): float32[N, 2, 3, 3]
          %batch_normalization_0 = BATCH_NORMALIZATION(input=%conv_2d_0, scale=[6.0, 6.0], bias=[10.0, 10.0], mean=[1.0, 1.0], variance=[4.0, 4.0], epsilon=0.0): float32[N, 2, 3, 3]
          %relu_0 = RELU(input=%batch_normalization_0): float32[N, 2, 3, 3]
          output y0 = %relu_0
    """)  # noqa: E501 - a line an operation
    assert str(run(model, fold)) == dedented("""
        model model
          input x0: float32[N, 1, 3, 3]
          %batch_normalization_0 = CONV_2D(input=%x0, filter=[[[[3.0]]], [[[6.0]]]], bias=[22.0, 28.0]): float32[N, 2, 3, 3]
          %relu_0 = RELU(input=%batch_normalization_0): float32[N, 2, 3, 3]
          output y0 = %relu_0
    """)  # noqa: E501 - a line an operation


def test_what_is_added_to_each_channel_becomes_bias_with_its_activation() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        convolved = b.add(Conv2D, x, weights(2, 1, 1, 1))
        shifted = b.add(Add, convolved, b.constant(f(1, 2).reshape(2, 1, 1)))
        return b.add(Add, b.constant(np.float32(10)), shifted, fuse_code=Fuse.RELU6)

    assert str(run(model_of(make, float32(1, 1, 3, 3)), fold)) == dedented("""
        model model
          input x0: float32[1, 1, 3, 3]
          %add_1 = CONV_2D(input=%x0, filter=[[[[1.0]]], [[[2.0]]]], bias=[11.0, 12.0], fuse_code=RELU6): float32[1, 2, 3, 3]
          output y0 = %add_1
    """)  # noqa: E501 - a line an operation


def test_transposed_convolution_in_groups() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        made = b.add(Conv2DTranspose, x, weights(4, 1, 1, 2), group=2)
        values = (f(2, 3), f(1, 0), f(0, 0), f(1, 1))
        return b.add(BatchNormalization, made, *values, epsilon=0.0)

    model = run(model_of(make, float32(1, 4, 3, 3)), fold)
    (operation,) = model.operations
    assert isinstance(operation, Conv2DTranspose)
    assert operation.filter.value is not None
    expected = weights(4, 1, 1, 2) * f(2, 2, 3, 3).reshape(4, 1, 1, 1)
    np.testing.assert_array_equal(operation.filter.value, expected)
    assert operation.bias is not None
    np.testing.assert_array_equal(operation.bias.value, f(1, 0))


def test_fully_connected_then_normalized_and_shifted() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        product = b.add(FullyConnected, x, weights(2, 2), f(1, 1))
        return b.add(Add, normalized(b, product), f(1, 2))

    assert str(run(model_of(make, float32(N, 2)), fold)) == dedented("""
        model model
          input x0: float32[N, 2]
          %add_0 = FULLY_CONNECTED(input=%x0, weight=[[3.0, 6.0], [9.0, 12.0]], bias=[11.0, 12.0]): float32[N, 2]
          output y0 = %add_0
    """)  # noqa: E501 - a line an operation


def test_a_product_and_a_bias_become_fully_connected() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        plain = b.add(Add, b.add(MatMul, x, weights(2, 3)), f(1, 2, 3), fuse_code=Fuse.RELU)
        turned = b.add(MatMul, x, weights(3, 2), transpose_y=True)
        return plain, b.add(Add, np.full((1, 1), 4, np.float32), turned)

    model = model_of(make, float32(N, 2))
    assert str(run(model, fold)) == dedented("""
        model model
          input x0: float32[N, 2]
          %add_0 = FULLY_CONNECTED(input=%x0, weight=[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], bias=[1.0, 2.0, 3.0], fuse_code=RELU): float32[N, 3]
          %add_1 = FULLY_CONNECTED(input=%x0, weight=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], bias=[4.0, 4.0, 4.0]): float32[N, 3]
          output y0 = %add_0
          output y1 = %add_1
    """)  # noqa: E501 - a line an operation


def test_weights_that_two_operations_share_are_scaled_for_each() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        shared = b.constant(weights(2, 1, 1, 1), "w")
        first = normalized(b, b.add(Conv2D, x, shared))
        return first, b.add(Conv2D, x, shared)

    folded = run(model_of(make, float32(1, 1, 2, 2)), fold)
    convolutions = [o for o in folded.operations if isinstance(o, Conv2D)]
    filters = [np.asarray(o.filter.value).ravel().tolist() for o in convolutions]
    assert filters == [[3, 6], [1, 2]]


Make = Callable[[Builder, Operand, Operand], "Operand | tuple[Operand, ...]"]


def convolution(b: Builder, x: Operand, **more: Any) -> Operand:
    return b.add(Conv2D, x, b.constant(weights(2, 2, 1, 1)), **more)


STAYS: dict[str, Make] = {
    "somebody else reads what is normalized": lambda b, x, _: (
        b.add(Relu, c := convolution(b, x)),
        normalized(b, c),
    ),
    "what is normalized is an output": lambda b, x, _: (
        c := convolution(b, x),
        normalized(b, c),
    ),
    "an activation comes before": lambda b, x, _: normalized(
        b, convolution(b, x, fuse_code=Fuse.RELU)
    ),
    "the filter is computed": lambda b, x, v: normalized(b, b.add(Conv2D, x, v)),
    "the bias is computed": lambda b, x, v: normalized(
        b, convolution(b, x, bias=b.input("bias", float32(2)))
    ),
    "a statistic is computed": lambda b, x, _: b.add(
        BatchNormalization, convolution(b, x), f(1, 1), f(0, 0), b.input("m", float32(2)), f(1, 1)
    ),
    "the addend differs along the width": lambda b, x, _: b.add(
        Add, convolution(b, x), np.ones((1, 3), np.float32)
    ),
    "the addend differs along the batch": lambda b, x, _: b.add(
        Add, convolution(b, x), np.ones((2, 1, 1, 1), np.float32)
    ),
    "the addend adds an axis": lambda b, x, _: b.add(
        Add, convolution(b, x), np.ones((1, 1, 1, 1, 1), np.float32)
    ),
    "the sum has more channels": lambda b, x, _: b.add(
        Add, b.add(Conv2D, x, weights(1, 2, 1, 1)), np.ones((2, 1, 1), np.float32)
    ),
    "both addends are computed": lambda b, x, _: b.add(Add, convolution(b, x), convolution(b, x)),
    "a product with an addend of more axes": lambda b, x, _: b.add(
        Add,
        b.add(MatMul, b.input("m", float32(3, 2)), weights(2, 4)),
        np.ones((1, 1, 4), np.float32),
    ),
    "a product with a column": lambda b, x, _: b.add(
        Add, b.add(MatMul, b.input("m", float32(3, 2)), weights(2, 4)), np.ones((3, 1), np.float32)
    ),
    "a product that grows": lambda b, x, _: b.add(
        Add, b.add(MatMul, b.input("m", float32(3, 2)), weights(2, 1)), np.ones(4, np.float32)
    ),
    "a product of stacks of matrices": lambda b, x, _: b.add(
        Add, b.add(MatMul, x, weights(3, 4)), np.ones(4, np.float32)
    ),
    "a product turned on the left": lambda b, x, _: b.add(
        Add,
        b.add(MatMul, b.input("m", float32(2, 3)), weights(2, 4), transpose_x=True),
        np.ones(4, np.float32),
    ),
}


@pytest.mark.parametrize("why", STAYS)
def test_what_cannot_be_folded_stays(why: str) -> None:
    model = model_of(STAYS[why], float32(2, 2, 3, 3), float32(2, 2, 1, 1))
    assert str(run(model, fold)) == str(run(model, [FoldConstants(), RemoveUnused()]))


@pytest.mark.parametrize(
    "element_type",
    [t for t in ElementType if t.dtype.kind in "iu"],
    ids=str,
)
def test_a_product_of_integers_stays_one(element_type: ElementType) -> None:
    matrix = np.ones((2, 3), element_type.dtype)

    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Add, b.add(MatMul, x, matrix), np.ones(3, element_type.dtype))

    model = model_of(make, TensorType(element_type, (1, 2)))
    assert str(run(model, fold)) == str(model)


@pytest.mark.parametrize("element_type", [ElementType.FLOAT16, ElementType.BFLOAT16], ids=str)
def test_narrow_weights_are_rounded_once(element_type: ElementType) -> None:
    def make(b: Builder, x: Operand) -> Operand:
        kernel = np.full((1, 1, 1, 1), 1 / 3).astype(element_type.dtype)
        values = (f(3), f(0), f(0), f(4))
        return b.add(BatchNormalization, b.add(Conv2D, x, kernel), *values, epsilon=0.0)

    folded = run(model_of(make, TensorType(element_type, (1, 1, 2, 2))), fold)
    folded.verify()
    (operation,) = folded.operations
    assert isinstance(operation, Conv2D)
    third = np.float64(np.asarray(1 / 3).astype(element_type.dtype))
    assert operation.filter.value is not None
    assert operation.filter.value.item() == np.asarray(third * 1.5).astype(element_type.dtype)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(515, 64, 3, 3), (1, 30, 100, 100), (70_001, 4, 1, 1)], ids=str)
def test_large_weights_are_scaled_as_small_ones(shape: tuple[int, ...]) -> None:
    """Large weights are scaled in chunks on two threads, without a warning on overflow."""
    kernel = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    kernel[-1, 0, 0, 0] = kernel[0, 0, 0, 0] = 3e38
    scales = np.linspace(3, 7, shape[0], dtype=np.float32)

    def make(b: Builder, x: Operand) -> Operand:
        rest = (np.full(shape[0], value, np.float32) for value in (0, 0, 4))
        return b.add(BatchNormalization, b.add(Conv2D, x, kernel), scales, *rest, epsilon=0.0)

    (operation,) = run(model_of(make, float32(1, *shape[1:])), fold).operations
    assert isinstance(operation, Conv2D)
    with np.errstate(over="ignore"):
        wanted = (kernel * (scales.astype(np.float64) / 2)[:, None, None, None]).astype(np.float32)
    np.testing.assert_array_equal(operation.filter.value, wanted)
    assert np.isinf(wanted).any()


def test_statistics_that_make_no_sense_make_none_after_folding_either() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        values = (f(1, 1, 1), f(0, 0, 0), f(0, 0, 0), f(-1, 0, 1e-45))
        convolved = b.add(Conv2D, x, weights(3, 1, 1, 1))
        return b.add(BatchNormalization, convolved, *values, epsilon=0.0)

    model = model_of(make, float32(1, 1, 1, 1))
    x = {"x0": np.ones((1, 1, 1, 1), np.float32)}
    before, after = outputs_of(model, x)["y0"], outputs_of(run(model, fold), x)["y0"]
    np.testing.assert_array_equal(np.isnan(before), np.isnan(after))
    np.testing.assert_array_equal(np.isinf(before), np.isinf(after))


def test_the_weights_of_the_model_before_are_not_touched() -> None:
    kernel = weights(2, 1, 1, 1)
    kernel.flags.writeable = False
    model = model_of(lambda b, x: normalized(b, b.add(Conv2D, x, kernel)), float32(1, 1, 2, 2))
    run(model, fold)
    assert model.constants[0].value is kernel
