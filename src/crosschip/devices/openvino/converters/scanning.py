"""Recurrent networks as loops over time steps, for variants without an OpenVINO operation.

The loop body computes the formula of the cell.

"""

from __future__ import annotations

import numpy as np
import openvino
from openvino import Node, Output, PartialShape, Type
from openvino import opset15 as ops

from crosschip.devices.openvino.cells import Cell, Factor, Term, input_factor
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.ops.standard.recurrent import Recurrent

_WEIGHTS = ("weight", "recurrence_weight")
_SCALES = tuple(f"{slot}_{name}" for slot in _WEIGHTS for name in ("scale", "zero_point"))
CONSTANT = frozenset({*_WEIGHTS, *_SCALES, "bias", "peephole"})
"""The slots that must be constant."""


def scan(g: Graph, op: Recurrent, lengths: Value | None) -> list[Output]:
    """Return the outputs of a recurrent operation.

    Args:
        g: the graph.
        op: the recurrent operation.
        lengths: sequence lengths in int32, all of them in range.
    """
    input = input_factor(g, op)
    passes = [
        _scan_direction(g, op, input, lengths, index, backwards)
        for index, backwards in enumerate(op.direction.passes)
    ]
    hidden, *states = zip(*passes, strict=True)
    stacked = ops.concat([ops.unsqueeze(each, g.scalar(1)) for each in hidden], 1)
    outputs = [stacked, *(ops.concat(list(state), 0) for state in states)]
    return [output.output(0) for output in outputs]


def _scan_direction(
    g: Graph, op: Recurrent, input: Factor, lengths: Value | None, index: int, backwards: bool
) -> list[Output]:
    """Return the hidden states of all steps of one direction, and the last states.

    In the loop body, the axis of steps remains, of size 1.

    """
    loop, cell = ops.tensor_iterator(), Cell(g, op, index)
    steps, batch = (size_of(g, op, axis) for axis in (0, 1))
    x = ops.parameter(PartialShape([1, -1, -1]), Type.f32)
    before = [ops.parameter(PartialShape([1, -1, -1]), Type.f32) for _ in op.states]
    after = op.step(cell, cell.of_gates(x, op.gates), *map(Term, before))
    order = (-1, -1, 1, 0, 0) if backwards else (0, 1, 1, -1, 0)
    if lengths is None:
        results = [ops.result(each.node) for each in after]
        loop.set_function(openvino.Model(results, [x, *before], "step"))
        hidden = results[0]
    else:
        step = ops.parameter(PartialShape([1]), Type.i32)
        ends = ops.parameter(PartialShape([-1]), Type.i32)
        runs = ops.less(step, ops.unsqueeze(ends, g.scalar(1)))
        pairs = zip(after, before, strict=True)
        results = [ops.result(ops.select(runs, new.node, old)) for new, old in pairs]
        nothing = g.constant(np.zeros((), np.float32))
        hidden = ops.result(ops.select(runs, after[0].node, nothing))
        loop.set_function(openvino.Model([hidden, *results], [x, *before, step, ends], "step"))
        count = ops.range(g.scalar(0), ops.squeeze(steps), g.scalar(1), "i32")
        loop.set_sliced_input(step, count.output(0), *order)
        loop.set_invariant_input(ends, _output(lengths))
    loop.set_sliced_input(x, cell.input(input).output(0), *order)
    for slot, parameter, result in zip(op.states, before, results, strict=True):
        start = _initial_state(g, op, slot, index, batch)
        loop.set_merged_input(parameter, start.output(0), result.output(0))
    last = [loop.get_iter_value(result.output(0), -1) for result in results]
    return [loop.get_concatenated_slices(hidden.output(0), *order), *last]


def _initial_state(g: Graph, op: Recurrent, slot: str, index: int, batch: Node) -> Node:
    """Return the initial state of one direction."""
    state = op.operand(slot)
    if state is not None:
        return ops.gather(g[state], g.int64([index]), g.scalar(0))
    hidden = op.recurrence_weight.type.static_shape or ()
    shape = ops.concat([g.int64([1]), batch, g.int64(hidden[2:])], 0)
    return ops.broadcast(g.constant(np.zeros((), np.float32)), shape)


def size_of(g: Graph, op: Recurrent, axis: int) -> Node:
    """Return the size of an axis of the input, as a list of one element."""
    return ops.gather(ops.shape_of(g[op.input]), g.int64([axis]), g.scalar(0))


def _output(value: Value) -> Output:
    return value.output(0) if isinstance(value, Node) else value
