"""Cells of recurrent networks, written once for arrays and for operands.

A cell's formula uses only `+`, `-`, `*`, `@` and the functions of an `Algebra`. So the same formula
is the reference (on NumPy arrays) and the decomposition (on operands, where each step adds an
operation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.standard.activation import (
    Elu,
    HardSigmoid,
    LeakyRelu,
    Relu,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
    ThresholdedRelu,
)
from crosschip.ops.standard.arithmetic import Add, Clip, Mul, Sub
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.quantization import DynamicQuantize


class CellFunction(IntEnum):
    """Activation function of a recurrent cell, with parameters alpha and beta."""

    SIGMOID = 0
    TANH = 1
    RELU = 2
    AFFINE = 3
    LEAKY_RELU = 4
    THRESHOLDED_RELU = 5
    SCALED_TANH = 6
    HARD_SIGMOID = 7
    ELU = 8
    SOFTSIGN = 9
    SOFTPLUS = 10

    @property
    def alpha(self) -> float:
        """Return the default of alpha."""
        return _ALPHA.get(self, 1.0)

    @property
    def beta(self) -> float:
        """Return the default of beta."""
        return _BETA.get(self, 0.0)


_ALPHA = {CellFunction.LEAKY_RELU: 0.01, CellFunction.HARD_SIGMOID: 0.2}
_BETA = {CellFunction.SCALED_TANH: 1.0, CellFunction.HARD_SIGMOID: 0.5}

Gate = Callable[[Any], Any]
"""An activation function with its parameters and with clipping of its argument."""


class GateAlgebra(Protocol):
    """Activation functions of a cell."""

    def gate(self, function: CellFunction, alpha: float, beta: float, clip: float) -> Gate:
        """Return an activation function whose argument is clipped to `[-clip, clip]`."""


class CellAlgebra(GateAlgebra, Protocol):
    """Functions of a cell's formula other than arithmetic; values are arrays or `Term`s."""

    def pick(self, value: Any, index: int) -> Any:
        """Return `value[index]`."""

    def split(self, value: Any, count: int) -> list[Any]:
        """Split a value into equal parts along its first axis."""

    def transpose(self, value: Any) -> Any:
        """Return the transpose of a matrix."""

    def before(self, step: int, lengths: Any, value: Any, other: Any) -> Any:
        """Return `value` for sequences longer than `step`, `other` for the rest."""

    def round_to_bytes(self, value: Any) -> Any:
        """Return a value after quantization by DYNAMIC_QUANTIZE and dequantization."""


class Algebra(CellAlgebra, Protocol):
    """Functions that a whole recurrent operation needs, in addition to those of one cell."""

    def stack(self, values: Sequence[Any], axis: int) -> Any:
        """Stack values along a new axis."""

    def reals(self, value: Any, scale: Any, zero_point: Any | None) -> Any:
        """Dequantize a value, with scales and zero points along its first axes."""


class Arrays:
    """Algebra of NumPy arrays."""

    def pick(self, value: Array, index: int) -> Array:
        return np.asarray(value[index])

    def split(self, value: Array, count: int) -> list[Array]:
        return np.split(value, count)

    def transpose(self, value: Array) -> Array:
        return value.T

    def stack(self, values: Sequence[Array], axis: int) -> Array:
        return np.stack(values, axis)

    def before(self, step: int, lengths: Array, value: Array, other: Array) -> Array:
        return np.where(lengths[:, None] > step, value, other)

    def gate(self, function: CellFunction, alpha: float, beta: float, clip: float) -> Gate:
        return lambda x: _FORMULAS[function](np.clip(x, -clip, clip), alpha, beta)

    def round_to_bytes(self, value: Array) -> Array:
        if not value.size:
            return value
        low, high = np.minimum(value.min(), 0), np.maximum(value.max(), 0)
        scale = (high - low) / np.float32(255) or np.float32(1)
        zero_point = np.rint(-low / scale)
        return (np.clip(np.rint(value / scale) + zero_point, 0, 255) - zero_point) * scale

    def reals(self, value: Array, scale: Array, zero_point: Array | None) -> Array:
        steps = value.astype(np.float32)
        if zero_point is not None:
            steps -= _align(zero_point, value.ndim)
        return steps * _align(scale, value.ndim)


def _align(numbers: Array, rank: int) -> Array:
    return numbers.reshape(numbers.shape + (1,) * (rank - numbers.ndim))


_FORMULAS: dict[CellFunction, Callable[[Array, float, float], Array]] = {
    CellFunction.SIGMOID: lambda x, alpha, beta: 1 / (1 + np.exp(-x)),
    CellFunction.TANH: lambda x, alpha, beta: np.tanh(x),
    CellFunction.RELU: lambda x, alpha, beta: np.maximum(x, 0),
    CellFunction.AFFINE: lambda x, alpha, beta: alpha * x + beta,
    CellFunction.LEAKY_RELU: lambda x, alpha, beta: np.where(x >= 0, x, alpha * x),
    CellFunction.THRESHOLDED_RELU: lambda x, alpha, beta: np.where(x > alpha, x, 0),
    CellFunction.SCALED_TANH: lambda x, alpha, beta: alpha * np.tanh(beta * x),
    CellFunction.HARD_SIGMOID: lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    CellFunction.ELU: lambda x, alpha, beta: np.where(x >= 0, x, alpha * np.expm1(x)),
    CellFunction.SOFTSIGN: lambda x, alpha, beta: x / (1 + np.abs(x)),
    CellFunction.SOFTPLUS: lambda x, alpha, beta: np.logaddexp(x, 0),
}


class Term:
    """Operand whose arithmetic operators add operations to a builder."""

    def __init__(self, b: Builder, operand: Operand) -> None:
        self.b = b
        self.operand = operand

    def __add__(self, other: Term | float) -> Term:
        return Term(self.b, self.b.add(Add, self.operand, _operand_or_number(other)))

    def __mul__(self, other: Term | float) -> Term:
        return Term(self.b, self.b.add(Mul, self.operand, _operand_or_number(other)))

    def __matmul__(self, other: Term) -> Term:
        return Term(self.b, self.b.add(MatMul, self.operand, other.operand))

    def __rsub__(self, other: float) -> Term:
        dtype = self.operand.type.element_type.dtype
        return Term(self.b, self.b.add(Sub, self.b.constant(np.array(other, dtype)), self.operand))


class Terms:
    """Algebra of operands, which adds operations to a builder.

    Args:
        b: the builder.
        hidden: the hidden size, which is the size of each gate's part of the weights.
    """

    def __init__(self, b: Builder, hidden: int) -> None:
        self._b = b
        self._hidden = hidden

    def pick(self, value: Term, index: int) -> Term:
        return self._apply(Gather, value, self._b.constant(np.array(index, np.int32)), 0)

    def split(self, value: Term, count: int) -> list[Term]:
        parts = self._b.add_all(Split, value.operand, 0, (self._hidden,) * count)
        return [Term(self._b, part) for part in parts]

    def transpose(self, value: Term) -> Term:
        return self._apply(Transpose, value, (1, 0))

    def stack(self, values: Sequence[Term], axis: int) -> Term:
        parts = [self._b.add(Unsqueeze, value.operand, (axis,)) for value in values]
        return Term(self._b, self._b.add(Concat, parts, axis=axis))

    def before(self, step: int, lengths: Term, value: Term, other: Term) -> Term:
        column = self._b.add(Reshape, lengths.operand, (-1, 1))
        limit = self._b.constant(np.array(step, column.type.element_type.dtype))
        longer = self._b.add(Less, limit, column)
        return Term(self._b, self._b.add(Where, longer, value.operand, other.operand))

    def gate(self, function: CellFunction, alpha: float, beta: float, clip: float) -> Gate:
        def call(x: Term) -> Term:
            clipped = x if np.isinf(clip) else self._apply(Clip, x, -clip, clip)
            if function is CellFunction.AFFINE:
                return clipped * alpha + beta
            if function is CellFunction.SCALED_TANH:
                return self._apply(Tanh, clipped * beta) * alpha
            operator, parameters = _OPERATORS[function]
            return self._apply(operator, clipped, *(alpha, beta)[:parameters])

        return call

    def round_to_bytes(self, value: Term) -> Term:
        steps, scale, zero_point = self._b.add_all(DynamicQuantize, value.operand)
        return self.reals(Term(self._b, steps), Term(self._b, scale), Term(self._b, zero_point))

    def reals(self, value: Term, scale: Term, zero_point: Term | None) -> Term:
        rank = len(shape_of(value.operand))
        steps = self._apply(Cast, value, ElementType.FLOAT32)
        if zero_point is not None:
            shift = self._apply(Cast, zero_point, ElementType.FLOAT32)
            steps = Term(self._b, self._b.add(Sub, steps.operand, self._align(shift, rank)))
        return Term(self._b, self._b.add(Mul, steps.operand, self._align(scale, rank)))

    def _align(self, numbers: Term, rank: int) -> Operand:
        rank_before = len(shape_of(numbers.operand))
        if rank_before in (0, rank):
            return numbers.operand
        return self._b.add(Unsqueeze, numbers.operand, tuple(range(rank_before, rank)))

    def _apply(self, operator: type[Operator], value: Term, *parameters: object) -> Term:
        return Term(self._b, self._b.add(operator, value.operand, *parameters))


_OPERATORS: dict[CellFunction, tuple[type[Operator], int]] = {
    CellFunction.SIGMOID: (Sigmoid, 0),
    CellFunction.TANH: (Tanh, 0),
    CellFunction.RELU: (Relu, 0),
    CellFunction.LEAKY_RELU: (LeakyRelu, 1),
    CellFunction.THRESHOLDED_RELU: (ThresholdedRelu, 1),
    CellFunction.HARD_SIGMOID: (HardSigmoid, 2),
    CellFunction.ELU: (Elu, 1),
    CellFunction.SOFTSIGN: (Softsign, 0),
    CellFunction.SOFTPLUS: (Softplus, 0),
}
"""The operator of each function, and how many of alpha and beta it takes."""


def _operand_or_number(value: Term | float) -> Operand | float:
    return value.operand if isinstance(value, Term) else value


class Cell(Protocol):
    """Inputs of a cell's formula other than the states."""

    @property
    def functions(self) -> Sequence[Gate]:
        """Return the activation functions."""

    @property
    def peephole(self) -> Sequence[Any]:
        """Return the peephole weights of three gates; empty if there are none."""

    def recurrent(self, gate: int, hidden: Any) -> Any:
        """Return the product of a gate's weights and the hidden state, plus `Rb`."""

    def round_to_bytes(self, hidden: Any) -> Any:
        """Return the hidden state after quantization by DYNAMIC_QUANTIZE and dequantization."""


class ScanDirection:
    """Weights and functions of a scan over the time steps in one direction.

    Attributes:
        inputs: for each gate, the product of its weights and the whole input, plus `Wb`.
        functions: the activation functions.
        peephole: the peephole weights of three gates; empty if there are none.
    """

    def __init__(
        self,
        algebra: CellAlgebra,
        tensors: Mapping[str, Any],
        index: int,
        gates: int,
        functions: Sequence[Gate],
    ) -> None:
        self._tensors = tensors
        self._algebra = algebra
        self._index = index
        self._recurrence = self._weights("recurrence_weight", gates)
        bias = self._parts("bias", 2 * gates) or [None] * (2 * gates)
        self._bias = bias[gates:]
        self.inputs = [
            _add_optional(tensors["input"] @ weight, addend)
            for weight, addend in zip(self._weights("weight", gates), bias, strict=False)
        ]
        self.functions = functions
        self.peephole = self._parts("peephole", 3)

    def recurrent(self, gate: int, hidden: Any) -> Any:
        """Return the product of a gate's weights and the hidden state, plus `Rb`."""
        return _add_optional(hidden @ self._recurrence[gate], self._bias[gate])

    def round_to_bytes(self, hidden: Any) -> Any:
        """Return the hidden state after quantization by DYNAMIC_QUANTIZE and dequantization."""
        return self._algebra.round_to_bytes(hidden)

    def unless_over(self, step: int, value: Any, other: Any) -> Any:
        """Return `value` for sequences that include a step, else `other`."""
        lengths = self._tensors["sequence_lengths"]
        return value if lengths is None else self._algebra.before(step, lengths, value, other)

    def _weights(self, slot: str, count: int) -> list[Any]:
        return [self._algebra.transpose(part) for part in self._parts(slot, count)]

    def _parts(self, slot: str, count: int) -> list[Any]:
        """Return the parts of a tensor for the gates; empty if the slot is empty."""
        value = self._tensors.get(slot)
        if value is None:
            return []
        return self._algebra.split(self._algebra.pick(value, self._index), count)


def _add_optional(value: Any, addend: Any | None) -> Any:
    return value if addend is None else value + addend
