"""Arithmetic cost of operations, counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.modelling import float32, model_of

from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Array, Builder, ElementType, Operand, Operation, TensorType
from crosschip.ir.dimension import symbol
from crosschip.ops import Operator, operator_named
from crosschip.ops.definition.examples import examples_of
from crosschip.ops.definition.examples import model_of as example_model
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.integers import Conv2DInteger, MatMulInteger
from crosschip.ops.standard.matrix import FullyConnected, MatMul, MatMulNBits
from crosschip.ops.standard.quantization import DynamicQuantize
from crosschip.ops.standard.recurrent import GRU
from crosschip.ops.standard.unary import Exp

IMAGE, ROWS, SEQUENCE = (1, 3, 8, 8), (2, 4), (5, 2, 3)


def reals(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def packed(*shape: int) -> Array:
    return np.ones(shape, np.uint8)


CASES: dict[str, tuple[tuple[int, ...], type[Operator], list[Array], dict[str, Any], int]] = {
    "CONV_2D": (IMAGE, Conv2D, [reals(6, 3, 3, 3)], {}, 6 * 36 * 27),
    "CONV_2D_TRANSPOSE": (IMAGE, Conv2DTranspose, [reals(3, 6, 3, 3)], {}, 192 * 54),
    "CONV_2D_INTEGER": (IMAGE, Conv2DInteger, [packed(6, 3, 3, 3)], {}, 6 * 36 * 27),
    "FULLY_CONNECTED": (ROWS, FullyConnected, [reals(5, 4)], {}, 2 * 4 * 5),
    "MAT_MUL": (ROWS, MatMul, [reals(4, 5)], {}, 2 * 4 * 5),
    "MAT_MUL_INTEGER": (ROWS, MatMulInteger, [packed(4, 5)], {}, 2 * 4 * 5),
    "MAT_MUL_N_BITS": (
        (2, 32),
        MatMulNBits,
        [packed(5, 2, 8), reals(5, 2)],
        {"size": 32, "block_size": 16},
        2 * 32 * 5,
    ),
    "GRU": (SEQUENCE, GRU, [reals(1, 12, 3), reals(1, 12, 4)], {}, 5 * 2 * 12 * (3 + 4)),
    "EXP": (ROWS, Exp, [], {}, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_multiplications_are_counted(name: str) -> None:
    shape, operator, constants, parameters, expected = CASES[name]
    bytes_ = operator in (Conv2DInteger, MatMulInteger)
    make = _made(operator, constants, parameters, in_bytes=bytes_)
    operation = model_of(make, float32(*shape)).operations[-1]
    assert operation.type == name
    assert multiply_adds(operation) == expected


@pytest.mark.parametrize("rows", ["n", 4])
def test_open_sizes_are_no_factors(rows: str | int) -> None:
    x = TensorType(ElementType.FLOAT32, (symbol(rows) if isinstance(rows, str) else rows, 3))
    product = model_of(
        lambda b, x: b.add(MatMul, x, b.constant(reals(4, 5)), transpose_x=True), x
    ).operations[-1]
    assert multiply_adds(product) == (3 * 5 if rows == "n" else 3 * 4 * 5)
    assert product.multiply_adds() == (symbol("n") * 15 if rows == "n" else 3 * 4 * 5)


BY_DECOMPOSITION = (
    *("CONV_1D", "CONV_2D", "CONV_3D", "CONV_1D_TRANSPOSE"),
    *("CONV_1D_INTEGER", "CONV_2D_INTEGER", "CONV_3D_INTEGER", "DEFORMABLE_CONV_2D"),
    *("FULLY_CONNECTED", "MAT_MUL_INTEGER", "MAT_MUL_N_BITS", "ATTENTION"),
)
"""Operators that decompose into the same sums. Recurrent networks leave out their first product
with a state of zeros, and pooling and resizing become convolutions, whose products are not theirs.
"""


@pytest.mark.parametrize("name", BY_DECOMPOSITION)
def test_operators_count_as_their_decompositions_do(name: str) -> None:
    operator, compared = operator_named(name), 0
    for arguments in examples_of(operator):
        (*_, operation) = example_model(operator, arguments).operations
        count = decomposed_count(operation)
        if count is not None:
            assert multiply_adds(operation) == count
            compared += 1
    assert compared


def decomposed_count(operation: Operation) -> int | None:
    """The multiply-adds of the operator's decomposition, as far as it goes; none without one."""
    builder = Builder(prefix="parts.")
    assert isinstance(operation, Operator)
    if operation.decomposition(builder) is None:
        return None
    counts = [(multiply_adds(part), decomposed_count(part)) for part in builder.operations]
    return sum(own if parts is None else parts for own, parts in counts)


def _made(
    operator: type[Operator],
    constants: list[Array],
    parameters: dict[str, Any],
    *,
    in_bytes: bool,
) -> Callable[[Builder, Operand], Operand]:
    def make(b: Builder, x: Operand) -> Operand:
        given = b.add_all(DynamicQuantize, x)[0] if in_bytes else x
        return b.add_all(operator, given, *map(b.constant, constants), **parameters)[0]

    return make
