"""Elementwise arithmetic, compared with PyTorch and Python numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from tests.ops.oracle import of_torch, torch

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, Quantization, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import (
    Add,
    BiasAdd,
    Clip,
    Div,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    Scale,
    SquaredDifference,
    Sub,
    Sum,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

Function = Callable[..., Any]


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


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4, 5), (3, 0, 3)], ids=str)
def test_bias(check: Checker, shape: tuple[int, ...]) -> None:
    for axis in range(-len(shape), len(shape)):

        def like(x: Any, bias: Any, axis: int = axis) -> Any:
            return (x.movedim(axis, -1) + bias).movedim(-1, axis)

        check(
            lambda b, x, bias, axis=axis: b.add(BiasAdd, x, bias, axis),
            of_torch(like),
            *(shape, (shape[axis],)),
        )
    check(lambda b, *xs: b.add(BiasAdd, *xs), of_torch(torch.add), shape, (shape[-1],))


def test_bias_of_integers(check: Checker) -> None:
    like = of_torch(lambda x, bias: x + bias[:, None])
    integers = np.array([[2**31 - 1, 0], [-(2**31), 1]], np.int32)
    check(lambda b, *xs: b.add(BiasAdd, *xs, 0), like, integers, np.array([1, -1], np.int32))


@pytest.mark.parametrize(
    ("axis", "letters"), [(0, "ab"), (1, "bc"), (2, "cd"), (-2, "cd"), (-1, "d"), (1, "bcd")]
)
def test_scale(check: Checker, axis: int, letters: str) -> None:
    shape = (2, 3, 4, 5)
    along = tuple(shape["abcd".index(letter)] for letter in letters)

    def like(x: Any, scale: Any, bias: Any) -> Any:
        spread = torch.einsum(f"{letters},abcd->abcd", bias, torch.ones(shape))
        return torch.einsum(f"abcd,{letters}->abcd", x, scale) + spread

    check(lambda b, *xs: b.add(Scale, *xs, axis), of_torch(like), shape, along, along)
    check(
        lambda b, x, scale: b.add(Scale, x, scale, axis=axis),
        of_torch(lambda x, scale: torch.einsum(f"abcd,{letters}->abcd", x, scale)),
        *(shape, along),
    )


def test_scale_with_an_activation(check: Checker) -> None:
    like = of_torch(lambda x, scale, bias: torch.clamp(x * scale + bias, -1, 1))
    check(lambda b, *xs: b.add(Scale, *xs, axis=-1, fuse_code=Fuse.RELU1), like, (4, 6), (6,), (6,))


def test_sum(check: Checker) -> None:
    check(lambda b, x: b.add(Sum, [x]), of_torch(torch.clone), (2, 3))
    check(
        lambda b, *xs: b.add(Sum, list(xs)),
        of_torch(lambda x, y, z: x + y + z),
        *((2, 1, 4), (3, 1), ()),
    )
    integers = np.array([2**31 - 1, -(2**31)], np.int32)
    check(
        lambda b, x, y: b.add(Sum, [x, y, x]),
        of_torch(lambda x, y: x + y + x),
        *(integers, np.array([1, 2], np.int32)),
    )


def test_squared_difference(check: Checker) -> None:
    like = of_torch(lambda x, y: (x - y) ** 2)
    for x, y in (((2, 3), (3,)), ((2, 1, 4), (3, 1)), ((0, 3), (1, 1))):
        check(lambda b, x, y: b.add(SquaredDifference, x, y), like, x, y)
    integers = np.array([2**31 - 1, -(2**31), 5], np.int32)
    check(lambda b, x, y: b.add(SquaredDifference, x, y), like, integers, integers[::-1].copy())


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def pairs_of(dtype: str) -> tuple[Array, Array]:
    """Return all pairs of some integers, including the extremes and 0."""
    limits = np.iinfo(dtype)
    some = [limits.min, limits.max, 0, 1, 3, 7, limits.max - 1, limits.min // 2, limits.min // 3]
    if limits.min < 0:
        some += [-1, -3, -7]
    left, right = np.meshgrid(np.array(some, dtype), np.array(some, dtype))
    return left.copy(), right.copy()


def of_pairs(function: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    """Convert a function of two Python numbers to a function of arrays; integers wrap around."""

    def like(x: Array, y: Array) -> Array:
        results = [function(a, c) for a, c in zip(x.flat, y.flat, strict=True)]
        if x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            results = [(n - limits.min) % 2**limits.bits + limits.min for n in results]
        return np.array(results, x.dtype).reshape(x.shape)

    return like


def rest_of_integers(a: Any, c: Any) -> int:
    """Return the remainder with the sign of the dividend."""
    a, c = int(a), int(c)
    return int(math.copysign(1, a)) * (abs(a) % abs(c)) if c else 0


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_of_integers(check: Checker, dtype: str) -> None:
    pairs = pairs_of(dtype)
    floor = of_pairs(lambda a, c: int(a) // int(c) if c else 0)
    check(lambda b, x, y: b.add(FloorDiv, x, y), floor, *pairs)
    modulo = of_pairs(lambda a, c: int(a) % int(c) if c else 0)
    check(lambda b, x, y: b.add(Mod, x, y), modulo, *pairs)
    check(lambda b, x, y: b.add(Mod, x, y, True), of_pairs(rest_of_integers), *pairs)


def real_pairs() -> tuple[Array, Array]:
    """Return all pairs of some reals."""
    some = np.array([-7.5, -3, -0.1, 0.1, 1, 2.5, 1e10, -1e-10])
    left, right = np.meshgrid(some, some)
    return left.copy(), right.copy()


def test_division_of_reals(check: Checker) -> None:
    pairs = real_pairs()
    floor = of_pairs(lambda a, c: float(math.floor(a / c)))
    check(lambda b, x, y: b.add(FloorDiv, x, y), floor, *pairs, tolerance=0)
    check(lambda b, x, y: b.add(Mod, x, y), of_pairs(lambda a, c: a % c), *pairs, tolerance=0)
    check(lambda b, x, y: b.add(Mod, x, y, True), of_pairs(math.fmod), *pairs, tolerance=0)


def test_division_by_what_is_no_number(check: Checker) -> None:
    dividend = np.array([1, -1, 0, np.inf, np.nan, 2, -2, 2], np.float32)
    divisor = np.array([0, 0, 0, 3, 3, np.inf, np.inf, -np.inf], np.float32)
    nan, inf = np.nan, np.inf
    for build, expected in (
        (lambda b, x, y: b.add(FloorDiv, x, y), [inf, -inf, nan, inf, nan, 0, -0.0, -0.0]),
        (lambda b, x, y: b.add(Mod, x, y), [nan, nan, nan, nan, nan, 2, inf, -inf]),
        (lambda b, x, y: b.add(Mod, x, y, True), [nan, nan, nan, nan, nan, 2, -2, 2]),
    ):
        check(build, lambda x, y, e=expected: np.array(e, np.float32), dividend, divisor)


def test_division_with_an_activation(check: Checker) -> None:
    floors = of_pairs(lambda a, c: min(max(a // c, 0), 6))
    check(lambda b, x, y: b.add(FloorDiv, x, y, Fuse.RELU6), floors, *real_pairs())
