"""Recurrent networks: LSTM, RNN and SVDF, whose states are variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.enumerations import LSTMKernelType
from crosschip.flatbuffer.schemas.tflite.options import (
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    LSTMOptions,
    RNNOptions,
    SequenceRNNOptions,
    SVDFOptions,
    UnidirectionalSequenceLSTMOptions,
)
from crosschip.importers.facts import rank_of, size_of
from crosschip.importers.tflite.bias import accumulated_bias
from crosschip.importers.tflite.cells import (
    GATES,
    LstmCell,
    RnnCell,
    Weight,
    add_activation,
    add_product,
)
from crosschip.importers.tflite.integer_cells import IntegerLstmCell, convert, integer_lstm_cell
from crosschip.importers.tflite.node import Node, imports
from crosschip.importers.tflite.operators.matrix import with_last_size
from crosschip.ir import Builder, ElementType, Model, Operand, Scan, UnsupportedError, constant
from crosschip.ir.type_joins import without_axis
from crosschip.ops.standard.activation import Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.recurrent import LSTM
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.slicing import Slice

_BIDIRECTIONAL_WEIGHTS = 17
"""The number of inputs for the weights of each direction of BIDIRECTIONAL_SEQUENCE_LSTM."""


@imports("LSTM")
def lstm(node: Node) -> Sequence[Operand]:
    """Import one time step of a cell."""
    options = node.options(LSTMOptions)
    if options.kernel_type == LSTMKernelType.BASIC:
        return _basic_lstm(node)
    integer_cell = integer_lstm_cell(node, options)
    if integer_cell is not None:
        sums = integer_cell.input_sums(node, node[0])
        states = integer_cell.step(node, sums, [node[18], node[19]])
        _update(node, (18, 19), states)
        return [states[0]]
    cell = _lstm_cell(node, options, 1, normalization=20)
    states = _states(node, 18, 19)
    states = cell.step(node, [node.dequantized(node[0])], states)
    _update(node, (18, 19), states)
    return [states[0]]


def _basic_lstm(node: Node) -> Sequence[Operand]:
    """Import the older kernel, whose weights of all gates and inputs are one matrix."""
    inputs = [node.dequantized(node[index]) for index in range(5)]
    input, previous, weights, bias, state = inputs
    joined = node.add(Concat, parts=[input, previous], axis=rank_of(input) - 1)
    product = add_product(node, joined, Weight(weights, False), False)
    gates = node.add(Add, product, bias)
    size = size_of(weights, 0) // 4
    entrance, update, forget, exit_ = node.add_all(Split, gates, 1, (size,) * 4)
    added = node.add(Mul, node.add(Sigmoid, entrance), node.add(Tanh, update))
    state = node.add(Add, added, node.add(Mul, node.add(Sigmoid, forget), state))
    output = node.add(Mul, node.add(Sigmoid, exit_), node.add(Tanh, state))
    return [node.fit(output, node.output()), node.fit(state, node.output(1)), joined, gates]


@imports("UNIDIRECTIONAL_SEQUENCE_LSTM")
def unidirectional_sequence_lstm(node: Node) -> Operand:
    options = node.options(UnidirectionalSequenceLSTMOptions)
    integer_cell = integer_lstm_cell(node, options)
    if integer_cell is not None:
        rows = node.add(Reshape, node[0], (-1, size_of(node[2], 1)))
        sums = [
            node.add(Reshape, each, with_last_size(node, node[0], size_of(each, 1)))
            for each in integer_cell.input_sums(node, rows)
        ]
        time_major = bool(options.time_major)
        return _sequence(node, integer_cell, sums, (18, 19), time_major, False)
    cell = _lstm_cell(node, options, 1, normalization=20)
    input = node.dequantized(node[0])
    return _lstm_sequence(node, cell, [input], (18, 19), bool(options.time_major), False)


@imports("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_sequence_lstm(node: Node) -> Sequence[Operand]:
    options = node.options(BidirectionalSequenceLSTMOptions)
    outputs = []
    for backwards in (False, True):
        first = 1 + backwards * _BIDIRECTIONAL_WEIGHTS
        has_weights = node.optional(41 + 4 * backwards) is not None
        auxiliary = 40 + 4 * backwards if has_weights else None
        cell = _lstm_cell(node, options, first, auxiliary=auxiliary)
        inputs = _inputs(node, 39, has_weights, backwards)
        states = (35 + 2 * backwards, 36 + 2 * backwards)
        time_major = bool(options.time_major)
        outputs.append(_lstm_sequence(node, cell, inputs, states, time_major, backwards))
    return _merged(node, outputs, bool(options.merge_outputs))


@imports("RNN")
def rnn(node: Node) -> Operand:
    """Import one time step of a cell."""
    options = node.options(RNNOptions)
    cell = _rnn_cell(node, options, 1, None)
    (state,) = cell.step(node, [node[0]], _states(node, 4))
    _update(node, (4,), [state])
    return state


@imports("UNIDIRECTIONAL_SEQUENCE_RNN")
def unidirectional_sequence_rnn(node: Node) -> Operand:
    options = node.options(SequenceRNNOptions)
    cell = _rnn_cell(node, options, 1, None)
    return _sequence(node, cell, [node[0]], (4,), bool(options.time_major), False)


@imports("BIDIRECTIONAL_SEQUENCE_RNN")
def bidirectional_sequence_rnn(node: Node) -> Sequence[Operand]:
    options = node.options(BidirectionalSequenceRNNOptions)
    outputs = []
    for backwards in (False, True):
        has_weights = node.optional(10 + backwards) is not None
        auxiliary = 10 + backwards if has_weights else None
        cell = _rnn_cell(node, options, 1 + 4 * backwards, auxiliary)
        inputs = _inputs(node, 9, has_weights, backwards)
        state = 4 + 4 * backwards
        time_major = bool(options.time_major)
        outputs.append(_sequence(node, cell, inputs, (state,), time_major, backwards))
    return _merged(node, outputs, bool(options.merge_outputs))


@imports("SVDF")
def svdf(node: Node) -> Operand:
    """Import a layer that filters the features of the last steps in time."""
    options = node.options(SVDFOptions)
    if node[0].type.quantization is not None:
        return _integer_svdf(node, options.rank)
    feature, time = _weight(node, 1), node.dequantized(node[2])
    filters, memory = size_of(time, 0), size_of(time, 1)
    asymmetric = bool(options.asymmetric_quantize_inputs)
    latest = add_product(node, node.dequantized(node[0]), feature, asymmetric)
    (state,) = _states(node, 4)
    steps = node.add(Reshape, state, (-1, filters, memory))
    earlier = node.add(Slice, steps, (2,), (1,), (memory,))
    steps = node.add(Concat, parts=[earlier, node.add(Unsqueeze, latest, (2,))], axis=2)
    _update(node, (4,), [node.add(Reshape, steps, (-1, filters * memory))])
    filtered = node.add(ReduceSum, node.add(Mul, steps, time), (2,), False)
    ranks = node.add(Reshape, filtered, (-1, filters // options.rank, options.rank))
    output = node.add(ReduceSum, ranks, (2,), False)
    bias = node.optional(3)
    if bias is not None:
        output = node.add(Add, output, node.dequantized(bias))
    return add_activation(node, output, options.fused_activation_function)


def _integer_svdf(node: Node, rank: int) -> Operand:
    """Import the layer on integers: two convolutions, whose sums are rescaled as int32.

    LiteRT has no activation but RELU here, which it leaves to the range of the output's integers.
    """
    filters, memory = size_of(node[2], 0), size_of(node[2], 1)
    units, size = filters // rank, size_of(node[1], 1)
    input = node.add(Reshape, convert(node, node[0], ElementType.INT32), (-1, size, 1, 1))
    feature = node.add(Reshape, node[1], (filters, size, 1, 1))
    latest = node.add(Conv2D, input, feature, quantization=node[4].type.quantization)
    latest = node.add(Reshape, convert(node, latest, ElementType.INT16), (-1, filters, 1))
    earlier = node.add(Reshape, node[4], (-1, filters, memory))
    earlier = node.add(Slice, earlier, (2,), (1,), (memory,))
    steps = node.add(Concat, parts=[earlier, latest], axis=2)
    _update(node, (4,), [node.add(Reshape, steps, (-1, filters * memory))])
    window = node.add(Reshape, steps, (-1, units, 1, rank * memory))
    window = convert(node, window, ElementType.INT32)
    time = node.add(Reshape, node[2], (units, 1, 1, rank * memory))
    bias = accumulated_bias(node, node.optional(3), window, time)
    quantization = node.output().quantization
    output = node.add(Conv2D, window, time, bias, group=units, quantization=quantization)
    output = convert(node, output, node.output().element_type)
    return node.add(Reshape, output, (-1, units))


def _weight(node: Node, index: int) -> Weight:
    """Return an input of weights as reals; constants are converted at once."""
    operand = node[index]
    hybrid = operand.type.quantization is not None and node[0].type.quantization is None
    return Weight(node.real_constant(operand), hybrid)


def _by_gate(node: Node, indices: Mapping[str, int]) -> dict[str, Weight]:
    """Return the weights that are present, by gate."""
    return {
        gate: _weight(node, index)
        for gate, index in indices.items()
        if node.optional(index) is not None
    }


def _reals(node: Node, indices: Mapping[str, int]) -> dict[str, Operand]:
    """Return the reals of inputs that are present, by gate."""
    return {gate: weight.operand for gate, weight in _by_gate(node, indices).items()}


def _lstm_cell(
    node: Node,
    options: LSTMOptions | UnidirectionalSequenceLSTMOptions | BidirectionalSequenceLSTMOptions,
    first: int,
    auxiliary: int | None = None,
    normalization: int | None = None,
) -> LstmCell:
    """Return a cell.

    Args:
        node: the operator.
        options: its options.
        first: the index of the first of the inputs for weights.
        auxiliary: the index of the first weights of the auxiliary input.
        normalization: the index of the first coefficients of layer normalization.
    """

    def gates(start: int) -> dict[str, int]:
        return {gate: start + number for number, gate in enumerate(GATES)}

    projection, bias = node.optional(first + 15), node.optional(first + 16)
    peepholes = {"input": first + 8, "forget": first + 9, "output": first + 10}
    return LstmCell(
        weights=_by_gate(node, gates(first)),
        recurrent=_by_gate(node, gates(first + 4)),
        auxiliary={} if auxiliary is None else _by_gate(node, gates(auxiliary)),
        peepholes=_reals(node, peepholes),
        biases=_reals(node, gates(first + 11)),
        normalization={} if normalization is None else _reals(node, gates(normalization)),
        projection=None if projection is None else _weight(node, first + 15),
        projection_bias=None if bias is None else node.dequantized(bias),
        activation=options.fused_activation_function,
        cell_clip=options.cell_clip,
        projection_clip=options.proj_clip,
        asymmetric=bool(options.asymmetric_quantize_inputs),
    )


def _rnn_cell(
    node: Node,
    options: RNNOptions | SequenceRNNOptions | BidirectionalSequenceRNNOptions,
    first: int,
    auxiliary: int | None,
) -> RnnCell:
    """Return a cell; `first` is the index of its weights among the inputs."""
    return RnnCell(
        weight=_weight(node, first),
        recurrent=_weight(node, first + 1),
        auxiliary=None if auxiliary is None else _weight(node, auxiliary),
        bias=node[first + 2],
        activation=options.fused_activation_function,
        asymmetric=bool(options.asymmetric_quantize_inputs),
    )


def _inputs(node: Node, auxiliary: int, has_weights: bool, backwards: bool) -> list[Operand]:
    """Return the inputs of a direction; without weights, the auxiliary one replaces the input."""
    other = node.optional(auxiliary)
    if other is None:
        return [node[0]]
    if has_weights:
        return [node[0], other]
    return [other if backwards else node[0]]


def _states(node: Node, *indices: int) -> list[Operand]:
    """Return the states before the operator, as reals."""
    return [node.dequantized(node[index]) for index in indices]


def _update(node: Node, indices: Sequence[int], states: Sequence[Operand]) -> None:
    """Assign states to their variables."""
    for index, state in zip(indices, states, strict=True):
        node.subgraph.update(node.input_indices[index], state, node)


def _merged(node: Node, outputs: Sequence[Operand], merge: bool) -> Sequence[Operand]:
    """Return the outputs of both directions, joined on the last axis if the options say so."""
    return [node.add(Concat, parts=list(outputs), axis=2)] if merge else outputs


def _lstm_sequence(
    node: Node,
    cell: LstmCell,
    inputs: Sequence[Operand],
    indices: Sequence[int],
    time_major: bool,
    backwards: bool,
) -> Operand:
    """Add all time steps of a cell: as one operation if it has nothing special."""
    if not cell.is_plain or backwards:
        return _sequence(node, cell, inputs, indices, time_major, backwards)
    order = ("input", "output", "forget", "cell")
    weights = _stacked(node, {gate: w.operand for gate, w in cell.weights.items()}, order)
    recurrent = _stacked(node, {gate: w.operand for gate, w in cell.recurrent.items()}, order)
    biases = _stacked(node, cell.biases, order)
    zeros = node.constant(np.zeros((1, size_of(biases, 1)), np.float32))
    peepholes = _stacked(node, cell.peepholes, order[:3]) if cell.peepholes else None
    input = inputs[0] if time_major else node.add(Transpose, inputs[0], (1, 0, 2))
    hidden, state = (node.add(Unsqueeze, each, (0,)) for each in _states(node, *indices))
    outputs, last_hidden, last_state = node.add_all(
        LSTM,
        input,
        weights,
        recurrent,
        bias=node.add(Concat, parts=[biases, zeros], axis=1),
        initial_hidden=hidden,
        initial_cell=state,
        peephole=peepholes,
    )
    shape = size_of(recurrent, 2)
    _update(node, indices, [node.add(Reshape, s, (-1, shape)) for s in (last_hidden, last_state)])
    steps = node.add(Squeeze, outputs, (1,))
    return steps if time_major else node.add(Transpose, steps, (1, 0, 2))


def _stacked(node: Node, parts: Mapping[str, Operand], order: Sequence[str]) -> Operand:
    """Return the weights of gates, joined in an order, with a first axis for the direction.

    An input gate that is one minus the forget gate has its weights, negated.
    """
    operands = [parts.get(gate) for gate in order]
    values = [None if operand is None else operand.value for operand in operands]
    forget = parts["forget"].value
    if forget is None or any(o is not None and o.value is None for o in operands):
        raise UnsupportedError("weights that are computed when the model runs")
    return constant(
        np.concatenate([-forget if value is None else value for value in values])[None],
        next(node.names),
    )


def _sequence(
    node: Node,
    cell: LstmCell | RnnCell | IntegerLstmCell,
    inputs: Sequence[Operand],
    indices: Sequence[int],
    time_major: bool,
    backwards: bool,
) -> Operand:
    """Add all time steps of a cell as a loop; return the outputs of all steps."""
    axis, states = 0 if time_major else 1, [node[index] for index in indices]
    if not isinstance(cell, IntegerLstmCell):
        states = [node.dequantized(state) for state in states]
    name = next(node.names)
    body = Builder(name, used_names=node.subgraph.shared.operation_names)
    inner_states = [
        body.input(f"state_{number}", state.type) for number, state in enumerate(states)
    ]
    slices = [
        body.input(f"step_{number}", without_axis(each.type, axis))
        for number, each in enumerate(inputs)
    ]
    after = cell.step(body, slices, inner_states)
    for number, state in enumerate(after):
        body.output(f"next_{number}", state)
    body.output("output", after[0])
    model: Model = body.build()
    *last, outputs = node.control(
        lambda each: Scan(
            each,
            (*states, *inputs),
            bodies=[model],
            states=len(states),
            input_axes=[axis] * len(inputs),
            input_reversed=[backwards] * len(inputs),
            output_axes=[axis],
            output_reversed=[backwards],
        )
    )
    _update(node, indices, last)
    return outputs
