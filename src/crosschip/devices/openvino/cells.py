"""The cells of recurrent networks in OpenVINO's nodes, with as few products as there can be.

Gates that read the same share a product. Where the weights are bytes and their other factor is
rounded to bytes, OpenVINO multiplies bytes, if the processor adds up such products exactly.
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
    """A node of a graph that a cell's formula is computed on."""

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
    """Reals that are rounded to bytes; each part is in float32.

    Attributes:
        bytes: the bytes.
        scale: how much one of them stands for.
        zero_point: the byte that stands for 0.
    """

    bytes: Node
    scale: Node
    zero_point: Node

    def reals(self) -> Node:
        """What the bytes stand for."""
        return ops.multiply(ops.subtract(self.bytes, self.zero_point), self.scale)


Factor: TypeAlias = Value | Rounded
"""What weights are multiplied by."""


@dataclass(frozen=True)
class Weights:
    """The weights of some gates in one pass, a row a sum.

    Attributes:
        numbers: reals, or integers where there is a scale.
        scale: one number, or one a row.
    """

    numbers: Array
    scale: Array | None = None

    @classmethod
    def of(cls, op: Recurrent, slot: str, index: int) -> Weights:
        """The weights of all gates in a pass, less their zero points."""
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
        """Those of a range of sums."""
        scale = self.scale
        if scale is not None and scale.ndim:
            scale = scale[start:end]
        return Weights(self.numbers[start:end], scale)

    def times(self, g: Graph, factor: Factor) -> Node:
        """The product, a column a sum."""
        if isinstance(factor, Rounded):
            if self.scale is not None and self._are_bytes():
                return self._times_bytes(g, factor, self.scale)
            factor = factor.reals()
        reals = self.numbers.astype(np.float32)
        if self.scale is not None:
            reals *= self.scale.reshape(-1, 1)
        return ops.matmul(factor, g.constant(reals), False, True)

    def _times_bytes(self, g: Graph, factor: Rounded, scale: Array) -> Node:
        """What the zero point adds to each sum is subtracted: OpenVINO knows none that varies."""
        bytes_ = as_bytes(g, factor.bytes, np.dtype(np.uint8))
        sums = ops.matmul(bytes_, as_weights(g, self.numbers), False, True)
        surplus = ops.multiply(factor.zero_point, _numbers(g, self.numbers.sum(1, np.int64)))
        return ops.multiply(
            ops.subtract(sums, surplus), ops.multiply(factor.scale, _numbers(g, scale))
        )

    def _are_bytes(self) -> bool:
        """Tell whether they are bytes whose products float32 adds up without rounding."""
        low, high = self.numbers.min(), self.numbers.max()
        greatest = np.abs(self.numbers).sum(1, np.int64).max() * _BYTE.max
        fits = _WEIGHT.min <= low and high <= _WEIGHT.max and greatest <= 2**EXACT
        return bool(fits) and multiplies_bytes()


class Cell:
    """What the formula of a cell reads of one pass.

    Args:
        g: the graph.
        op: the network.
        index: which pass it is.

    Attributes:
        functions: the activation functions.
        peephole: the weights of the cell values for three gates; empty if there are none.
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
        """The weights of all gates times the input, plus `Wb`."""
        product = self._inputs.times(self._g, factor)
        if self._bias is None:
            return product
        return ops.add(product, _numbers(self._g, self._bias[0]))

    def of_gates(self, joined: Node, count: int) -> list[Term]:
        """The parts of a value for some gates."""
        if count == 1:
            return [Term(joined)]
        parts = ops.split(joined, self._g.scalar(2), count)
        return [Term(part) for part in parts.outputs()]

    def recurrent(self, gate: int, hidden: Term | Rounded) -> Term:
        """The weights of a gate times hidden values, plus `Rb`."""
        first, end = next(each for each in _groups(self._op) if gate < each[1])
        known = self._products.get((first, hidden))
        if known is None:
            factor = hidden if isinstance(hidden, Rounded) else hidden.node
            rows = (first * self._size, end * self._size)
            product = self._weights.rows(*rows).times(self._g, factor)
            if self._bias is not None:
                product = ops.add(product, _numbers(self._g, self._bias[1][slice(*rows)]))
            known = self._products[first, hidden] = self.of_gates(product, end - first)
        return known[gate - first]

    def round_to_bytes(self, hidden: Term) -> Rounded:
        """Hidden values as the bytes that DYNAMIC_QUANTIZE makes of them."""
        return Rounded(*in_bytes(self._g, hidden.node))

    def gate(self, function: CellFunction, alpha: float, beta: float, clip: float) -> Gate:
        """An activation function, with what goes into it clipped to `[-clip, clip]`."""

        def call(x: Term) -> Term:
            node = x.node if np.isinf(clip) else ops.clamp(x.node, -clip, clip)
            return Term(_FORMULAS[function](node, *(_plain(each) for each in (alpha, beta))))

        return call


def input_factor(g: Graph, op: Recurrent) -> Factor:
    """The input of a network, as its weights are multiplied by it."""
    value = g[op.input]
    return Rounded(*in_bytes(g, value)) if isinstance(op, DynamicQuantizeLSTM) else value


def elements(op: Recurrent, slot: str) -> Array | None:
    """The constant that fills a slot; `None` if it is left out, or there is none of the name."""
    return next((operand.value for own, operand in op.filled() if own.name == slot), None)


def _groups(op: Recurrent) -> Sequence[tuple[int, int]]:
    """The gates whose weights are multiplied by the same, from one to before another."""
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
    """A number, or where it is below 0 another value."""
    return ops.select(ops.less(x, _plain(0)), value, x)
