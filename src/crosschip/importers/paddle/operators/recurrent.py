"""Recurrent networks over padded tensors and over sequences with LoD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import Array, ModelError, Operand, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul, Sub
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction, Recurrent
from crosschip.ops.standard.slicing import Slice

_LSTM_GATES, _GRU_GATES = (0, 3, 1, 2), (1, 0, 2)
"""For each gate of the standard operator, its index in the weights of `rnn`."""
_SEQUENCE_LSTM_GATES = (1, 3, 2, 0)
"""The same in the weights of `lstm`: cell, input, forget, output."""
_FUNCTIONS = {
    "sigmoid": CellFunction.SIGMOID,
    "tanh": CellFunction.TANH,
    "relu": CellFunction.RELU,
    "identity": CellFunction.AFFINE,
}
_UNIT_FUNCTIONS: tuple[type[Operator] | None, ...] = (None, Sigmoid, Tanh, Relu)
_CELLS: dict[str, tuple[type[Recurrent], tuple[int, ...], dict[str, Any]]] = {
    "LSTM": (LSTM, _LSTM_GATES, {}),
    "GRU": (GRU, _GRU_GATES, {"linear_before_reset": True}),
    "RNN_TANH": (RNN, (0,), {}),
    "RNN_RELU": (RNN, (0,), {"activations": (CellFunction.RELU,)}),
}


@imports("rnn")
def rnn(op: Context) -> None:
    """Stacked layers over [T, N, …], in one or both directions.

    `WeightList` has the weights of all layers and directions, and then the biases.
    """
    mode, layers = op.text("mode"), op.integer("num_layers", 1)
    if mode not in _CELLS:
        raise ModelError(f"mode: {mode!r} is not one of {', '.join(_CELLS)}")
    operator, gates, settings = _CELLS[mode]
    directions = 2 if op.flag("is_bidirec", False) else 1
    if directions == 2:
        settings = {**settings, "direction": Direction.BIDIRECTIONAL}
        settings |= {"activations": settings.get("activations", ()) * 2}
    weights, states = op.inputs("WeightList"), op.inputs("PreState")
    count = 2 * layers * directions
    if len(weights) not in (count, 2 * count) or len(states) != len(operator.states) or layers < 1:
        raise ModelError(
            f"WeightList: {len(weights)} tensors and {len(states)} states for {layers} layers in "
            f"{directions} directions"
        )
    x, layer_states = op.input("Input"), []
    for layer in range(layers):
        first = layer * directions
        initial = [op.add(Slice, state, (0,), (first,), (first + directions,)) for state in states]
        parts = [weights[2 * (first + d) :] for d in range(directions)]
        hidden, *final_states = op.add_all(
            operator,
            x,
            _stack_directions(op, gates, [part[0] for part in parts]),
            _stack_directions(op, gates, [part[1] for part in parts]),
            _stack_biases(op, gates, parts, count if len(weights) > count else None),
            op.optional_input("SequenceLength"),
            **dict(zip(operator.states, initial, strict=True)),
            **settings,
        )
        layer_states.append(final_states)
        # [T, directions, N, H] becomes [T, N, directions * H].
        x = op.add(Reshape, op.add(Transpose, hidden, (0, 2, 1, 3)), (0, 0, -1))
    op.define(x)
    for variable, layer_parts in zip(
        op.output_names("State"), zip(*layer_states, strict=True), strict=True
    ):
        merged = op.add(Concat, parts=layer_parts, axis=0) if layers > 1 else layer_parts[0]
        op.values.define(variable, merged)


def _stack_directions(op: Context, gates: Sequence[int], weights: Sequence[Operand]) -> Operand:
    """Stack the weights of all directions, [directions, gates * H, …], with reordered gates."""
    parts = [op.add(Unsqueeze, _reorder_gates(op, gates, weight), (0,)) for weight in weights]
    return op.add(Concat, parts=parts, axis=0) if len(parts) > 1 else parts[0]


def _reorder_gates(op: Context, gates: Sequence[int], weight: Operand) -> Operand:
    rows = (weight.type.shape or (None,))[0]
    if not isinstance(rows, int) or rows % len(gates):
        raise UnsupportedError(f"{weight.name!r} is {weight.type}: its gates must be known")
    if len(gates) == 1:
        return weight
    parts = op.add_all(Split, weight, 0, (rows // len(gates),) * len(gates))
    return op.add(Concat, parts=[parts[gate] for gate in gates], axis=0)


def _stack_biases(
    op: Context, gates: Sequence[int], parts: Sequence[Sequence[Operand]], after: int | None
) -> Operand | None:
    """Stack the biases of all directions, which are `after` entries behind their weights."""
    if after is None:
        return None
    rows = [
        op.add(
            Concat,
            parts=[_reorder_gates(op, gates, bias) for bias in part[after : after + 2]],
            axis=0,
        )
        for part in parts
    ]
    rows = [op.add(Unsqueeze, row, (0,)) for row in rows]
    return op.add(Concat, parts=rows, axis=0) if len(rows) > 1 else rows[0]


@imports("lstm")
def lstm(op: Context) -> None:
    """Import an LSTM over sequences whose rows are already multiplied by the input weights."""
    for output in ("Cell", "BatchGate", "BatchCellPreAct"):
        if op.is_read(output):
            raise UnsupportedError(f"{output}: only the hidden values of each step are expressed")
    size = _hidden_size(op, 4)
    names = ("gate_activation", "candidate_activation", "cell_activation")
    functions = [
        _function(op, name, default)
        for name, default in zip(names, ("sigmoid", "tanh", "tanh"), strict=True)
    ]
    bias, peephole = op.add(Reshape, op.input("Bias"), (1, -1)), None
    if op.flag("use_peepholes", True):
        # Input, forget, output become input, output, forget.
        gate_weights = op.add(Slice, bias, (1,), (4 * size,), (7 * size,))
        peephole_rows = _gate_rows((0, 2, 1), size)
        peephole = op.add(Gather, gate_weights, op.constant(peephole_rows, "peephole.order"), 1)
        bias = op.add(Slice, bias, (1,), (0,), (4 * size,))
    order = op.constant(_gate_rows(_SEQUENCE_LSTM_GATES, size), "gates.order")
    recurrence = op.add(Gather, op.add(Transpose, op.input("Weight"), (1, 0)), order, 0)
    bias = op.add(Gather, bias, order, 1)
    _make_recurrent(
        op,
        LSTM,
        _permutation_matrix(_SEQUENCE_LSTM_GATES, size),
        op.add(Unsqueeze, recurrence, (0,)),
        op.add(Concat, parts=[bias, _zeros(op, bias, 4 * size)], axis=1),
        functions,
        initial_hidden=_state(op, "H0"),
        initial_cell=_state(op, "C0"),
        peephole=peephole,
    )


@imports("gru")
def gru(op: Context) -> None:
    """Import `gru`: a GRU over sequences whose rows are already multiplied by the input weights."""
    size = _hidden_size(op, 3)
    functions = [_function(op, "gate_activation", "sigmoid"), _function(op, "activation", "tanh")]
    gate_weights, candidate = _gru_weights(op, size)
    recurrence = op.add(Transpose, op.add(Concat, parts=[gate_weights, candidate], axis=1), (1, 0))
    bias = op.optional_input("Bias")
    permutation = np.eye(3 * size)
    if not op.flag("origin_mode", False):
        # The update gate is inverted: 1 - sigmoid(x) is sigmoid(-x).
        if functions[0] is not CellFunction.SIGMOID:
            raise UnsupportedError("gate_activation: only sigmoid is expressed without origin_mode")
        signs = np.where(np.arange(3 * size) < size, -1.0, 1.0)
        permutation *= signs[:, None]
        sign = op.constant(signs.astype(recurrence.type.element_type.dtype), "signs")
        recurrence = op.add(Mul, recurrence, op.add(Unsqueeze, sign, (1,)))
        bias = None if bias is None else op.add(Mul, op.add(Reshape, bias, (1, -1)), sign)
    if bias is not None:
        bias = op.add(Reshape, bias, (1, -1))
        bias = op.add(Concat, parts=[bias, _zeros(op, bias, 3 * size)], axis=1)
    recurrence = op.add(Unsqueeze, recurrence, (0,))
    state = _state(op, "H0")
    _make_recurrent(op, GRU, permutation, recurrence, bias, functions, initial_hidden=state)


def _make_recurrent(
    op: Context,
    operator: type[Operator],
    permutation: Array,
    recurrence: Operand,
    bias: Operand | None,
    functions: Sequence[CellFunction],
    **states: Operand | None,
) -> None:
    """Add a recurrent operation over padded sequences; set `Hidden` to its unpadded output."""
    x, offsets = op.input("Input"), op.levels("Input")[-1]
    zero = op.constant(np.zeros((), x.type.element_type.dtype), "zero")
    padded, _ = ragged.pad_sequences(op, x, offsets, zero)
    lengths = ragged.lengths(op, offsets)
    weight = permutation[None].astype(x.type.element_type.dtype)
    hidden = op.add(
        operator,
        op.add(Transpose, padded, (1, 0, 2)),
        op.constant(weight, "weight"),
        recurrence,
        bias,
        lengths,
        **states,
        direction=Direction.REVERSE if op.flag("is_reverse", False) else Direction.FORWARD,
        activations=tuple(functions),
    )
    rows = op.add(Transpose, op.add(Squeeze, hidden, (1,)), (1, 0, 2))
    op.define(ragged.unpad_sequences(op, rows, lengths), "Hidden")


def _hidden_size(op: Context, gates: int) -> int:
    width = (op.input("Input").type.shape or (None,))[-1]
    if not isinstance(width, int) or not width or width % gates:
        raise UnsupportedError(f"Input: its rows must be {gates} gates of a known size")
    return width // gates


def _function(op: Context, name: str, default: str) -> CellFunction:
    return op.option(name, _FUNCTIONS, default)


def _gate_rows(gates: Sequence[int], size: int) -> Array:
    """Return the row indices of gates in an order."""
    return np.concatenate([np.arange(size, dtype=np.int64) + gate * size for gate in gates])


def _permutation_matrix(gates: Sequence[int], size: int) -> Array:
    """Return the matrix that permutes gates."""
    return np.eye(len(gates) * size)[_gate_rows(gates, size)]


def _zeros(op: Context, like: Operand, size: int) -> Operand:
    return op.constant(np.zeros((1, size), like.type.element_type.dtype), "zeros")


def _state(op: Context, slot: str) -> Operand | None:
    state = op.optional_input(slot)
    return None if state is None else op.add(Unsqueeze, state, (0,))


def _gru_weights(op: Context, size: int) -> tuple[Operand, Operand]:
    """Return the weights of update and reset gate, [H, 2 * H], and of the candidate, [H, H].

    They are consecutive in memory in a tensor declared as [H, 3 * H].
    """
    flat = op.add(Reshape, op.input("Weight"), (-1,))
    first = 2 * size * size
    return (
        op.add(Reshape, op.add(Slice, flat, (0,), (0,), (first,)), (size, 2 * size)),
        op.add(Reshape, op.add(Slice, flat, (0,), (first,), (3 * size * size,)), (size, size)),
    )


@imports("gru_unit")
def gru_unit(op: Context) -> None:
    """Import one step of a GRU whose input is already multiplied by the input weights."""
    size, previous = _hidden_size(op, 3), op.input("HiddenPrev")
    gate_weights, candidate_weights = _gru_weights(op, size)
    x, bias = op.input("Input"), op.optional_input("Bias")
    x = x if bias is None else op.add(Add, x, bias)
    update, reset, candidate = op.add_all(Split, x, -1, (size,) * 3)
    from_update, from_reset = op.add_all(
        Split, op.add(MatMul, previous, gate_weights), -1, (size,) * 2
    )
    update = _activate(op, "gate_activation", 1, op.add(Add, update, from_update))
    reset = _activate(op, "gate_activation", 1, op.add(Add, reset, from_reset))
    reset_state = op.add(Mul, reset, previous)
    candidate = op.add(Add, candidate, op.add(MatMul, reset_state, candidate_weights))
    candidate = _activate(op, "activation", 2, candidate)
    old, new = (previous, candidate) if op.flag("origin_mode", False) else (candidate, previous)
    op.make(Add, new, op.add(Mul, update, op.add(Sub, old, new)), output="Hidden")
    if op.is_read("ResetHiddenPrev"):
        op.define(reset_state, "ResetHiddenPrev")
    if op.is_read("Gate"):
        op.make(Concat, parts=[update, reset, candidate], axis=-1, output="Gate")


def _activate(op: Context, name: str, default: int, x: Operand) -> Operand:
    code = op.integer(name, default)
    if not 0 <= code < len(_UNIT_FUNCTIONS):
        raise ModelError(f"{name}: {code} is not one of 0 to {len(_UNIT_FUNCTIONS) - 1}")
    function = _UNIT_FUNCTIONS[code]
    return x if function is None else op.add(function, x)
