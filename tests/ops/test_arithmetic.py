"""Functions, products, normalizations and reductions, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from tests.ops.oracle import functional, of_torch, torch

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, Quantization, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
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
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization, LayerNormalization
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean, ReduceSum
from crosschip.ops.standard.unary import Exp, Sqrt

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

Function = Callable[..., Any]


UNARY: dict[type[Operator], Function] = {
    Relu: torch.relu,
    Relu6: functional.relu6,
    LeakyRelu: functional.leaky_relu,
    Sigmoid: torch.sigmoid,
    Tanh: torch.tanh,
    HardSigmoid: lambda x: torch.clamp(0.2 * x + 0.5, 0, 1),
    HardSwish: functional.hardswish,
    Swish: functional.silu,
    Sqrt: torch.sqrt,
    Exp: torch.exp,
    Assign: torch.clone,
}
BINARY: dict[type[Operator], Function] = {
    Add: torch.add,
    Sub: torch.sub,
    Mul: torch.mul,
    Div: torch.div,
    Max: torch.maximum,
    Min: torch.minimum,
}
INTEGER: dict[type[Operator], Function] = {
    **{operator: BINARY[operator] for operator in (Add, Sub, Mul, Max, Min)},
    Div: lambda x, y: torch.where(y == 0, 0, torch.div(x, y + (y == 0), rounding_mode="trunc")),
}


def operator_name(operator: type[Operator]) -> str:
    return operator.type


@pytest.mark.parametrize("operator", UNARY, ids=operator_name)
def test_unary(check: Checker, operator: type[Operator]) -> None:
    for shape in ((), (0, 3), (7,), (2, 3, 4)):
        check(lambda b, x: b.add(operator, x), of_torch(UNARY[operator]), shape)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, 1e-40], np.float32)
    if operator not in (Swish, HardSwish):
        check(lambda b, x: b.add(operator, x), of_torch(UNARY[operator]), special)


@pytest.mark.parametrize("operator", BINARY, ids=operator_name)
def test_binary(check: Checker, operator: type[Operator]) -> None:
    like = of_torch(BINARY[operator])
    for x, y in (((2, 3), (2, 3)), ((2, 1, 4), (3, 1)), ((), (2, 3)), ((1, 2, 3), (2, 1, 1))):
        check(lambda b, x, y: b.add(operator, x, y), like, x, y)
    nan = np.array([np.nan, 1, np.nan, np.inf], np.float32)
    check(lambda b, x, y: b.add(operator, x, y), like, nan, nan[::-1].copy())


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("operator", INTEGER, ids=operator_name)
def test_integers_wrap_around(
    check: Checker, operator: type[Operator], dtype: type[np.integer[Any]]
) -> None:
    limits = np.iinfo(dtype)
    random = np.random.default_rng(2)
    x, y = (random.integers(limits.min, limits.max, 50, dtype, endpoint=True) for _ in range(2))
    x[:3], y[:3] = [limits.max, limits.min, 7], [1, 0, 0]
    check(lambda b, x, y: b.add(operator, x, y), of_torch(INTEGER[operator]), x, y)


def test_power(check: Checker) -> None:
    base, exponent = np.array([-2.0, 0.5, 4.0], np.float32), np.array([3.0, -1.0, 0.5], np.float32)
    check(lambda b, x, y: b.add(Pow, x, y), of_torch(torch.pow), base, exponent)
    x, y = np.array([2, -3, 7, 0, -1, 5], np.int32), np.array([10, 3, 0, 0, -3, -1], np.int32)
    expected = np.array([1024, -27, 1, 1, -1, 0], np.int32)
    check(lambda b, x, y: b.add(Pow, x, y), lambda x, y: expected, x, y)


def test_activation_parameters(check: Checker) -> None:
    check(
        lambda b, x: b.add(LeakyRelu, x, -0.5),
        of_torch(lambda x: functional.leaky_relu(x, -0.5)),
        (3, 4),
    )
    check(lambda b, x: b.add(HardSigmoid, x, 1 / 6, 0.5), of_torch(functional.hardsigmoid), (50,))
    check(
        lambda b, x: b.add(HardSwish, x, 0.3, 0.25),
        of_torch(lambda x: x * torch.clamp(0.3 * x + 0.25, 0, 1)),
        (50,),
    )


def test_clip(check: Checker) -> None:
    for low, high in ((-0.5, 0.5), (0.0, np.inf), (-np.inf, 0.1), (1.0, -1.0)):
        check(
            lambda b, x, low=low, high=high: b.add(Clip, x, low, high),
            of_torch(lambda x, low=low, high=high: torch.clamp(x, low, high)),
            np.array([np.nan, -2, -0.1, 0, 0.3, 7], np.float32),
        )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_bounds_of_integers_are_exact(check: Checker, dtype: str) -> None:
    limits = np.iinfo(dtype)
    low, high = limits.min + 3, limits.max - 3
    numbers = np.array([limits.min, low - 1, low, 0, 5, high, high + 1, limits.max], dtype)
    for least, greatest in ((low, high), (low, np.inf), (-1.5, 4.75), (-1e300, 1e300), (4, 1)):
        lower, upper = (n if np.isinf(n) else int(n) for n in (least, greatest))

        def like(x: Array, lower: float = lower, upper: float = upper) -> Array:
            bounded = (min(max(n, lower), upper) for n in x.tolist())
            return np.array([max(limits.min, min(limits.max, n)) for n in bounded], dtype)

        check(
            lambda b, x, least=least, greatest=greatest: b.add(Clip, x, least, greatest),
            like,
            numbers,
        )


@pytest.mark.parametrize("fuse", [f for f in Fuse if f is not Fuse.NONE], ids=lambda f: f.name)
def test_fused_activations(check: Checker, fuse: Fuse) -> None:
    low, high = fuse.bounds
    check(
        lambda b, x, y: b.add(Add, x, y, fuse),
        of_torch(lambda x, y: torch.clamp(x + y, low, high)),
        *((20,), (20,)),
    )


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_softmax(check: Checker, axis: int) -> None:
    like = of_torch(lambda x: torch.softmax(x, axis))
    check(lambda b, x: b.add(Softmax, x, axis), like, (3, 4, 5))
    check(lambda b, x: b.add(Softmax, x, axis), like, np.full((2, 3), 1e30, np.float32))


MATRICES = [
    *(((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4))),
    *(((2, 1, 3, 4), (5, 4, 2)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,))),
]


@pytest.mark.parametrize(("x", "y"), MATRICES, ids=str)
def test_matmul(check: Checker, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    def flipped(tensor: Any) -> Any:
        return tensor.mT if tensor.ndim > 1 else tensor

    def turned(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-2], *shape[:-3:-1])

    check(lambda b, x, y: b.add(MatMul, x, y), of_torch(torch.matmul), x, y)
    check(
        lambda b, x, y: b.add(MatMul, x, y, True, True),
        of_torch(lambda x, y: torch.matmul(flipped(x), flipped(y))),
        *(turned(x), turned(y)),
    )


def test_fully_connected(check: Checker) -> None:
    shapes = (2, 12), (5, 12), (5,)
    check(lambda b, *xs: b.add(FullyConnected, *xs), of_torch(functional.linear), *shapes)
    check(
        lambda b, x: b.add(FullyConnected, x, np.ones((5, 12), np.float32)),
        of_torch(lambda x: functional.linear(x.reshape(2, 12), torch.ones(5, 12))),
        (2, 3, 4),
    )


def test_batch_normalization(check: Checker) -> None:
    random = np.random.default_rng(3)
    statistics = [random.uniform(0.5, 2, 3).astype(np.float32) for _ in range(4)]

    def like(x: Any, *given: Any) -> Any:
        scale, bias, mean, variance = given
        return functional.batch_norm(x, mean, variance, scale, bias, eps=0.01)

    for shape in ((2, 3), (2, 3, 7), (2, 3, 4, 5)):
        check(
            lambda b, *xs: b.add(BatchNormalization, *xs, epsilon=0.01),
            of_torch(like),
            *(shape, *statistics),
        )


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_layer_normalization(check: Checker, axis: int) -> None:
    shape = (2, 3, 5)
    normalized = shape[axis:]
    check(
        lambda b, *xs: b.add(LayerNormalization, *xs, axis, 0.1),
        of_torch(lambda x, w, b: functional.layer_norm(x, normalized, w, b, 0.1)),
        *(shape, normalized, normalized),
    )


REDUCTIONS: dict[type[Operator], Function] = {
    ReduceMean: torch.mean,
    ReduceSum: torch.sum,
    ReduceMax: torch.amax,
}


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("operator", REDUCTIONS, ids=operator_name)
def test_reduction(check: Checker, operator: type[Operator], keepdim: bool) -> None:
    for axes in ((0,), (-1,), (1, 2), (-1, 0), ()):
        check(
            lambda b, x, axes=axes: b.add(operator, x, axes, keepdim),
            of_torch(
                lambda x, axes=axes: REDUCTIONS[operator](x, axes or (0, 1, 2), keepdim=keepdim)
            ),
            (3, 4, 5),
        )


def test_integer_sums_wrap_around(check: Checker) -> None:
    integers = np.array([[2**31 - 1, 1], [-(2**31), -1]], np.int32)
    check(
        lambda b, x: b.add(ReduceSum, x, (1,)),
        of_torch(lambda x: torch.sum(x, 1, keepdim=True, dtype=torch.int32)),
        integers,
    )


@pytest.mark.parametrize(
    ("narrow", "wide"), [(np.float16, torch.float16), (ml_dtypes.bfloat16, torch.bfloat16)]
)
def test_narrow_floats_are_rounded_once(
    check: Checker, narrow: type[np.generic], wide: Any
) -> None:
    def like(function: Function) -> Function:
        def call(*arrays: Array) -> Array:
            tensors = [torch.from_numpy(array.astype(np.float32)).to(wide) for array in arrays]
            rounded: Array = function(*tensors).float().numpy().astype(narrow)
            return rounded

        return call

    x, y = np.random.default_rng(5).normal(size=(2, 200)).astype(narrow)
    for operator, function in BINARY.items():
        check(lambda b, x, y, op=operator: b.add(op, x, y), like(function), x, y, tolerance=0)


QUANTIZED: dict[type[Operator], Callable[[Fraction, Fraction], Fraction]] = {
    Add: lambda a, c: a + c,
    Sub: lambda a, c: a - c,
    Mul: lambda a, c: a * c,
    Max: max,
    Min: min,
    Div: lambda a, c: a / c,
}


@pytest.mark.parametrize(
    ("dtype", "zero_points"), [("int8", (0, 0, 0)), ("uint8", (120, 3, 128)), ("int16", (0, 0, 0))]
)
@pytest.mark.parametrize("operator", QUANTIZED, ids=operator_name)
def test_quantized_numbers(
    operator: type[Operator], dtype: str, zero_points: tuple[int, ...]
) -> None:
    limits, random = np.iinfo(dtype), np.random.default_rng(6)
    x, y = random.integers(limits.min, limits.max, (2, 200), dtype, endpoint=True)
    y[y == zero_points[1]] += 1
    first, second, result = (
        Quantization((scale,), (zero_point,))
        for scale, zero_point in zip((0.05, 0.02, 0.1), zero_points, strict=True)
    )
    b = Builder()
    inputs = [
        b.input(name, TensorType(ElementType(dtype), (200,), stored))
        for name, stored in (("x", first), ("y", second))
    ]
    b.output("z", b.add(operator, *inputs, quantization=result))
    (actual,) = ReferenceDevice().compile(b.build(), Options()).run([x, y])

    scales = [Fraction(float(np.float32(stored.scale[0]))) for stored in (first, second, result)]
    for integer, a, c in zip(actual.tolist(), x.tolist(), y.tolist(), strict=True):
        reals = (a - zero_points[0]) * scales[0], (c - zero_points[1]) * scales[1]
        steps = round(QUANTIZED[operator](*reals) / scales[2]) + zero_points[2]
        assert integer == min(max(steps, limits.min), limits.max)
