"""Cells of recurrent networks as OpenVINO nodes, with as few matrix products as possible.

Gates with the same factor share a product. Where weights are int8 and the other factor is quantized
to uint8, OpenVINO multiplies bytes, if the processor accumulates such products exactly.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.quantization import in_bytes
from crosschip.devices.openvino.converters.table import EXACT
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.devices.openvino.precision import as_bytes, as_weights, multiplies_bytes
from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass
from crosschip.ops.numerics.cells import CellFunction, Gate
from crosschip.ops.standard.recurrent import GRU, DynamicQuantizeLSTM, Recurrent

_BYTE = np.iinfo(np.uint8)
_WEIGHT = np.iinfo(np.int8)


class Term:
    """An OpenVINO node with the arithmetic that cell formulas use."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __add__(self, other: Term | float) -> Term:
        return Term(ops.add(self.node, _plain(other)))

    def __mul__(self, other: Term | float) -> Term:
        return Term(ops.multiply(self.node, _plain(other)))

    def __rsub__(self, other: float) -> Term:
        return Term(ops.subtract(_plain(other), self.node))


@dataclass(frozen=True)
class Rounded:
    """Float values quantized to uint8; all attributes are float32 nodes.

    Attributes:
        bytes: the quantized values.
        scale: the quantization scale.
        zero_point: the byte that represents 0.
    """

    bytes: Node
    scale: Node
    zero_point: Node

    def reals(self) -> Node:
        """Return the dequantized values."""
        return ops.multiply(ops.subtract(self.bytes, self.zero_point), self.scale)


Factor: TypeAlias = Value | Rounded
"""The other factor of a product with weights."""


@dataclass(frozen=True)
class Weights:
    """Weights of several gates in one direction: one row per unit of a gate.

    Attributes:
        numbers: floats; or integers, if there is a scale.
        scale: a scalar, or one scale per row.
    """

    numbers: Array
    scale: Array | None = None

    @classmethod
    def of(cls, op: Recurrent, slot: str, index: int) -> Weights:
        """Return the weights of all gates in one direction, with zero points subtracted."""
        numbers, scale, zero_point = (
            None if value is None else value[index]
            for value in (elements(op, f"{slot}{part}") for part in ("", "_scale", "_zero_point"))
        )
        assert numbers is not None, "the slot is filled"
        if scale is None:
            return cls(numbers)
        wide = numbers.astype(np.int16)
        return cls(wide if zero_point is None else wide - zero_point.reshape(-1, 1), scale)

    def rows(self, start: int, end: int) -> Weights:
        """Return the weights of rows `start` to `end`."""
        scale = self.scale
        if scale is not None and scale.ndim:
            scale = scale[start:end]
        return Weights(self.numbers[start:end], scale)

    def times(self, g: Graph, factor: Factor) -> Node:
        """Return the matrix product `factor @ weights.T`."""
        if isinstance(factor, Rounded):
            if self.scale is not None and self._are_bytes():
                return self._times_bytes(g, factor, self.scale)
            factor = factor.reals()
        reals = self.numbers.astype(np.float32)
        if self.scale is not None:
            reals *= self.scale.reshape(-1, 1)
        return ops.matmul(factor, g.constant(reals), False, True)

    def _times_bytes(self, g: Graph, factor: Rounded, scale: Array) -> Node:
        """Return the product of bytes less the share of the zero point, which is computed."""
        bytes_ = as_bytes(g, factor.bytes, np.dtype(np.uint8))
        sums = ops.matmul(bytes_, as_weights(g, self.numbers), False, True)
        surplus = ops.multiply(factor.zero_point, _numbers(g, self.numbers.sum(1, np.int64)))
        return ops.multiply(
            ops.subtract(sums, surplus), ops.multiply(factor.scale, _numbers(g, scale))
        )

    def _are_bytes(self) -> bool:
        """Return whether all weights are int8 and float32 holds the sums of products exactly."""
        low, high = self.numbers.min(), self.numbers.max()
        greatest = np.abs(self.numbers).sum(1, np.int64).max() * _BYTE.max
        fits = _WEIGHT.min <= low and high <= _WEIGHT.max and greatest <= 2**EXACT
        return bool(fits) and multiplies_bytes()


class Cell:
    """The operands that a cell's formula reads, for one direction.

    Args:
        g: the graph.
        op: the recurrent operation.
        index: the index of the direction.

    Attributes:
        functions: the activation functions.
        peephole: the weights of the cell state for three gates; empty without peepholes.
    """

    def __init__(self, g: Graph, op: Recurrent, index: int) -> None:
        self._g = g
        self._op = op
        self._weights = Weights.of(op, "recurrence_weight", index)
        self._size = len(self._weights.numbers) // op.gates
        self._products: dict[tuple[int, object], Sequence[Term]] = {}
        bias = elements(op, "bias")
        self._bias = None if bias is None else np.split(bias[index], 2)
        self._inputs = Weights.of(op, "weight", index)
        self.functions = op.functions_of(self, index)
        peephole = elements(op, "peephole")
        parts = [] if peephole is None else np.split(peephole[index], 3)
        self.peephole = [Term(g.constant(part)) for part in parts]

    def input(self, factor: Factor) -> Node:
        """Return the product of the input and the weights of all gates, plus `Wb`."""
        product = self._inputs.times(self._g, factor)
        if self._bias is None:
            return product
        return ops.add(product, _numbers(self._g, self._bias[0]))

    def of_gates(self, value: Node, count: int) -> list[Term]:
        """Split a value into its gates."""
        if count == 1:
            return [Term(value)]
        parts = ops.split(value, self._g.scalar(2), count)
        return [Term(part) for part in parts.outputs()]

    def recurrent(self, gate: int, hidden: Term | Rounded) -> Term:
        """Return the product of the hidden state and a gate's recurrence weights, plus `Rb`."""
        first, end = next(each for each in _groups(self._op) if gate < each[1])
        parts = self._products.get((first, hidden))
        if parts is None:
            factor = hidden if isinstance(hidden, Rounded) else hidden.node
            rows = (first * self._size, end * self._size)
            product = self._weights.rows(*rows).times(self._g, factor)
            if self._bias is not None:
                product = ops.add(product, _numbers(self._g, self._bias[1][slice(*rows)]))
            parts = self._products[first, hidden] = self.of_gates(product, end - first)
        return parts[gate - first]

    def round_to_bytes(self, hidden: Term) -> Rounded:
        """Quantize a hidden state to uint8 as DYNAMIC_QUANTIZE does."""
        return Rounded(*in_bytes(self._g, hidden.node))

    def gate(self, function: CellFunction, alpha: float, beta: float, clip: float) -> Gate:
        """Return an activation function whose argument is clipped to `[-clip, clip]`."""

        def call(x: Term) -> Term:
            node = x.node if np.isinf(clip) else ops.clamp(x.node, -clip, clip)
            return Term(_FORMULAS[function](node, *(_plain(each) for each in (alpha, beta))))

        return call


def input_factor(g: Graph, op: Recurrent) -> Factor:
    """Return the input of a recurrent operation in the form that is multiplied by the weights."""
    value = g[op.input]
    return Rounded(*in_bytes(g, value)) if isinstance(op, DynamicQuantizeLSTM) else value


def elements(op: Recurrent, slot: str) -> Array | None:
    """Return the constant of a slot; `None` if the slot is empty or does not exist."""
    return next((operand.value for declared, operand in op.filled() if declared.name == slot), None)


def _groups(op: Recurrent) -> Sequence[tuple[int, int]]:
    """Return ranges of gates that share a factor, each as (first, end)."""
    separate = isinstance(op, GRU) and not op.linear_before_reset
    return ((0, 2), (2, 3)) if separate else ((0, op.gates),)


def _numbers(g: Graph, numbers: Array) -> Node:
    return g.constant(numbers.astype(np.float32))


def _plain(value: Term | float) -> Node:
    return value.node if isinstance(value, Term) else ops.constant(np.array(value, np.float32))


_Formula = Callable[[Node, Node, Node], Node]
_FORMULAS: dict[CellFunction, _Formula] = {
    CellFunction.SIGMOID: lambda x, alpha, beta: ops.sigmoid(x),
    CellFunction.TANH: lambda x, alpha, beta: ops.tanh(x),
    CellFunction.RELU: lambda x, alpha, beta: ops.relu(x),
    CellFunction.AFFINE: lambda x, alpha, beta: ops.add(ops.multiply(alpha, x), beta),
    CellFunction.LEAKY_RELU: lambda x, alpha, beta: _below(x, ops.multiply(alpha, x)),
    CellFunction.THRESHOLDED_RELU: lambda x, alpha, beta: ops.select(
        ops.greater(x, alpha), x, _plain(0)
    ),
    CellFunction.SCALED_TANH: lambda x, alpha, beta: ops.multiply(
        alpha, ops.tanh(ops.multiply(beta, x))
    ),
    CellFunction.HARD_SIGMOID: lambda x, alpha, beta: ops.clamp(
        ops.add(ops.multiply(alpha, x), beta), 0, 1
    ),
    CellFunction.ELU: lambda x, alpha, beta: _below(x, ops.multiply(alpha, ops.elu(x, 1.0))),
    CellFunction.SOFTSIGN: lambda x, alpha, beta: ops.softsign(x),
    CellFunction.SOFTPLUS: lambda x, alpha, beta: ops.softplus(x),
}


def _below(x: Node, value: Node) -> Node:
    """Return `x`, or `value` where `x` is negative."""
    return ops.select(ops.less(x, _plain(0)), value, x)
