"""Recurrent networks, in OpenVINO's order of axes and gates, with the sum of the biases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.kits.limits import hidden_size
from crosschip.devices.openvino.converters.scanning import CONSTANT, scan, size_of
from crosschip.devices.openvino.converters.table import converts
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import Array, ElementType, Operand
from crosschip.ir.types import INDICES
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, DynamicQuantizeLSTM, Recurrent

_TYPES = INDICES | {ElementType.FLOAT32}


def _check_recurrent(op: Recurrent) -> Refusal | None:
    steps, batch, _ = shape_of(op.input)
    if op.sequence_lengths is not None and isinstance(steps, int):
        lengths = op.sequence_lengths.value
        if lengths is not None and not ((lengths >= 0) & (lengths <= steps)).all():
            return Refusal("sequence_lengths", f"are not all in [0, {steps}]")
    for slot in op.states:
        state = op.operand(slot)
        if state is not None and state.is_constant and not isinstance(batch, int):
            return Refusal(slot, "is constant, and the batch of the input is open", Rule.SHAPE)
    if not is_plain(op):
        for slot in CONSTANT & {slot.name for slot, _ in op.filled()}:
            operand = op.operand(slot)
            if operand is not None and operand.value is None:
                return Refusal(slot, "is computed at run time, but must be constant here")
    return hidden_size(op)


def is_plain(op: Recurrent) -> bool:
    """Return whether OpenVINO has a sequence operation for the operation; else a loop is needed."""
    if op.activations or op.activation_alpha or op.activation_beta or np.isfinite(op.clip):
        return False
    if isinstance(op, LSTM) and (op.peephole is not None or op.input_forget):
        return False
    # Quirk `lengths-with-open-sizes`.
    sizes = shape_of(op.input)[:2]
    looks = op.sequence_lengths is None or all(isinstance(size, int) for size in sizes)
    return looks and not isinstance(op, DynamicQuantizeLSTM)


@converts(RNN, types=_TYPES, limit=_check_recurrent, nonempty=True)
def rnn(g: Graph, op: RNN) -> list[Output]:
    return _convert(g, op, (0,), ops.rnn_sequence)


@converts(GRU, types=_TYPES, limit=_check_recurrent, nonempty=True)
def gru(g: Graph, op: GRU) -> list[Output]:
    form = {"linear_before_reset": op.linear_before_reset}
    return _convert(g, op, (0, 1, 2), ops.gru_sequence, **form)


@converts(LSTM, types=_TYPES, limit=_check_recurrent, nonempty=True)
def lstm(g: Graph, op: LSTM) -> list[Output]:
    return _convert(g, op, (2, 0, 3, 1), ops.lstm_sequence)


@converts(
    DynamicQuantizeLSTM,
    types=_TYPES | {ElementType.INT8, ElementType.UINT8},
    limit=_check_recurrent,
    nonempty=True,
)
def dynamic_quantize_lstm(g: Graph, op: DynamicQuantizeLSTM) -> list[Output]:
    return scan(g, op, _lengths(g, op))


def _form(op: Recurrent) -> dict[str, Any]:
    return {
        "hidden_size": shape_of(op.recurrence_weight)[2],
        "direction": op.direction.name.lower(),
    }


def _convert(
    g: Graph, op: Recurrent, order: Sequence[int], make: Callable[..., Node], **form: Any
) -> list[Output]:
    """Convert a recurrent operation to an OpenVINO sequence operation, or to a loop.

    Args:
        g: the graph.
        op: the operation.
        order: the order of the gates in OpenVINO.
        make: the sequence operation.
        form: attributes specific to this operation.
    """
    given_lengths = _lengths(g, op)
    if not is_plain(op):
        return scan(g, op, given_lengths)
    lengths, starts = (
        _full_lengths(g, op) if given_lengths is None else given_lengths,
        _initial_states(g, op),
    )
    input = ops.transpose(g[op.input], [1, 0, 2])
    network = make(input, *starts, lengths, *_weights(g, op, order), **form, **_form(op))
    hidden, *last = network.outputs()
    if given_lengths is not None:
        # Quirk `sequence-without-steps`.
        is_empty = ops.equal(
            ops.unsqueeze(lengths, g.int64([1, 2])), g.constant(np.array(0, np.int32))
        )
        last = [ops.select(is_empty, *pair).output(0) for pair in zip(starts, last, strict=True)]
    transposed = [_steps_first(hidden), *(ops.transpose(o, [1, 0, 2]) for o in last)]
    return [node.output(0) for node in transposed]


def _steps_first(hidden: Output) -> Node:
    """Transpose the hidden states to steps first.

    OpenVINO 2026.4.1 merges `transpose(sequence(transpose(x, [1, 0, 2])), [2, 1, 0, 3])` of
    constant weights into a network with steps first, which `export_model` does not write: after
    `import_model` the result is wrong. A fifth axis prevents the merge.
    """
    last = [4]
    return ops.squeeze(ops.transpose(ops.unsqueeze(hidden, last), [2, 1, 0, 3, 4]), last)


def _initial_states(g: Graph, op: Recurrent) -> list[Node]:
    """Return the initial states, with the batch first."""
    sizes = g.int64([len(op.direction.passes), _form(op)["hidden_size"]])
    shape = ops.concat([size_of(g, op, 1), sizes], 0)
    zero = np.zeros((), op.input.type.element_type.dtype)
    return [
        ops.transpose(g[state], [1, 0, 2]) if state else ops.broadcast(g.constant(zero), shape)
        for state in map(op.operand, op.states)
    ]


def _full_lengths(g: Graph, op: Recurrent) -> Node:
    """Return sequence lengths that equal the number of steps."""
    return ops.broadcast(ops.squeeze(size_of(g, op, 0)), size_of(g, op, 1))


def _lengths(g: Graph, op: Recurrent) -> Node | None:
    """Return the sequence lengths in int32; refuse runs with a length out of range."""
    if op.sequence_lengths is None:
        return None
    steps = ops.convert(g.size(op.input, 0), "i32")
    lengths = ops.convert(g[op.sequence_lengths], "i32")
    inside = ops.maximum(ops.minimum(lengths, steps), g.constant(np.array(0, np.int32)))
    if op.sequence_lengths.value is None or not isinstance(shape_of(op.input)[0], int):
        rule = "sequence_lengths: are not all from 0 to the number of steps"
        g.require(op, rule, ops.equal(lengths, inside))
    return inside


def _weights(g: Graph, op: Recurrent, order: Sequence[int]) -> list[Value]:
    """Return weights and bias, with the gates in OpenVINO's order."""
    size = _form(op)["hidden_size"]
    rows = np.concatenate([np.arange(gate * size, (gate + 1) * size) for gate in order])
    weights = [_rows(g, operand, rows) for operand in (op.weight, op.recurrence_weight)]
    if op.bias is None:
        separate = isinstance(op, GRU) and op.linear_before_reset
        shape = (len(op.direction.passes), len(rows) + (size if separate else 0))
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
