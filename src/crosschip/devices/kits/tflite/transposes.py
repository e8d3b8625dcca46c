"""Movement of transpositions of images across operators with axes as parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.devices.kits.tflite.converters.layout import ranges_of
from crosschip.devices.kits.tflite.converters.reduction import axes_of
from crosschip.devices.kits.tflite.converters.table import reshaped
from crosschip.devices.kits.tflite.native import Graph
from crosschip.ir import Model, Operand, Operation, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.definition.kinds import aligned_row_axis
from crosschip.ops.standard.activation import LogSoftmax, PRelu, Softmax
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.reduction import (
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceSum,
)
from crosschip.ops.standard.searching import ArgMax
from crosschip.ops.standard.slicing import Slice
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import operations_for

Order = tuple[int, ...]
Move = Callable[[Graph, Any, Operand, Order], Sequence[Operand] | None]
"""Builds an operation on its input before a transposition, and transposes the outputs."""


@dataclass(frozen=True)
class MoveTransposes(Pass):
    """Moves transpositions from before operators with axes to after them.

    They may then cancel with others; where axes of an output are removed or of size 1, fewer
    elements are transposed.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        used_names = {operation.name for operation in model.operations}
        producers: dict[Operand, Operation] = {}
        operations: list[Operation] = []
        for operation in model.operations:
            parts = _moved(operation, producers, used_names)
            operations += parts
            producers.update((output, part) for part in parts for output in part.outputs)
        return Model(model.name, model.inputs, operations, model.outputs)


def _moved(
    operation: Operation, producers: dict[Operand, Operation], used_names: set[str]
) -> Sequence[Operation]:
    """Return the operations for one, with the transposition after it if one was before it."""
    if not isinstance(operation, Operator):
        return [operation]
    graph = Graph(prefix=f"{operation.name}.", used_names=used_names)
    move = _MOVES.get(type(operation))
    if move is None:
        results = _elementwise(graph, operation, producers)
    else:
        (_, source), *_ = operation.filled()
        before = _transposition(source, producers)
        results = None if before is None else move(graph, operation, *before)
    if results is None:
        return [operation]
    parts = operations_for(operation.outputs, results, graph)
    return [part.standing_for(operation) for part in parts]


def _transposition(
    operand: Operand, producers: Mapping[Operand, Operation]
) -> tuple[Operand, Order] | None:
    """Return the input and the axes of the transpositions that produce an operand."""
    order: Order | None = None
    before = producers.get(operand)
    while isinstance(before, Transpose) and _moves_elements(before):
        inner = tuple(axis % len(before.perm) for axis in before.perm)
        order = inner if order is None else tuple(inner[axis] for axis in order)
        operand = before.input
        before = producers.get(operand)
    return None if order is None else (operand, order)


def _moves_elements(transpose: Transpose) -> bool:
    """Return whether a transposition does not requantize."""
    return transpose.input.type.quantization == transpose.outputs[0].type.quantization


def _elementwise(
    g: Graph, op: Operator, producers: Mapping[Operand, Operation]
) -> Sequence[Operand] | None:
    """Build an operation by element, or a concatenation, on inputs before transpositions."""
    by_element = type(op).row_axis is aligned_row_axis
    if not by_element and not isinstance(op, Concat | Quantize | Dequantize):
        return None
    tensors = [operand for slot, operand in op.filled() if not slot.parameter]
    sources = {operand: _transposition(operand, producers) for operand in tensors}
    orders = {source[1] for source in sources.values() if source is not None}
    if len(orders) != 1 or len(op.outputs) != 1:
        return None
    (order,) = orders
    moved: dict[Operand, Operand] = {}
    for operand, source in sources.items():
        before = source[0] if source is not None else _reordered(operand, order)
        if before is None or _is_per_channel(operand):
            return None
        moved[operand] = before
    inputs = tuple(operand and moved.get(operand, operand) for operand in op.inputs)
    if isinstance(op, Concat):
        inputs = Concat.bind(op.name, (), {"parts": inputs[:-1], "axis": order[op.axis]})
    name = g.unique_name(op.type.lower())
    (output,) = g.insert(type(op)(name, inputs, (), op.output_quantization))
    return [g.add(Transpose, output, order)] if output.type.shape is not None else None


def _reordered(operand: Operand, order: Order) -> Operand | None:
    """Return a constant, or a single number, as it is before a transposition, else `None`."""
    if operand.type.shape == ():
        return operand
    value = operand.value
    if value is None or value.ndim > len(order):
        return None
    if value.size == 1:
        return operand
    wide = value.reshape((1,) * (len(order) - value.ndim) + value.shape)
    back = [order.index(axis) for axis in range(len(order))]
    array = np.ascontiguousarray(wide.transpose(back))
    return constant(array, operand.name, operand.type.quantization)


def _is_per_channel(operand: Operand) -> bool:
    quantization = operand.type.quantization
    return quantization is not None and quantization.axis is not None


def _reduce(g: Graph, op: Any, source: Operand, order: Order) -> Sequence[Operand] | None:
    op_type: type[Operator] = type(op)
    axes = tuple(order[axis] for axis in axes_of(op))
    (output,) = g.add_all(
        op_type, source, axes=axes, keepdim=op.keepdim, quantization=op.output_quantization
    )
    if op.keepdim:
        return [g.add(Transpose, output, order)]
    remaining = [axis for axis in order if axis not in axes]
    perm = tuple(sorted(remaining).index(axis) for axis in remaining)
    return [g.add(Transpose, output, perm) if perm != tuple(sorted(perm)) else output]


def _pad(g: Graph, op: Pad, source: Operand, order: Order) -> Sequence[Operand]:
    sides = np.reshape(op.pads, (-1, 2))
    pads = np.zeros_like(sides)
    pads[list(order)] = sides
    output = g.add(Pad, source, tuple(pads.ravel().tolist()), mode=op.mode, value=op.value)
    return [g.add(Transpose, output, order)]


def _slice(g: Graph, op: Slice, source: Operand, order: Order) -> Sequence[Operand]:
    shape = op.input.type.static_shape or ()
    changed = [axis for axis, r in enumerate(ranges_of(op)) if r != range(shape[axis])]
    ranges = ranges_of(op)
    ends = [-(2**31) + 1 if ranges[a].stop < 0 else ranges[a].stop for a in changed]
    output = g.add(
        Slice,
        source,
        axes=tuple(order[axis] for axis in changed),
        starts=tuple(ranges[axis].start for axis in changed),
        ends=tuple(ends),
        steps=tuple(ranges[axis].step for axis in changed),
    )
    return [g.add(Transpose, output, order)]


def _split(g: Graph, op: Split, source: Operand, order: Order) -> Sequence[Operand]:
    outputs = g.add_all(Split, source, order[op.axis % len(order)], op.split)
    return [g.add(Transpose, output, order) for output in outputs]


def _softmax(
    g: Graph, op: Softmax | LogSoftmax, source: Operand, order: Order
) -> Sequence[Operand]:
    axis = order[op.axis % len(order)]
    (output,) = g.add_all(type(op), source, axis=axis, quantization=op.output_quantization)
    return [g.add(Transpose, output, order)]


def _arg_max(g: Graph, op: ArgMax, source: Operand, order: Order) -> Sequence[Operand] | None:
    if not op.keepdim:
        return None
    axis = order[op.axis % len(order)]
    output = g.add(
        ArgMax, source, axis=axis, keepdim=True, dtype=op.dtype, select_last=op.select_last
    )
    return [g.add(Transpose, output, order)]


def _prelu(g: Graph, op: PRelu, source: Operand, order: Order) -> Sequence[Operand] | None:
    slope = op.slope
    if len(slope.type.shape or ()) == 1 and len(order) > 2:
        slope = reshaped(g, slope, (-1, *(1,) * (len(order) - 2)))
    before = _reordered(slope, order)
    if before is None or _is_per_channel(slope):
        return None
    (output,) = g.add_all(PRelu, source, before, quantization=op.output_quantization)
    return [g.add(Transpose, output, order)]


_MOVES: dict[type[Operation], Move] = {
    ReduceMean: _reduce,
    ReduceMax: _reduce,
    ReduceMin: _reduce,
    ReduceSum: _reduce,
    Pad: _pad,
    Slice: _slice,
    Split: _split,
    Softmax: _softmax,
    LogSoftmax: _softmax,
    ArgMax: _arg_max,
    PRelu: _prelu,
}
