"""Recurrent networks as loops over their time steps, for what OpenVINO's own ones lack.

The body of a loop is the cell's own formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import openvino
from openvino import Node, Output, PartialShape, Type
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.quantization import rounded_to_bytes
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.ir import Array
from crosschip.ops.numerics.cells import Arrays, CellFunction, Gate, ScanDirection
from crosschip.ops.standard.recurrent import DynamicQuantizeLSTM, Recurrent

_WEIGHTS = ("weight", "recurrence_weight")
_SCALES = tuple(f"{slot}_{name}" for slot in _WEIGHTS for name in ("scale", "zero_point"))
CONSTANT = frozenset({*_WEIGHTS, *_SCALES, "bias", "peephole"})
"""The slots that must be constant."""


def scan(g: Graph, op: Recurrent, lengths: Value | None) -> list[Output]:
    """The outputs of a recurrent network.

    Args:
        g: the graph.
        op: the network.
        lengths: those of the sequences in int32, all of them in range.
    """
    passes = [
        _scanned(g, op, lengths, index, backwards)
        for index, backwards in enumerate(op.direction.passes)
    ]
    hidden, *states = zip(*passes, strict=True)
    stacked = ops.concat([ops.unsqueeze(each, g.scalar(1)) for each in hidden], 1)
    outputs = [stacked, *(ops.concat(list(state), 0) for state in states)]
    return [output.output(0) for output in outputs]


def _scanned(
    g: Graph, op: Recurrent, lengths: Value | None, index: int, backwards: bool
) -> list[Output]:
    """The hidden values after all steps of one pass, and the last states.

    In the loop, the axis of the steps stays, with one of them.
    """
    loop, algebra = ops.tensor_iterator(), _Values(g)
    gates = op.functions_of(algebra, index)
    outside = ScanDirection(algebra, _tensors(g, op, algebra), index, op.gates, gates)
    steps, batch = (size_of(g, op, axis) for axis in (0, 1))
    states = [_start(g, op, slot, index, batch) for slot in op.states]
    count = ops.range(g.scalar(0), ops.squeeze(steps), g.scalar(1), "i32")

    slices = [ops.parameter(PartialShape([1, -1, -1]), Type.f32) for _ in outside.inputs]
    before = [ops.parameter(PartialShape([1, -1, -1]), Type.f32) for _ in states]
    step = ops.parameter(PartialShape([1]), Type.i32)
    ends = None if lengths is None else ops.parameter(PartialShape([-1]), Type.i32)
    given = {**_tensors(g, op, algebra), "sequence_lengths": ends}
    inside = ScanDirection(algebra, given, index, op.gates, gates)
    x = [_Value(each) for each in slices]
    held = [_Value(each) for each in before]
    after = op.step(inside, x, *held)
    kept = [inside.unless_over(step, *pair) for pair in zip(after, held, strict=True)]
    results = [ops.result(each.node) for each in kept]
    hidden = results[0]
    if ends is not None:
        zero = _Value(g.constant(np.zeros((), np.float32)))
        hidden = ops.result(inside.unless_over(step, after[0], zero).node)
    parameters = [*slices, *before, step, *([] if ends is None else [ends])]

    loop.set_function(
        openvino.Model(results if ends is None else [hidden, *results], parameters, "step")
    )
    order = (-1, -1, 1, 0, 0) if backwards else (0, 1, 1, -1, 0)
    for parameter, value in zip(slices, outside.inputs, strict=True):
        loop.set_sliced_input(parameter, value.node.output(0), *order)
    loop.set_sliced_input(step, count.output(0), *order)
    for parameter, start, result in zip(before, states, results, strict=True):
        loop.set_merged_input(parameter, start.output(0), result.output(0))
    if ends is not None and lengths is not None:
        loop.set_invariant_input(ends, _output(lengths))
    last = [loop.get_iter_value(result.output(0), -1) for result in results]
    return [loop.get_concatenated_slices(hidden.output(0), *order), *last]


def _tensors(g: Graph, op: Recurrent, algebra: _Values) -> Mapping[str, Any]:
    """What fills the slots; constants anew each time, for each is of the graph or of a body."""
    filled = {slot.name: operand for slot, operand in op.filled() if not slot.parameter}
    tensors: dict[str, Any] = {"sequence_lengths": None, "input": _Value(g[op.input])}
    if isinstance(op, DynamicQuantizeLSTM):
        tensors["input"] = algebra.in_bytes(tensors["input"])
    for slot in (*_WEIGHTS, "bias", "peephole"):
        if slot in filled:
            tensors[slot] = _Value(g.constant(_reals(op, slot)))
    return tensors


def _reals(op: Recurrent, slot: str) -> Array:
    """The constant that fills a slot, as reals."""
    value = _elements(op, slot)
    assert value is not None, "it is filled"
    scale, zero_point = (_elements(op, f"{slot}_{name}") for name in ("scale", "zero_point"))
    return value if scale is None else Arrays().reals(value, scale, zero_point)


def _elements(op: Recurrent, slot: str) -> Array | None:
    """The constant that fills a slot; `None` if it is left out, or there is none of the name."""
    return next((operand.value for own, operand in op.filled() if own.name == slot), None)


def _start(g: Graph, op: Recurrent, slot: str, index: int, batch: Node) -> Node:
    """A state before the first step."""
    given = op.operand(slot)
    if given is not None:
        return ops.gather(g[given], g.int64([index]), g.scalar(0))
    hidden = op.recurrence_weight.type.static_shape or ()
    shape = ops.concat([g.int64([1]), batch, g.int64(hidden[2:])], 0)
    return ops.broadcast(g.constant(np.zeros((), np.float32)), shape)


def size_of(g: Graph, op: Recurrent, axis: int) -> Node:
    """The size of an axis of the input, in a list of one."""
    return ops.gather(ops.shape_of(g[op.input]), g.int64([axis]), g.scalar(0))


def _output(value: Value) -> Output:
    return value.output(0) if isinstance(value, Node) else value


class _Value:
    """A value of a graph that formulas are computed on."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __add__(self, other: _Value | float) -> _Value:
        return _Value(ops.add(self.node, _plain(other)))

    def __mul__(self, other: _Value | float) -> _Value:
        return _Value(ops.multiply(self.node, _plain(other)))

    def __matmul__(self, other: _Value) -> _Value:
        return _Value(ops.matmul(self.node, other.node, False, False))

    def __rsub__(self, other: float) -> _Value:
        return _Value(ops.subtract(_plain(other), self.node))


def _plain(value: _Value | float) -> Node:
    return value.node if isinstance(value, _Value) else ops.constant(np.array(value, np.float32))


class _Values:
    """The algebra of the values of a graph."""

    def __init__(self, g: Graph) -> None:
        self._g = g

    def pick(self, value: _Value, index: int) -> _Value:
        return _Value(ops.gather(value.node, self._g.scalar(index), self._g.scalar(0)))

    def split(self, value: _Value, count: int) -> list[_Value]:
        parts = ops.split(value.node, self._g.scalar(0), count).outputs()
        return [_Value(part) for part in parts]

    def transposed(self, value: _Value) -> _Value:
        return _Value(ops.transpose(value.node, self._g.int64([1, 0])))

    def before(self, step: Node, lengths: Node, value: _Value, other: _Value) -> _Value:
        longer = ops.less(step, ops.unsqueeze(lengths, self._g.scalar(1)))
        return _Value(ops.select(longer, value.node, other.node))

    def gate(self, function: CellFunction, alpha: float, beta: float, clip: float) -> Gate:
        def call(x: _Value) -> _Value:
            node = x.node if np.isinf(clip) else ops.clamp(x.node, -clip, clip)
            return _Value(_FORMULAS[function](node, *(_plain(each) for each in (alpha, beta))))

        return call

    def in_bytes(self, value: _Value) -> _Value:
        return _Value(rounded_to_bytes(self._g, value.node))


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
