"""Control flow whose course is known: branches that are chosen, and loops that are unrolled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto

from crosschip.importers.onnx.node import Node, axis_from_front, imports
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Unsqueeze

_MAX_TRIPS = 1024


@imports("If")
def if_(node: Node) -> list[Operand]:
    branches = {True: node.graph("then_branch"), False: node.graph("else_branch")}
    return node.run_graph(branches[_is_true(node[0], "the condition")])


@imports("Loop")
def loop(node: Node) -> list[Operand]:
    """A loop that is known to end is unrolled: its body, once for each time."""
    body = node.graph("body")
    trips = _trips(node)
    state = [node[index] for index in range(2, len(node.inputs))]
    going = node.optional(1) or _constant(node, np.array(True))
    collected: list[list[Operand]] = []
    for trip in range(_MAX_TRIPS + 1):
        if trip == trips or not _is_true(going, "the condition"):
            break
        if trip == _MAX_TRIPS:
            raise UnsupportedError(f"a loop of over {_MAX_TRIPS} times is not unrolled")
        going, *made = node.run_graph(body, _constant(node, np.array(trip)), going, *state)
        state = made[: len(state)]
        collected.append(made[len(state) :])
    return [*state, *_stacked(node, body, len(state), collected)]


@imports("Scan")
def scan(node: Node) -> list[Operand]:
    """A loop over slices of its inputs; opset 8 adds a batch axis in front of all."""
    body = node.graph("body")
    count = node.integer("num_scan_inputs")
    if node.opset < 9:
        return _batched_scan(node, body, count)
    states = len(node.inputs) - count
    outputs = len(body.output) - states
    inputs = [node[index] for index in range(len(node.inputs))]
    in_axes = node.integers("scan_input_axes", (0,) * count)
    out_axes = node.integers("scan_output_axes", (0,) * outputs)
    backwards = node.integers("scan_input_directions", (0,) * count)
    prepend = node.integers("scan_output_directions", (0,) * outputs)
    axes = [_axis(o, axis) for o, axis in zip(inputs[states:], in_axes, strict=True)]
    state, made = _scanned(node, body, inputs[:states], inputs[states:], axes, backwards)
    return [
        *state,
        *(
            _joined(node, parts[::-1] if first else parts, axis)
            for parts, axis, first in zip(made, out_axes, prepend, strict=True)
        ),
    ]


def _batched_scan(node: Node, body: GraphProto, count: int) -> list[Operand]:
    """The scan of opset 8, where every value has a batch axis in front; a batch at a time."""
    if node.optional(0) is not None:
        raise UnsupportedError("sequence lengths are not known here")
    backwards = node.integers("directions", (0,) * count)
    inputs = [node[index] for index in range(1, len(node.inputs))]
    states = len(inputs) - count
    results: list[list[Operand]] = []
    for batch in range(_size(inputs[0], 0)):
        own = [node.add(Gather, operand, np.array(batch), 0) for operand in inputs]
        state, made = _scanned(node, body, own[:states], own[states:], [0] * count, backwards)
        results.append([*state, *(_joined(node, parts, 0) for parts in made)])
    return [_joined(node, list(parts), 0) for parts in zip(*results, strict=True)]


def _scanned(
    node: Node,
    body: GraphProto,
    state: list[Operand],
    scanned: Sequence[Operand],
    axes: Sequence[int],
    backwards: Sequence[int],
) -> tuple[list[Operand], list[list[Operand]]]:
    """The last state, and for each output the slices that the body made, in order."""
    trips = {_size(operand, axis) for operand, axis in zip(scanned, axes, strict=True)}
    if len(trips) != 1:
        raise ModelError(f"the scanned axes have the sizes {sorted(trips)}, but must be alike")
    (length,) = trips
    if not 0 < length <= _MAX_TRIPS:
        raise UnsupportedError(f"a scan of {length} slices is not unrolled")
    collected = []
    for trip in range(length):
        slices = [
            node.add(Gather, operand, np.array(length - 1 - trip if back else trip), axis)
            for operand, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        made = node.run_graph(body, *state, *slices)
        collected.append(made[len(state) :])
        state = made[: len(state)]
    return state, [list(parts) for parts in zip(*collected, strict=True)]


def _trips(node: Node) -> int | None:
    """How often a loop runs at most; `None` if only its condition says so."""
    limit = node.optional(0)
    if limit is None:
        return None
    if limit.value is None:
        raise UnsupportedError("the number of times is computed when the model runs")
    return max(0, int(limit.value.item()))


def _stacked(
    node: Node, body: GraphProto, states: int, collected: list[list[Operand]]
) -> list[Operand]:
    """What each time of a loop made, along a new first axis."""
    if not collected and len(body.output) > 1 + states:
        raise UnsupportedError("a loop that does not run once collects nothing")
    return [_joined(node, list(parts), 0) for parts in zip(*collected, strict=True)]


def _joined(node: Node, parts: list[Operand], axis: int) -> Operand:
    """Tensors of one shape along a new axis."""
    return node.add(Concat, parts=[node.add(Unsqueeze, part, (axis,)) for part in parts], axis=axis)


def _is_true(operand: Operand, what: str) -> bool:
    if operand.value is None:
        raise UnsupportedError(f"{what} is computed when the model runs")
    if operand.value.size != 1:
        raise ModelError(f"{what} has {operand.value.size} elements, but must have one")
    return bool(operand.value.item())


def _size(operand: Operand, axis: int) -> int:
    size = (operand.type.shape or ())[axis] if operand.type.shape else None
    if not isinstance(size, int):
        raise UnsupportedError(f"the size of axis {axis} of {operand.name!r} must be known")
    return size


def _axis(operand: Operand, axis: int) -> int:
    if operand.type.shape is None:
        raise UnsupportedError(f"the number of axes of {operand.name!r} must be known")
    return axis_from_front(axis, len(operand.type.shape))


def _constant(node: Node, value: np.ndarray) -> Operand:
    return node.constant(value)
