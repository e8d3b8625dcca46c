"""Whatever element type a device claims for an operator, it must compute right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, ModelError, Operand
from crosschip.ir.types import ALL_TYPES, FLOATS, INTEGERS, NARROW_TYPES
from crosschip.ops.standard.activation import (
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Relu,
    Relu6,
    Sigmoid,
    Softmax,
    Swish,
    Tanh,
)
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mul, Pow, Sub
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization, LayerNormalization
from crosschip.ops.standard.pooling import AdaptiveAveragePool2D, AveragePool2D, MaxPool2D
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean, ReduceProd, ReduceSum
from crosschip.ops.standard.resizing import ResizeLinear, ResizeNearest
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Exp, Sqrt

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

COMPUTED = sorted(ALL_TYPES - NARROW_TYPES, key=lambda t: t.code)

TOLERANCES = {
    ElementType.FLOAT64: 1e-12,
    ElementType.FLOAT32: 1e-5,
    ElementType.FLOAT16: 2e-3,
    ElementType.BFLOAT16: 2e-2,
}

Example = tuple[Callable[..., Operand | tuple[Operand, ...]], tuple[tuple[int, ...], ...]]
VECTOR, IMAGE, MATRIX = (7,), (1, 2, 6, 5), (3, 4)


def weights(like: Operand, *shape: int) -> Array:
    """Constants of the element type of an operand."""
    return values(like.type.element_type, shape, seed=2)


def positive(like: Operand, *shape: int) -> Array:
    return np.abs(weights(like, *shape)) + np.ones((), like.type.element_type.dtype)


UNARY = [
    *(Relu, Relu6, LeakyRelu, Sigmoid, Tanh, HardSigmoid, HardSwish, Swish, Softmax, Sqrt, Exp),
    *(Assign, Squeeze, Flatten, ShapeOf, ReduceMean, ReduceSum, ReduceMax),
]
EXAMPLES: dict[str, Example] = {
    **{op.type: (lambda b, x, op=op: b.add(op, x), (IMAGE,)) for op in UNARY},
    **{
        op.type: (lambda b, x, y, op=op: b.add(op, x, y), (IMAGE, IMAGE))
        for op in (Add, Sub, Mul, Max, Min)
    },
    "DIV": (lambda b, x: b.add(Div, x, positive(x, 5)), (IMAGE,)),
    "POW": (lambda b, x: b.add(Pow, b.add(Exp, x), weights(x, 5)), (IMAGE,)),
    "CLIP": (lambda b, x: b.add(Clip, x, -100.0, 1e9), (IMAGE,)),
    "CONV_2D": (lambda b, x: b.add(Conv2D, x, weights(x, 3, 2, 3, 3), weights(x, 3)), (IMAGE,)),
    "CONV_2D_TRANSPOSE": (
        lambda b, x: b.add(Conv2DTranspose, x, weights(x, 2, 3, 3, 3), weights(x, 3)),
        (IMAGE,),
    ),
    "FULLY_CONNECTED": (
        lambda b, x: b.add(FullyConnected, x, weights(x, 5, 4), weights(x, 5)),
        (MATRIX,),
    ),
    "MAT_MUL": (lambda b, x, y: b.add(MatMul, x, y, False, True), (MATRIX, MATRIX)),
    "BATCH_NORMALIZATION": (
        lambda b, x: b.add(BatchNormalization, x, *(positive(x, 2) for _ in range(4))),
        (IMAGE,),
    ),
    "LAYER_NORMALIZATION": (
        lambda b, x: b.add(LayerNormalization, x, weights(x, 5), weights(x, 5)),
        (IMAGE,),
    ),
    "AVERAGE_POOL_2D": (lambda b, x: b.add(AveragePool2D, x, kernel_shape=(2, 3)), (IMAGE,)),
    "MAX_POOL_2D": (lambda b, x: b.add(MaxPool2D, x, kernel_shape=(2, 3)), (IMAGE,)),
    "MAX_POOL_2D indices": (
        lambda b, x: b.add_all(MaxPool2D, x, kernel_shape=(2, 3), return_indices=True),
        (IMAGE,),
    ),
    "ADAPTIVE_AVERAGE_POOL_2D": (lambda b, x: b.add(AdaptiveAveragePool2D, x, (1, 1)), (IMAGE,)),
    "RESIZE_NEAREST": (lambda b, x: b.add(ResizeNearest, x, scales=(2.0, 2.0)), (IMAGE,)),
    "RESIZE_NEAREST gathered": (lambda b, x: b.add(ResizeNearest, x, (7, 7)), (IMAGE,)),
    "RESIZE_LINEAR": (lambda b, x: b.add(ResizeLinear, x, (9, 7)), (IMAGE,)),
    "CONCAT": (lambda b, x, y: b.add(Concat, [x, y], axis=1), (IMAGE, IMAGE)),
    "SPLIT": (lambda b, x: b.add_all(Split, x, 2, (2, 4)), (IMAGE,)),
    "GATHER": (lambda b, x: b.add(Gather, x, b.constant(np.array([1, -1])), 2), (IMAGE,)),
    "RESHAPE": (lambda b, x: b.add(Reshape, x, (3, -1)), (IMAGE,)),
    "TRANSPOSE": (lambda b, x: b.add(Transpose, x, (3, 1, 0, 2)), (IMAGE,)),
    "UNSQUEEZE": (lambda b, x: b.add(Unsqueeze, x, (1,)), (IMAGE,)),
    "EXPAND": (lambda b, x: b.add(Expand, x, (3, 2, 6, 5)), (IMAGE,)),
    "SLICE": (lambda b, x: b.add(Slice, x, (2, 3), (1, 4), (5, 0), (2, -1)), (IMAGE,)),
    "FILL": (lambda b, x: b.add(Fill, (2, 3), x), ((1,),)),
    "lists ADD": (lambda b, x, y: b.add(Add, x, y), (VECTOR, VECTOR)),
    "lists MUL": (lambda b, x, y: b.add(Mul, x, y), (VECTOR, VECTOR)),
    "lists CONCAT": (lambda b, x, y: b.add(Concat, [x, y], axis=0), (VECTOR, VECTOR)),
    "lists GATHER": (lambda b, x: b.add(Gather, x, b.constant(np.array(2))), (VECTOR,)),
    "lists CLIP": (lambda b, x: b.add(Clip, x, -100.0, 1e9), (VECTOR,)),
}


def values(element_type: ElementType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Random elements; among integers the extremes, and all bit patterns."""
    random, dtype = np.random.default_rng(seed), element_type.dtype
    if element_type in FLOATS:
        return random.normal(size=shape).astype(dtype)
    if element_type is ElementType.BOOL:
        return random.random(shape) < 0.5
    limits = np.iinfo(dtype)
    found = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    found.flat[:2] = [limits.min, limits.max][: found.size]
    return found


def sizes(array: Array) -> Array:
    """Int64 as sizes and indices are: with products that int32 still holds."""
    return array % 1000 if array.dtype == np.int64 else array


@pytest.mark.parametrize("name", EXAMPLES)
def test_claims(check: Checker, name: str) -> None:
    build, shapes = EXAMPLES[name]
    claimed = set()
    for element_type in COMPUTED:
        arrays = [values(element_type, shape, seed) for seed, shape in enumerate(shapes)]
        if check.device.name == "openvino":
            arrays = [sizes(array) for array in arrays]
        try:
            model = check.built(build, arrays)
        except ModelError:
            continue
        if all(check.device.query(model, Options()).answers):
            expected = check.outputs_of(ReferenceDevice(), model, arrays)
            check.compare(model, arrays, expected, TOLERANCES.get(element_type, 0))
            claimed.add(element_type)
    assert ElementType.FLOAT32 in claimed


@pytest.mark.parametrize("source", COMPUTED, ids=str)
def test_casts(check: Checker, source: ElementType) -> None:
    for target in COMPUTED:
        array = np.array([0, 1, 2, 3, 100], np.int8).astype(source.dtype)
        if source in FLOATS and target is not ElementType.BOOL:
            array = array + np.asarray(0.5, source.dtype)
        if source in FLOATS and target in INTEGERS:
            array[-1] = -0.75

        def cast(b: Builder, x: Any, target: ElementType = target) -> Operand:
            return b.add(Cast, x, target)

        model = check.built(cast, [array])
        if check.device.supports(model.operations[0], Options()):
            expected = check.outputs_of(ReferenceDevice(), model, [array])
            check.compare(model, [array], expected, 0)


def test_int64_on_openvino_is_for_sizes(check: Checker) -> None:
    wide, square = np.array([2**31]), np.zeros((2, 2), np.int64)
    if check.device.name == "openvino":
        check.declines(lambda b, x: b.add(Add, x, x), square, why="sizes of shapes only")
        check.declines(lambda b, x: b.add(Max, x, x), square, why="lists of sizes only")
        check.declines(lambda b, x: b.add(Reshape, x, (2, 2)), np.zeros(4, np.int64), why="output")
        check.declines(lambda b, x: b.add(Max, x, wide), np.zeros(1, np.int64), why="input1")
        # Numbers that fit in int32 make one that does not.
        for operator in (Add, Sub, Mul):
            check.declines(lambda b, x, o=operator: b.add(o, x, x), wide // 2, why="input0")
        check.declines(lambda b, x: b.add(ReduceProd, x), wide // 2, why="input")
        held = np.full(9, 20)
        check.declines(lambda b, x: b.add(ReduceProd, b.constant(held)), (3,), why="output")
        check(
            lambda b, x: b.add(Mul, b.add(ShapeOf, x), np.array([2, 3])),
            (3, 4),
            rankless_too=False,
        )
        check.declines(
            lambda b, x: b.add(Cast, x, ElementType.INT64), (3,), why="computed in int32"
        )
    else:
        check(lambda b, x: b.add(Add, x, x), wide)
