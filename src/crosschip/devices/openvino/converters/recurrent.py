"""Recurrent networks; OpenVINO has the batch first, one bias a gate, and gates in other orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import converts
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.hal.limits import hidden_size
from crosschip.ir import Array, ElementType, Operand
from crosschip.ir.types import INDICES
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Recurrent

_TYPES = INDICES | {ElementType.FLOAT32}


def _plain(op: Recurrent) -> Refusal | None:
    if op.activations or op.activation_alpha or op.activation_beta:
        return Refusal("activations", "must be left out")
    if np.isfinite(op.clip):
        return Refusal("clip", "must be left out")
    steps, batch, _ = shape_of(op.input)
    if op.sequence_lengths is not None:
        # Where a size is not known, OpenVINO does not look at them.
        if not isinstance(steps, int) or not isinstance(batch, int):
            return Refusal("sequence_lengths", "the input's sizes are open", Rule.SHAPE)
        lengths = op.sequence_lengths.value
        if lengths is not None and not ((lengths >= 0) & (lengths <= steps)).all():
            return Refusal("sequence_lengths", f"are not all in [0, {steps}]")
    for slot in op.states:
        state = op.operand(slot)
        if state is not None and state.is_constant and not isinstance(batch, int):
            return Refusal(slot, "is constant, and the batch of the input is open", Rule.SHAPE)
    return hidden_size(op)


def _plain_lstm(op: LSTM) -> Refusal | None:
    if op.peephole is not None:
        return Refusal("peephole", "must be left out")
    return Refusal("input_forget", "must be false") if op.input_forget else _plain(op)


@converts(RNN, types=_TYPES, limit=_plain, nonempty=True)
def rnn(g: Graph, op: RNN) -> list[Output]:
    return _results(ops.rnn_sequence(*_states(g, op), *_weights(g, op, (0,)), **_form(op)))


@converts(GRU, types=_TYPES, limit=_plain, nonempty=True)
def gru(g: Graph, op: GRU) -> list[Output]:
    weights = _weights(g, op, (0, 1, 2))
    form = {"linear_before_reset": op.linear_before_reset, **_form(op)}
    return _results(ops.gru_sequence(*_states(g, op), *weights, **form))


@converts(LSTM, types=_TYPES, limit=_plain_lstm, nonempty=True)
def lstm(g: Graph, op: LSTM) -> list[Output]:
    weights = _weights(g, op, (2, 0, 3, 1))
    return _results(ops.lstm_sequence(*_states(g, op), *weights, **_form(op)))


def _form(op: Recurrent) -> dict[str, Any]:
    return {
        "hidden_size": shape_of(op.recurrence_weight)[2],
        "direction": op.direction.name.lower(),
    }


def _results(sequence: Node) -> list[Output]:
    """The outputs, with time steps first."""
    hidden, *last = sequence.outputs()
    turned = [ops.transpose(hidden, [2, 1, 0, 3]), *(ops.transpose(o, [1, 0, 2]) for o in last)]
    return [node.output(0) for node in turned]


def _states(g: Graph, op: Recurrent) -> list[Value]:
    """Input, states at the start, and lengths, with the batch first."""
    form, passes = _form(op), len(op.direction.passes)
    sizes = ops.shape_of(g[op.input])
    batch, steps = (ops.gather(sizes, g.int64([axis]), g.scalar(0)) for axis in (1, 0))
    zero = np.zeros((), op.input.type.element_type.dtype)
    shape = ops.concat([batch, g.int64([passes, form["hidden_size"]])], 0)
    starts = [
        ops.transpose(g[given], [1, 0, 2]) if given else ops.broadcast(g.constant(zero), shape)
        for given in map(op.operand, op.states)
    ]
    lengths = ops.broadcast(ops.squeeze(steps), batch)
    if op.sequence_lengths is not None:
        given = ops.convert(g[op.sequence_lengths], "i32")
        inside = ops.minimum(given, ops.convert(lengths, "i32"))
        lengths = ops.maximum(inside, g.constant(np.array(0, np.int32)))
        if op.sequence_lengths.value is None:
            rule = "sequence_lengths: are not all from 0 to the number of steps"
            g.require(op, rule, ops.equal(given, lengths))
    return [ops.transpose(g[op.input], [1, 0, 2]), *starts, lengths]


def _weights(g: Graph, op: Recurrent, order: Sequence[int]) -> list[Value]:
    """Weights and bias, with the gates in another order."""
    size = _form(op)["hidden_size"]
    rows = np.concatenate([np.arange(gate * size, (gate + 1) * size) for gate in order])
    weights = [_rows(g, operand, rows) for operand in (op.weight, op.recurrence_weight)]
    if op.bias is None:
        apart = isinstance(op, GRU) and op.linear_before_reset
        shape = (len(op.direction.passes), len(rows) + (size if apart else 0))
        return [*weights, g.constant(np.zeros(shape, op.input.type.element_type.dtype))]
    second = rows + len(rows)
    if not (isinstance(op, GRU) and op.linear_before_reset):
        return [*weights, ops.add(_rows(g, op.bias, rows), _rows(g, op.bias, second))]
    gates, hidden = slice(0, 2 * size), slice(2 * size, None)
    total = ops.add(_rows(g, op.bias, rows[gates]), _rows(g, op.bias, second[gates]))
    parts = [_rows(g, op.bias, rows[hidden]), _rows(g, op.bias, second[hidden])]
    return [*weights, ops.concat([total, *parts], 1)]


def _rows(g: Graph, operand: Operand, rows: Array) -> Node:
    return ops.gather(g[operand], g.constant(rows), g.scalar(1))
