"""LSTM on integers: states of int8 and int16, and gates of 16 bits, rescaled as LiteRT does.

Intermediate results are declared as int32, with the scale of LiteRT's 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import (
    LSTMOptions,
    UnidirectionalSequenceLSTMOptions,
)
from crosschip.importers.facts import size_of
from crosschip.importers.tflite.cells import GATES
from crosschip.importers.tflite.node import Node
from crosschip.ir import Arithmetic, Array, Builder, ElementType, Operand, Quantization, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.activation import Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Clip, Mul, Sub
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Split
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.quantization import Quantize, Reinterpret, parameters

_GATE, _UNIT = (Quantization((2.0**-bits,), arithmetic=Arithmetic.FIXED_POINT) for bits in (12, 15))
"""Of sums before an activation, from -8 to 8, and of its results, from -1 to 1."""


def convert(b: Node | Builder, operand: Operand, dtype: ElementType) -> Operand:
    """Return the same integers in another type, clamped to its range."""
    quantization = quantization_of(operand)
    return b.add(
        Quantize, operand, **parameters(quantization), dtype=dtype, quantization=quantization
    )


def quantization_of(operand: Operand) -> Quantization:
    """Return the quantization of an operand that has one."""
    assert operand.type.quantization is not None, "the operand is quantized"
    return operand.type.quantization


@dataclass(frozen=True, slots=True)
class IntegerLstmCell:
    """A cell of long short-term memory on integers, without layer normalization.

    Attributes:
        gates: the gates; without `input`, that gate is one minus the forget gate.
        weight: the weights of the input for all gates, [gates * cells, size].
        bias: the bias of all gates.
        recurrent: the weights of the hidden state for all gates, [gates * cells, outputs].
        peepholes: the weights of the cell state by gate, [cells, 1, 1, 1]; may be empty.
        product: the quantization of the output gate times the cell's activation.
        projection: the weights that project this product; `None` without projection.
        projection_bias: the bias of the projection.
        cell_clip: the bound of the cell state; 0 for none.
        projection_clip: the bound of the integers of the projection; 0 for none.
    """

    gates: Sequence[str]
    weight: Operand
    bias: Operand
    recurrent: Operand
    peepholes: Mapping[str, Operand]
    product: Quantization
    projection: Operand | None
    projection_bias: Operand | None
    cell_clip: float
    projection_clip: int

    def input_sums(self, b: Node | Builder, rows: Operand) -> Operand:
        """Return the products of input rows with the weights, plus the bias: [rows, sums]."""
        wide = convert(b, rows, ElementType.INT32)
        sums = b.add(FullyConnected, wide, self.weight, self.bias, quantization=_GATE)
        return _saturate(b, sums)

    def step(
        self, b: Node | Builder, inputs: Sequence[Operand], states: Sequence[Operand]
    ) -> list[Operand]:
        """Return the hidden and the cell state after a time step, from the sums of its input."""
        (sums,), (hidden, cell) = inputs, states
        wide = convert(b, hidden, ElementType.INT32)
        products = b.add(FullyConnected, wide, self.recurrent, quantization=_GATE)
        total = _saturate(b, b.add(Add, products, sums, quantization=_GATE))
        sizes = (size_of(self.weight, 0) // len(self.gates),) * len(self.gates)
        parts = b.add_all(Split, total, 1, sizes)
        sums_of = dict(zip(self.gates, parts, strict=True))
        forget = self._gate(b, "forget", sums_of, cell)
        one = b.constant(np.array(32767, np.int32), quantization=_UNIT)
        entrance = (
            self._gate(b, "input", sums_of, cell)
            if "input" in sums_of
            else b.add(Sub, one, forget, quantization=_UNIT)
        )
        update = b.add(Tanh, sums_of["cell"], quantization=_UNIT)
        scale = quantization_of(cell)
        old = b.add(Mul, forget, cell, quantization=scale)
        new = b.add(Mul, entrance, update, quantization=scale)
        cell = convert(b, b.add(Add, old, new, quantization=scale), ElementType.INT16)
        if self.cell_clip:
            cell = b.add(Clip, cell, -self.cell_clip, self.cell_clip, quantization=scale)
        exit_ = convert(b, self._gate(b, "output", sums_of, cell), ElementType.INT16)
        active = b.add(Tanh, convert(b, cell, ElementType.INT32), quantization=_UNIT)
        product = b.add(Mul, exit_, active, quantization=self.product)
        return [self._output(b, product, quantization_of(hidden)), cell]

    def _gate(
        self, b: Node | Builder, gate: str, sums: Mapping[str, Operand], cell: Operand
    ) -> Operand:
        total = sums[gate]
        if gate in self.peepholes:
            weight = self.peepholes[gate]
            size = size_of(weight, 0)
            pixels = b.add(Reshape, convert(b, cell, ElementType.INT32), (-1, size, 1, 1))
            product = b.add(Conv2D, pixels, weight, group=size, quantization=_GATE)
            product = b.add(Reshape, product, (-1, size))
            total = _saturate(b, b.add(Add, product, total, quantization=_GATE))
        return b.add(Sigmoid, total, quantization=_UNIT)

    def _output(self, b: Node | Builder, product: Operand, state: Quantization) -> Operand:
        """Return the hidden state from the product of the output gate and the cell."""
        product = _clip_integers(b, product, -128, 127)
        if self.projection is None:
            output = convert(b, product, ElementType.INT8)
            return b.add(Reinterpret, output, **parameters(state), quantization=state)
        wide = convert(b, product, ElementType.INT32)
        output = b.add(
            FullyConnected, wide, self.projection, self.projection_bias, quantization=state
        )
        output = convert(b, output, ElementType.INT8)
        bound = self.projection_clip
        return _clip_integers(b, output, -bound, bound) if bound else output


def _saturate(b: Node | Builder, operand: Operand) -> Operand:
    """Clamp integers to 16 bits."""
    return _clip_integers(b, operand, -(1 << 15), (1 << 15) - 1)


def _clip_integers(b: Node | Builder, operand: Operand, low: int, high: int) -> Operand:
    """Clamp the stored integers of an operand."""
    quantization = quantization_of(operand)
    scale, zero_point = quantization.scale[0], quantization.zero_point[0]
    bounds = ((bound - zero_point) * scale for bound in (low, high))
    return b.add(Clip, operand, *bounds, quantization=quantization)


def integer_lstm_cell(
    node: Node, options: LSTMOptions | UnidirectionalSequenceLSTMOptions
) -> IntegerLstmCell | None:
    """Return the cell of an operator on integers with a cell state of 16 bits.

    `None` for one on reals, with layer normalization or another cell state, or whose weights are
    computed when the model runs.
    """
    gates = [gate for number, gate in enumerate(GATES, 1) if node.optional(number) is not None]
    indices = [GATES.index(gate) for gate in gates]
    used = [start + index for start in (1, 5, 12) for index in indices]
    if not (
        node[0].type.quantization is not None
        and node[19].type.element_type is ElementType.INT16
        and len(node.intermediates) > _PRODUCT
        and not any(node.optional(index) for index in range(20, 24))
        and all(node[index].is_constant for index in used)
    ):
        return None
    hidden, cell = quantization_of(node[18]), quantization_of(node[19])
    product = node.intermediates[_PRODUCT].quantization
    assert product is not None, "LiteRT's kernel demands it"
    projection, bias = node.optional(16), node.optional(17)
    if projection is not None:
        # LiteRT multiplies as if the sign of this zero point were the other.
        product = replace(product, zero_point=(-product.zero_point[0],))
    weight = _stacked(node, [1 + index for index in indices])
    recurrent = _stacked(node, [5 + index for index in indices])
    biases = np.concatenate([node.value(12 + index, "a bias") for index in indices])
    return IntegerLstmCell(
        gates=gates,
        weight=weight,
        bias=_bias(node, biases, quantization_of(node[0]), weight),
        recurrent=recurrent,
        peepholes={
            gate: node.add(Reshape, node[index], (-1, 1, 1, 1))
            for gate, index in _PEEPHOLES.items()
            if gate in gates and node.optional(index) is not None
        },
        product=product,
        projection=projection,
        projection_bias=(
            None
            if bias is None or projection is None
            else _bias(node, node.value(17, "a bias"), product, projection)
        ),
        cell_clip=_steps(options.cell_clip, cell, 32767) * cell.scale[0],
        projection_clip=_steps(options.proj_clip, hidden, 127),
    )


_PRODUCT = 4
"""The index of the intermediate tensor for the output gate times the cell's activation."""

_PEEPHOLES = {"input": 9, "forget": 10, "output": 11}


def _stacked(node: Node, indices: Sequence[int]) -> Operand:
    """Return the weights of gates, joined, with a scale for each row."""
    weights = [node.value(index, "weights") for index in indices]
    scales = (
        scale
        for index, array in zip(indices, weights, strict=True)
        for scale in quantization_of(node[index]).scale * len(array)
    )
    quantization = Quantization(tuple(scales), axis=0, arithmetic=Arithmetic.FIXED_POINT)
    return constant(np.concatenate(weights), next(node.names), quantization)


def _bias(node: Node, integers: Array, input: Quantization, weight: Operand) -> Operand:
    """Return a bias that is added to sums of products."""
    scales = np.float32(input.scale[0]) * np.array(quantization_of(weight).scale, np.float32)
    quantization = Quantization(tuple(scales.tolist()), axis=quantization_of(weight).axis)
    return constant(integers.astype(np.int32), next(node.names), quantization)


def _steps(bound: float, quantization: Quantization, greatest: int) -> int:
    """Return a bound of reals in integers, truncated; 0 for none."""
    return int(min(float(np.float32(bound) / np.float32(quantization.scale[0])), greatest))
