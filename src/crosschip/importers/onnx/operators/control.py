"""Control flow: constant conditions select a branch, short loops of known length are unrolled.

Other control flow is imported with graphs as bodies. Optional values are supported if their
presence is static.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.body import Body
from crosschip.importers.facts import rank_of, size_of, value_of
from crosschip.importers.onnx.node import Node, axis_from_front, imports
from crosschip.importers.onnx.unrolling import MAX_TRIPS
from crosschip.ir import ElementType, If, Loop, ModelError, Operand, Scan, UnsupportedError
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.ir.type_joins import without_axis
from crosschip.onnx_messages import GraphProto
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Unsqueeze


@imports("If")
def if_(node: Node) -> Sequence[Operand]:
    branches = node.graph("then_branch"), node.graph("else_branch")
    condition = node[0]
    if condition.value is not None:
        return node.scope.run_graph(branches[0 if _is_true(condition) else 1], ())
    bodies = [node.scope.run_body(graph, ()) for graph in branches]
    captured = _captured_operands(*bodies)
    models = [body.model(captured) for body in bodies]
    return node.control(lambda name: If(name, (condition, *captured), bodies=models))


@imports("Loop")
def loop(node: Node) -> Sequence[Operand]:
    body = node.graph("body")
    limit, condition = node.optional(0), node.optional(1)
    state = [node[index] for index in range(2, len(node.inputs))]
    unrolled = node.scope.attempt(lambda: _unroll_loop(node, body, limit, condition, state))
    if unrolled is not None:
        return unrolled
    imported = node.scope.state_body(body, (ITERATION, CONDITION), [o.type for o in state], (), 1)
    captured = _captured_operands(imported)
    model = imported.model(captured)
    inputs = (limit, condition, *state, *captured)
    return node.control(lambda name: Loop(name, inputs, bodies=[model], states=len(state)))


def _unroll_loop(
    node: Node,
    body: GraphProto,
    limit: Operand | None,
    condition: Operand | None,
    state: Sequence[Operand],
) -> list[Operand]:
    """Unroll a loop whose number of iterations is static."""
    trips = (
        None if limit is None else max(0, int(_scalar_value(limit, "the number of times").item()))
    )
    if trips is not None and trips > MAX_TRIPS:
        raise UnsupportedError(f"a loop of {trips} times is not unrolled")
    proceed = condition or node.constant(np.array(True))
    collected: list[list[Operand]] = []
    for trip in range(MAX_TRIPS + 1):
        if trip == trips or not _is_true(proceed):
            break
        if trip == MAX_TRIPS:
            raise UnsupportedError(f"a loop of over {MAX_TRIPS} times is not unrolled")
        number = node.constant(_match_declared_rank(body, 0, np.array(trip)))
        proceed, *values = node.scope.run_graph(body, [number, proceed, *state])
        state = values[: len(state)]
        collected.append(values[len(state) :])
    return [*state, *_stack_outputs(node, body, len(state), collected)]


@imports("Scan")
def scan(node: Node) -> Sequence[Operand]:
    """Import Scan, a loop over slices of its inputs; in opset 8 all values have a batch axis."""
    body = node.graph("body")
    count = node.integer("num_scan_inputs")
    if node.opset < 9:
        return _import_batched_scan(node, body, count)
    states = len(node.inputs) - count
    outputs = len(body.output) - states
    inputs = [node[index] for index in range(len(node.inputs))]
    state, scanned = inputs[:states], inputs[states:]
    in_axes = node.integers("scan_input_axes", (0,) * count)
    out_axes = node.integers("scan_output_axes", (0,) * outputs)
    backwards = node.integers("scan_input_directions", (0,) * count)
    prepend = node.integers("scan_output_directions", (0,) * outputs)

    def unrolled() -> list[Operand]:
        axes = [axis_from_front(axis, rank_of(o)) for o, axis in zip(scanned, in_axes, strict=True)]
        last, stacked = _unroll_scan(node, body, state, scanned, axes, backwards)
        stacked_outputs = (
            _stack(node, parts[::-1] if first else parts, axis)
            for parts, axis, first in zip(stacked, out_axes, prepend, strict=True)
        )
        return [*last, *stacked_outputs]

    stacked = node.scope.attempt(unrolled)
    if stacked is not None:
        return stacked
    slices = [without_axis(o.type, axis) for o, axis in zip(scanned, in_axes, strict=True)]
    imported = node.scope.state_body(body, (), [o.type for o in state], slices, 0)
    captured = _captured_operands(imported)
    model = imported.model(captured)
    return node.control(
        lambda name: Scan(
            name,
            (*inputs, *captured),
            bodies=[model],
            states=states,
            input_axes=in_axes,
            input_reversed=[bool(flag) for flag in backwards],
            output_axes=out_axes,
            output_reversed=[bool(flag) for flag in prepend],
        )
    )


def _captured_operands(*bodies: Body) -> list[Operand]:
    """Return the operands that bodies capture, without duplicates."""
    return list(dict.fromkeys(operand for body in bodies for operand in body.captures.inside))


def _import_batched_scan(node: Node, body: GraphProto, count: int) -> list[Operand]:
    """Import the Scan of opset 8 by unrolling it for each index of the batch axis."""
    if node.optional(0) is not None:
        raise UnsupportedError("sequence lengths are not known here")
    backwards = node.integers("directions", (0,) * count)
    inputs = [node[index] for index in range(1, len(node.inputs))]
    states = len(inputs) - count
    results: list[list[Operand]] = []
    for batch in range(size_of(inputs[0], 0)):
        batch_inputs = [node.add(Gather, operand, np.array(batch), 0) for operand in inputs]
        state, slices = _unroll_scan(
            node, body, batch_inputs[:states], batch_inputs[states:], [0] * count, backwards
        )
        results.append([*state, *(_stack(node, parts, 0) for parts in slices)])
    return [_stack(node, list(parts), 0) for parts in zip(*results, strict=True)]


def _unroll_scan(
    node: Node,
    body: GraphProto,
    state: list[Operand],
    scanned: Sequence[Operand],
    axes: Sequence[int],
    backwards: Sequence[int],
) -> tuple[list[Operand], list[list[Operand]]]:
    """Unroll a scan; return the final state and, for each output, its slices in order."""
    trips = {size_of(operand, axis) for operand, axis in zip(scanned, axes, strict=True)}
    if len(trips) != 1:
        raise ModelError(f"the scanned axes have the sizes {sorted(trips)}, but must be alike")
    (length,) = trips
    if not 0 < length <= MAX_TRIPS:
        raise UnsupportedError(f"a scan of {length} slices is not unrolled")
    collected = []
    for trip in range(length):
        slices = [
            node.add(Gather, operand, np.array(length - 1 - trip if back else trip), axis)
            for operand, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        results = node.scope.run_graph(body, [*state, *slices])
        collected.append(results[len(state) :])
        state = results[: len(state)]
    return state, [list(parts) for parts in zip(*collected, strict=True)]


def _stack_outputs(
    node: Node, body: GraphProto, states: int, collected: list[list[Operand]]
) -> list[Operand]:
    """Stack the scan outputs of all iterations along a new first axis."""
    if not collected and len(body.output) > 1 + states:
        raise UnsupportedError("a loop that does not run once collects nothing")
    return [_stack(node, list(parts), 0) for parts in zip(*collected, strict=True)]


def _stack(node: Node, parts: list[Operand], axis: int) -> Operand:
    return node.add(Concat, parts=[node.add(Unsqueeze, part, (axis,)) for part in parts], axis=axis)


def _match_declared_rank(body: GraphProto, index: int, value: np.ndarray) -> np.ndarray:
    """Reshape a scalar to [1] if the body declares its input with one axis."""
    if index < len(body.input) and len(body.input[index].type.tensor_type.shape.dim) == 1:
        return value.reshape(1)
    return value


def _is_true(operand: Operand) -> bool:
    return bool(_scalar_value(operand, "the condition").item())


def _scalar_value(operand: Operand, what: str) -> np.ndarray:
    value = value_of(operand, what)
    if value.size != 1:
        raise ModelError(f"{what} has {value.size} elements, but must have one")
    return value


@imports("OptionalHasElement")
def optional_has_element(node: Node) -> Operand:
    value = _optional_tensor(node)
    return node.constant(np.array(value is not None))


@imports("Optional", "OptionalGetElement")
def optional_get_element(node: Node) -> Operand:
    value = _optional_tensor(node)
    if value is None:
        raise UnsupportedError("a value that is not there is no tensor")
    return value


def _optional_tensor(node: Node) -> Operand | None:
    """Return the tensor in an optional value, `None` if empty; raise if that is not static."""
    value = node.optional(0)
    if value is not None and value.type.element_type is ElementType.OBJECT:
        raise UnsupportedError("whether there is a value shows when the model runs")
    return value
