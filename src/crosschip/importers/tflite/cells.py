"""Cells of recurrent networks, as one time step in standard operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.enumerations import ActivationFunctionType
from crosschip.importers.tflite.hybrid import round_activations
from crosschip.importers.tflite.node import Node
from crosschip.ir import Builder, Operand, UnsupportedError
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.activation import Relu, Relu6, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mul, Sub
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.unary import Sqrt, Square

GATES = ("input", "forget", "cell", "output")
_VARIANCE_FLOOR = np.float32(1e-8)
"""LiteRT adds it to the variance before it divides."""


def add_activation(b: Node | Builder, operand: Operand, code: int) -> Operand:
    """Apply the activation function of a cell."""
    function = ActivationFunctionType(code)
    if function is ActivationFunctionType.RELU:
        return b.add(Relu, operand)
    if function is ActivationFunctionType.RELU6:
        return b.add(Relu6, operand)
    if function is ActivationFunctionType.RELU_N1_TO_1:
        return b.add(Clip, operand, -1.0, 1.0)
    if function is ActivationFunctionType.TANH:
        return b.add(Tanh, operand)
    if function is ActivationFunctionType.NONE:
        return operand
    raise UnsupportedError(f"the activation function {function.name} of a cell")


@dataclass(frozen=True, slots=True)
class Weight:
    """A matrix of weights, as reals.

    Attributes:
        operand: the weights [units, size], or [units] of a diagonal matrix.
        hybrid: whether the file has integers, so that activations are rounded.
    """

    operand: Operand
    hybrid: bool


def add_product(b: Node | Builder, input: Operand, weight: Weight, asymmetric: bool) -> Operand:
    """Return the product of rows with the transposed weights."""
    if len(weight.operand.type.shape or ()) == 1:
        return b.add(Mul, input, weight.operand)
    if weight.hybrid:
        input = round_activations(b, input, (1,), asymmetric)
    return b.add(MatMul, input, weight.operand, transpose_y=True)


@dataclass(frozen=True, slots=True)
class RnnCell:
    """A cell with one gate: `h = f(x @ W.T + a @ A.T + h @ R.T + bias)`.

    Attributes:
        weight: the weights of the input.
        recurrent: the weights of the hidden state.
        auxiliary: the weights of the auxiliary input, if there is one.
        bias: the bias.
        activation: the code of `f`.
        asymmetric: whether hybrid products round activations asymmetrically.
    """

    weight: Weight
    recurrent: Weight
    auxiliary: Weight | None
    bias: Operand
    activation: int
    asymmetric: bool

    def step(
        self, b: Node | Builder, inputs: Sequence[Operand], states: Sequence[Operand]
    ) -> list[Operand]:
        """Return the states after a time step; the first one is the output."""
        total = b.add(Add, add_product(b, inputs[0], self.weight, self.asymmetric), self.bias)
        if self.auxiliary is not None:
            product = add_product(b, inputs[1], self.auxiliary, self.asymmetric)
            total = b.add(Add, total, product)
        total = b.add(Add, total, add_product(b, states[0], self.recurrent, self.asymmetric))
        return [add_activation(b, total, self.activation)]


@dataclass(frozen=True, slots=True)
class LstmCell:
    """A cell of long short-term memory, with all that TensorFlow Lite may add to it.

    Attributes:
        weights: the weights of the input, by gate; without those of `input`, that gate is one minus
            the forget gate.
        recurrent: the weights of the hidden state, by gate.
        auxiliary: the weights of the auxiliary input, by gate; empty if there is none.
        peepholes: the weights of the cell state, by gate; may be empty.
        biases: the biases, by gate.
        normalization: the coefficients of layer normalization, by gate; may be empty.
        projection: the weights that project the output; `None` without projection.
        projection_bias: the bias of the projection.
        activation: the code of the function of the cell gate and of the output.
        cell_clip: the bound of the cell state; 0 for none.
        projection_clip: the bound of the projection; 0 for none.
        asymmetric: whether hybrid products round activations asymmetrically.
    """

    weights: Mapping[str, Weight]
    recurrent: Mapping[str, Weight]
    auxiliary: Mapping[str, Weight]
    peepholes: Mapping[str, Operand]
    biases: Mapping[str, Operand]
    normalization: Mapping[str, Operand]
    projection: Weight | None
    projection_bias: Operand | None
    activation: int
    cell_clip: float
    projection_clip: float
    asymmetric: bool

    @property
    def is_plain(self) -> bool:
        """Return whether the standard operator LSTM computes the same."""
        weights = [*self.weights.values(), *self.recurrent.values()]
        return (
            not self.auxiliary
            and not self.normalization
            and self.projection is None
            and not self.cell_clip
            and self.activation == ActivationFunctionType.TANH
            and not any(weight.hybrid for weight in weights)
            and all(len(weight.operand.type.shape or ()) == 2 for weight in weights)
        )

    def step(
        self, b: Node | Builder, inputs: Sequence[Operand], states: Sequence[Operand]
    ) -> list[Operand]:
        """Return the hidden and the cell state after a time step."""
        hidden, cell = states
        forget = b.add(Sigmoid, self._gate(b, "forget", inputs, hidden, cell))
        if "input" in self.weights:
            entrance = b.add(Sigmoid, self._gate(b, "input", inputs, hidden, cell))
        else:
            entrance = b.add(Sub, np.float32(1), forget)
        update = add_activation(b, self._gate(b, "cell", inputs, hidden, None), self.activation)
        cell = b.add(Add, b.add(Mul, forget, cell), b.add(Mul, entrance, update))
        if self.cell_clip > 0:
            cell = b.add(Clip, cell, -self.cell_clip, self.cell_clip)
        exit_ = b.add(Sigmoid, self._gate(b, "output", inputs, hidden, cell))
        hidden = b.add(Mul, exit_, add_activation(b, cell, self.activation))
        if self.projection is not None:
            hidden = add_product(b, hidden, self.projection, self.asymmetric)
            if self.projection_bias is not None:
                hidden = b.add(Add, hidden, self.projection_bias)
            if self.projection_clip > 0:
                hidden = b.add(Clip, hidden, -self.projection_clip, self.projection_clip)
        return [hidden, cell]

    def _gate(
        self,
        b: Node | Builder,
        gate: str,
        inputs: Sequence[Operand],
        hidden: Operand,
        cell: Operand | None,
    ) -> Operand:
        """Return a gate before its activation function."""
        total = add_product(b, inputs[0], self.weights[gate], self.asymmetric)
        if gate in self.auxiliary:
            product = add_product(b, inputs[1], self.auxiliary[gate], self.asymmetric)
            total = b.add(Add, total, product)
        total = b.add(Add, total, add_product(b, hidden, self.recurrent[gate], self.asymmetric))
        if cell is not None and gate in self.peepholes:
            total = b.add(Add, total, b.add(Mul, cell, self.peepholes[gate]))
        if gate in self.normalization:
            centred = b.add(Sub, total, b.add(ReduceMean, total, (1,)))
            variance = b.add(ReduceMean, b.add(Square, centred), (1,))
            deviation = b.add(Sqrt, b.add(Add, variance, _VARIANCE_FLOOR))
            total = b.add(Mul, b.add(Div, centred, deviation), self.normalization[gate])
        return b.add(Add, total, self.biases[gate])
