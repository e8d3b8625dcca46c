"""Matrix products of floats, integers and quantized tensors, and determinants."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import functional, of_torch, torch

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, ModelError, Operand, Quantization, TensorType
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul, MatMulNBits

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

INT8, INT32, FLOAT32 = ElementType.INT8, ElementType.INT32, ElementType.FLOAT32


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
def test_integers_wrap_around(check: Checker, dtype: type[np.integer[Any]]) -> None:
    limits = np.iinfo(dtype)
    random = np.random.default_rng(1)
    x, y = (random.integers(limits.min, limits.max, shape, dtype) for shape in ((3, 4), (4, 5)))

    def exact(x: Array, y: Array) -> Array:
        rows, columns = x.tolist(), y.T.tolist()
        products = [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns]
            for row in rows
        ]
        span = 2**limits.bits
        return np.array(
            [[(v - limits.min) % span + limits.min for v in row] for row in products], dtype
        )

    check(lambda b, x, y: b.add(MatMul, x, y), exact, x, y)


def test_sums_of_nothing(check: Checker) -> None:
    check(lambda b, x, y: b.add(MatMul, x, y), of_torch(torch.matmul), (2, 0), (0, 3))
    check(lambda b, *xs: b.add(FullyConnected, *xs), of_torch(functional.linear), (2, 0), (3, 0))


def test_transposing_a_vector_leaves_it_alone(check: Checker) -> None:
    check(lambda b, x, y: b.add(MatMul, x, y, True), of_torch(torch.matmul), (3,), (2, 3, 4))
    check(lambda b, x, y: b.add(MatMul, x, y, False, True), of_torch(torch.matmul), (2, 4, 3), (3,))


def test_fully_connected_is_flattened(check: Checker) -> None:
    check(
        lambda b, x, w, bias: b.add(FullyConnected, x, w, bias, Fuse.RELU6),
        of_torch(lambda x, w, b: torch.clamp(functional.linear(x.reshape(-1, 6), w, b), 0, 6)),
        *((2, 5, 3), (4, 6), (4,)),
    )


def by_permutations(matrix: list[list[float]]) -> float:
    """Compute the determinant by its definition: signed products of all row permutations."""
    total = 0.0
    for order in permutations(range(len(matrix))):
        inversions = sum(a > b for a, b in combinations(order, 2))
        product = math.prod(matrix[row][column] for column, row in enumerate(order))
        total += (-1) ** inversions * product
    return total


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_determinant(check: Checker, size: int) -> None:
    def like(x: Array) -> Array:
        flat = x.reshape(math.prod(x.shape[:-2]), size, size)
        return np.array([by_permutations(m) for m in flat.tolist()]).reshape(x.shape[:-2])

    def in_float32(x: Array) -> Array:
        return like(x).astype(np.float32)

    check(lambda b, x: b.add(Det, x), in_float32, (size, size))
    check(lambda b, x: b.add(Det, x), in_float32, (2, 3, size, size))
    check(lambda b, x: b.add(Det, x), like, np.random.default_rng(2).normal(size=(size, size)))


def test_determinants_of_large_matrices(check: Checker) -> None:
    check(lambda b, x: b.add(Det, x), of_torch(torch.linalg.det), (2, 12, 12))


def decomposed(x: Array) -> Array:
    """Return the reference's output of the operator's decomposition."""
    b = Builder()
    input = b.input("x", TensorType(FLOAT32, x.shape))
    operation = Det("det", (input,))
    operation = operation.with_outputs((Operand("y", operation.infer()[0]),))
    parts = operation.decomposition(b)
    assert parts
    b.output("y", parts[0])
    (found,) = ReferenceDevice().compile(b.build(), Options()).run([x])
    return found


def b_of(build: Callable[[Builder], Operand]) -> Builder:
    b = Builder()
    build(b)
    return b


def permutation(*order: int) -> Array:
    return np.eye(len(order), dtype=np.float32)[list(order)]


MATRICES = {
    "even": (permutation(1, 2, 0, 3), 1.0),
    "odd": (permutation(1, 0, 2, 3), -1.0),
    "reversed": (permutation(4, 3, 2, 1, 0), 1.0),
    "singular": (np.array([[1, 2, 3], [2, 4, 6], [0, 1, 5]], np.float32), 0.0),
    "zero": (np.zeros((3, 3), np.float32), 0.0),
    "zero pivot": (np.array([[0, 2], [3, 4]], np.float32), -6.0),
    "one row": (np.array([[-7]], np.float32), -7.0),
    "no rows": (np.zeros((0, 0), np.float32), 1.0),
    "NaN": (np.array([[1, np.nan], [2, 3]], np.float32), np.nan),
}


@pytest.mark.parametrize("name", MATRICES)
def test_elimination_finds_the_sign(name: str) -> None:
    matrix, expected = MATRICES[name]
    np.testing.assert_allclose(decomposed(matrix), np.float32(expected), rtol=1e-6)


def connected(
    weight: Quantization | None,
    bias: Quantization | None,
    input: Quantization | None = Quantization((0.1,)),  # noqa: B008 - it is immutable
    bias_type: ElementType = INT32,
) -> Callable[[Builder], Operand]:
    """Return a quantized FULLY_CONNECTED from 4 inputs to 3 units."""

    def type_of(quantization: Quantization | None, stored: ElementType, *shape: int) -> TensorType:
        return TensorType(stored if quantization else FLOAT32, shape, quantization)

    def build(b: Builder) -> Operand:
        operands = [
            b.input("x", type_of(input, INT8, 2, 4)),
            b.input("w", type_of(weight, INT8, 3, 4)),
            b.input("b", type_of(bias, bias_type, 3)),
        ]
        return b.add(FullyConnected, *operands)

    return build


PER_CHANNEL = Quantization((0.5, 0.25, 2.0), axis=0)


def test_a_bias_in_the_unit_of_the_products_is_taken() -> None:
    b_of(connected(Quantization((0.5,)), Quantization((0.05,))))
    # The product of the scales as float32 has it.
    b_of(connected(Quantization((0.3,)), Quantization((float(np.float32(0.1) * np.float32(0.3)),))))
    b_of(connected(PER_CHANNEL, Quantization((0.05, 0.025, 0.2), axis=0)))
    b_of(connected(Quantization((0.5,)), None))


BROKEN = {
    "bias: its scale 0.06 is not 0.05": connected(Quantization((0.5,)), Quantization((0.06,))),
    "bias: its scale 0.02 is not 0.025": connected(
        PER_CHANNEL, Quantization((0.05, 0.02, 0.2), axis=0)
    ),
    "bias: has 1 scales, but the weight has 3": connected(PER_CHANNEL, Quantization((0.05,))),
    "bias: a quantized one must be symmetric int32, not int8": connected(
        Quantization((0.5,)), Quantization((0.05,)), bias_type=INT8
    ),
    "bias: a quantized one must be symmetric int32, not int32": connected(
        Quantization((0.5,)), Quantization((0.05,), (1,))
    ),
    "bias: is quantized, but input and weight are not both": connected(
        Quantization((0.5,)), Quantization((0.05,)), input=None
    ),
    "bias: .* the input has a scale for each index": connected(
        Quantization((0.5,)), Quantization((0.05,)), input=Quantization((0.1, 0.1), axis=0)
    ),
    "bias: .* run along axis 1, not along the output channels": connected(
        Quantization((0.5, 0.5, 0.5, 0.5), axis=1), Quantization((0.05, 0.05, 0.05), axis=0)
    ),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_bias_in_another_unit_is_refused(message: str) -> None:
    with pytest.raises(ModelError, match=f"FULLY_CONNECTED.{message}"):
        b_of(BROKEN[message])


def test_quantized_products_are_rounded_once() -> None:
    random = np.random.default_rng(3)
    x, w = (random.integers(-128, 128, shape, np.int8) for shape in ((2, 4), (3, 4)))
    bias = random.integers(-999, 999, 3, np.int32)
    scales = np.array(PER_CHANNEL.scale)
    b = Builder()
    made = b.add(
        FullyConnected,
        b.input("x", TensorType(INT8, (2, 4), Quantization((0.125,)))),
        b.input("w", TensorType(INT8, (3, 4), PER_CHANNEL)),
        b.constant(bias, "b", Quantization((0.0625, 0.03125, 0.25), axis=0)),
        quantization=Quantization((3.0,)),
    )
    b.output("y", made)
    (found,) = ReferenceDevice().compile(b.build(), Options()).run([x, w])
    accumulated = x.astype(np.int64) @ w.T.astype(np.int64) + bias
    expected = np.clip(np.rint(accumulated * (0.125 * scales) / 3.0), -128, 127)
    np.testing.assert_array_equal(found, expected.astype(np.int8))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 1)])
def test_what_has_no_determinant(shape: tuple[int, ...]) -> None:
    b = Builder()
    with pytest.raises(ModelError, match=r"DET\.input: "):
        b.add(Det, b.input("x", TensorType(FLOAT32, shape)))


def test_what_does_not_make_rows() -> None:
    b = Builder()
    x = b.input("x", TensorType(FLOAT32, (2, 3, 4)))
    for size in (5, 0):
        with pytest.raises(ModelError, match=f"24 elements do not make rows of {size}"):
            b.add(FullyConnected, x, np.ones((2, size), np.float32))


FACTORS = [
    *(((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4))),
    *(((2, 1, 3, 4), (5, 4, 2)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,))),
]


@pytest.mark.parametrize(("x", "y"), FACTORS, ids=str)
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


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "packed", "real"])
@pytest.mark.parametrize("size", [32, 27])
def test_weights_of_few_bits(bits: int, zeros: str, size: int) -> None:
    """Compare with a computation by hand, integer by integer, and with the decomposition."""
    random = np.random.default_rng(bits + size)
    block, rows = 8, 3
    blocks = -(-size // block)
    x = random.normal(size=(2, size)).astype(np.float32)
    weight = random.integers(0, 256, (rows, blocks, block * bits // 8)).astype(np.uint8)
    scale = random.uniform(0.5, 2, (rows, blocks)).astype(np.float32)

    def integer(packed: Array, place: int) -> int:
        byte, part = divmod(place, 8 // bits)
        whole = int(packed[byte]) >> (bits * part)
        return whole % (1 << bits)

    given = {
        "none": None,
        "packed": random.integers(0, 256, (rows, -(-blocks * bits // 8))).astype(np.uint8),
        "real": random.uniform(0, 3, (rows, blocks)).astype(np.float32),
    }[zeros]
    reals = np.zeros((rows, size))
    for row in range(rows):
        for place in range(size):
            number = place // block
            zero = 2.0 ** (bits - 1)
            if given is not None:
                packed = zeros == "packed"
                zero = integer(given[row], number) if packed else float(given[row, number])
            stored = integer(weight[row].ravel(), place)
            reals[row, place] = (stored - zero) * scale[row, number]
    expected = x @ reals.T
    b = Builder()
    operands = [
        b.input(str(i), TensorType(ElementType.of(a.dtype), a.shape))
        for i, a in enumerate(a for a in (x, weight, scale, given) if a is not None)
    ]
    if given is None:
        operands.append(None)  # type: ignore[arg-type]
    settings = {"size": size, "block_size": block, "bits": bits}
    b.output("whole", b.add(MatMulNBits, *operands, **settings))  # type: ignore[arg-type]
    (parts,) = b.operations[-1].decomposition(b)  # type: ignore[attr-defined]
    b.output("parts", parts)
    arrays = [array for array in (x, weight, scale, given) if array is not None]
    for found in ReferenceDevice().compile(b.build(), Options()).run(arrays):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"bits": 3}, "bits: 3 is not one of"),
        ({"block_size": 3}, "block_size: 3 integers do not fill bytes"),
        ({"size": 17}, "x: its last size"),
        ({"block_size": 8}, "weight: its second size"),
        ({"bits": 8}, "weight: its third size"),
    ],
)
def test_weights_of_few_bits_that_do_not_go_together(change: dict[str, int], told: str) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 32)))
    weight = b.constant(np.zeros((3, 2, 8), np.uint8))
    settings = {"size": 32, "block_size": 16, "bits": 4, **change}
    with pytest.raises(ModelError, match=f"MAT_MUL_N_BITS.{told}"):
        b.add(MatMulNBits, x, weight, np.ones((3, 2), np.float32), **settings)  # type: ignore[arg-type]
