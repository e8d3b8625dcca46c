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
from crosschip.ops.standard.normalization import LayerNormalization
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
class GateSums:
    """The weighted sums of gates with one scale: all gates, or one before layer normalization.

    Attributes:
        gates: the gates.
        weight: the weights of the input, [gates * cells, size].
        bias: the bias; `None` before layer normalization, which adds it.
        recurrent: the weights of the hidden state, [gates * cells, outputs].
        quantization: that of the sums.
    """

    gates: Sequence[str]
    weight: Operand
    bias: Operand | None
    recurrent: Operand
    quantization: Quantization

    def of_inputs(self, b: Node | Builder, rows: Operand) -> Operand:
        """Return the products of input rows in int32, plus the bias: [rows, gates * cells]."""
        sums = b.add(FullyConnected, rows, self.weight, self.bias, quantization=self.quantization)
        return _saturate(b, sums)

    def by_gate(self, b: Node | Builder, sums: Operand, hidden: Operand) -> dict[str, Operand]:
        """Add the products of the hidden state in int32 to the sums of an input."""
        products = b.add(FullyConnected, hidden, self.recurrent, quantization=self.quantization)
        total = _saturate(b, b.add(Add, products, sums, quantization=self.quantization))
        sizes = (size_of(self.weight, 0) // len(self.gates),) * len(self.gates)
        return dict(zip(self.gates, b.add_all(Split, total, 1, sizes), strict=True))


@dataclass(frozen=True, slots=True)
class IntegerLstmCell:
    """A cell of long short-term memory on integers.

    Attributes:
        sums: the weighted sums of all gates; without `input`, that gate is one minus the forget
            gate.
        peepholes: the weights of the cell state by gate, [cells, 1, 1, 1]; may be empty.
        normalization: the coefficients of layer normalization and the bias that follows it by
            gate, [cells] each; may be empty.
        product: the quantization of the output gate times the cell's activation.
        projection: the weights that project this product; `None` without projection.
        projection_bias: the bias of the projection.
        cell_clip: the bound of the cell state; 0 for none.
        projection_clip: the bound of the integers of the projection; 0 for none.
    """

    sums: Sequence[GateSums]
    peepholes: Mapping[str, Operand]
    normalization: Mapping[str, tuple[Operand, Operand]]
    product: Quantization
    projection: Operand | None
    projection_bias: Operand | None
    cell_clip: float
    projection_clip: int

    def input_sums(self, b: Node | Builder, rows: Operand) -> list[Operand]:
        """Return the weighted sums of input rows, which `step` takes."""
        wide = convert(b, rows, ElementType.INT32)
        return [sums.of_inputs(b, wide) for sums in self.sums]

    def step(
        self, b: Node | Builder, inputs: Sequence[Operand], states: Sequence[Operand]
    ) -> list[Operand]:
        """Return the hidden and the cell state after a time step, from the sums of its input."""
        hidden, cell = states
        wide = convert(b, hidden, ElementType.INT32)
        sums_of: dict[str, Operand] = {}
        for sums, part in zip(self.sums, inputs, strict=True):
            sums_of |= sums.by_gate(b, part, wide)
        forget = self._gate(b, "forget", sums_of, cell)
        one = b.constant(np.array(32767, np.int32), quantization=_UNIT)
        entrance = (
            self._gate(b, "input", sums_of, cell)
            if "input" in sums_of
            else b.add(Sub, one, forget, quantization=_UNIT)
        )
        update = b.add(Tanh, self._normalized(b, "cell", sums_of["cell"]), quantization=_UNIT)
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
            weight, quantization = self.peepholes[gate], quantization_of(total)
            size = size_of(weight, 0)
            pixels = b.add(Reshape, convert(b, cell, ElementType.INT32), (-1, size, 1, 1))
            product = b.add(Conv2D, pixels, weight, group=size, quantization=quantization)
            product = b.add(Reshape, product, (-1, size))
            total = _saturate(b, b.add(Add, product, total, quantization=quantization))
        return b.add(Sigmoid, self._normalized(b, gate, total), quantization=_UNIT)

    def _normalized(self, b: Node | Builder, gate: str, sums: Operand) -> Operand:
        """Apply layer normalization to the sums of a gate, if the cell has it."""
        if gate not in self.normalization:
            return sums
        scale, bias = self.normalization[gate]
        normal = b.add(LayerNormalization, sums, scale, bias, epsilon=0.0, quantization=_GATE)
        return _saturate(b, normal)

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

    `None` for one on reals, or with another cell state, or whose gates have 8 bits (then it has 12
    intermediate tensors), or whose weights are computed when the model runs.
    """
    gates = [gate for number, gate in enumerate(GATES, 1) if node.optional(number) is not None]
    indices = [GATES.index(gate) for gate in gates]
    has_normalization = node.optional(_NORMALIZATION + 1) is not None
    starts = (1, 5, 12, _NORMALIZATION) if has_normalization else (1, 5, 12)
    used = [start + index for start in starts for index in indices]
    if not (
        node[0].type.quantization is not None
        and node[19].type.element_type is ElementType.INT16
        and len(node.intermediates) == _PRODUCT + 1
        and all(node[index].is_constant for index in used)
    ):
        return None
    hidden, cell = quantization_of(node[18]), quantization_of(node[19])
    product = _intermediate(node, _PRODUCT)
    projection, bias = node.optional(16), node.optional(17)
    if projection is not None:
        # LiteRT multiplies as if the sign of this zero point were the other.
        product = replace(product, zero_point=(-product.zero_point[0],))
    return IntegerLstmCell(
        sums=(
            [_normalized_sums(node, gate) for gate in gates]
            if has_normalization
            else [_sums(node, gates)]
        ),
        peepholes={
            gate: node.add(Reshape, node[index], (-1, 1, 1, 1))
            for gate, index in _PEEPHOLES.items()
            if gate in gates and node.optional(index) is not None
        },
        normalization=(
            {gate: _normalization(node, gate) for gate in gates} if has_normalization else {}
        ),
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


def _sums(node: Node, gates: Sequence[str]) -> GateSums:
    """Return the sums of all gates, without layer normalization."""
    indices = [GATES.index(gate) for gate in gates]
    weight = _stacked(node, [1 + index for index in indices])
    biases = np.concatenate([node.value(12 + index, "a bias") for index in indices])
    return GateSums(
        gates,
        weight,
        _bias(node, biases, quantization_of(node[0]), weight),
        _stacked(node, [5 + index for index in indices]),
        _GATE,
    )


def _normalized_sums(node: Node, gate: str) -> GateSums:
    """Return the sums of a gate before layer normalization."""
    index = GATES.index(gate)
    scale = _intermediate(node, index).scale
    weight, recurrent = _stacked(node, [1 + index]), _stacked(node, [5 + index])
    quantization = Quantization(scale, arithmetic=Arithmetic.FIXED_POINT)
    return GateSums([gate], weight, None, recurrent, quantization)


def _normalization(node: Node, gate: str) -> tuple[Operand, Operand]:
    """Return the coefficients of layer normalization and the bias, in a 1024th of their scale."""
    index = GATES.index(gate)
    (scale,) = quantization_of(node[_NORMALIZATION + index]).scale
    integers = (node.value(start + index, "a normalization") for start in (_NORMALIZATION, 12))
    coefficients, bias = (
        constant(array.astype(np.int32), next(node.names), Quantization((unit,)))
        for array, unit in zip(integers, (scale, scale / 1024), strict=True)
    )
    return coefficients, bias


def _intermediate(node: Node, index: int) -> Quantization:
    quantization = node.intermediates[index].quantization
    assert quantization is not None, "LiteRT's kernel demands it"
    return quantization


_PRODUCT = 4
"""The index of the intermediate tensor for the output gate times the cell's activation."""

_NORMALIZATION = 20
"""The index of the first coefficients of layer normalization among the inputs."""

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
