"""Conversion of control flow to ONNX `If`, `Loop` and `Scan`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from crosschip.devices.kits.onnx.converters import converters
from crosschip.devices.kits.onnx.converters.table import MOVABLE
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.devices.kits.onnx.lowering import lower
from crosschip.hal import YES, Rule, Support
from crosschip.ir import ControlFlow, Dim, ElementType, If, Loop, Model, Operand, Operation, Scan
from crosschip.onnx_messages import GraphProto


def supports(operation: Operation) -> Support:
    """Return whether an operation, and all operations in its bodies, have a converter."""
    if not isinstance(operation, ControlFlow):
        return converters.supports(operation)
    for role, body in zip(operation.roles, operation.bodies, strict=True):
        for inner in body.operations:
            answer = supports(inner)
            if not answer:
                rule = answer.rule or Rule.OPERATOR
                return Support.no(operation, role, answer.reason, rule)
        for operand in (*body.inputs.values(), *body.outputs.values()):
            if operand.type.element_type not in MOVABLE:
                detail = f"{operand.type.element_type} is not supported"
                return Support.no(operation, role, detail, Rule.ELEMENT_TYPE)
    return YES


def operators() -> Collection[str]:
    """Return the operators with a converter."""
    return converters.operators


def add_operation(graph: Graph, operation: Operation, label: str = "") -> None:
    """Add an operation of a model or a body to a graph.

    Args:
        graph: the graph.
        operation: the operation.
        label: the prefix of the node names; the operation's name if empty.
    """
    graph.label = label or operation.name
    if isinstance(operation, ControlFlow):
        graph.define(operation, _convert(graph, operation))
    else:
        for part in lower(operation, workarounds=graph.workarounds):
            graph.define(part, converters.convert(graph, part))


def _convert(graph: Graph, operation: ControlFlow) -> Sequence[str]:
    captures = operation.captures
    count = len(operation.outputs)
    names = ["" if o is None else graph[o] for o in operation.inputs]
    names = names[: len(names) - len(captures)]
    bodies = [_body(graph, body, captures) for body in operation.bodies]
    graph.label = operation.name
    match operation:
        case If():
            then_branch, else_branch = bodies
            return graph.add_all(
                "If", count, *names, then_branch=then_branch, else_branch=else_branch
            )
        case Loop():
            flat = zip(operation.inputs[:2], names[:2], strict=True)
            limits = [_as_scalar(graph, operand, name) for operand, name in flat]
            outputs = graph.add_all("Loop", count, *limits, *names[2:], body=bodies[0])
            return _restore_sizes(graph, operation, outputs)
        case Scan():
            return graph.add_all(
                "Scan",
                count,
                *names,
                body=bodies[0],
                num_scan_inputs=len(operation.input_axes),
                scan_input_axes=operation.input_axes,
                scan_input_directions=list(map(int, operation.input_reversed)),
                scan_output_axes=operation.output_axes or None,
                scan_output_directions=list(map(int, operation.output_reversed)) or None,
            )
    raise NotImplementedError(f"{operation.type} has no counterpart in ONNX")


def _restore_sizes(graph: Graph, loop: Loop, values: Sequence[str]) -> Sequence[str]:
    """Reshape the collected outputs of a loop to sizes that are known without a run.

    ONNX Runtime sets dynamic sizes to 0 if the body has not run.
    """
    sources: dict[Dim, tuple[Operand, int]] = {
        size: (operand, axis)
        for operand in (*graph.inputs, *loop.inputs)
        if operand is not None and operand.type.element_type is not ElementType.OBJECT
        for axis, size in enumerate(operand.type.shape or ())
        if not isinstance(size, int)
    }
    outputs = list(values)
    for index in range(loop.states, len(outputs)):
        name, sizes = outputs[index], (loop.outputs[index].type.shape or ())[1:]
        if sources.keys().isdisjoint(sizes):
            continue
        shape = [graph.add("Shape", name, end=1)]
        for axis, size in enumerate(sizes, 1):
            if isinstance(size, int):
                shape.append(graph.int64([size]))
            elif size in sources:
                source, source_axis = sources[size]
                shape.append(graph.sizes(source, source_axis, source_axis + 1))
            else:
                shape.append(graph.add("Shape", name, start=axis, end=axis + 1))
        outputs[index] = graph.add(
            "Reshape", name, graph.add("Concat", *shape, axis=0), allowzero=1
        )
    return outputs


def _as_scalar(graph: Graph, operand: Operand | None, name: str) -> str:
    """Return the name of a one-element value without axes, as bodies declare it."""
    if operand is None or operand.type.shape == ():
        return name
    return graph.add("Reshape", name, graph.int64([]))


def _body(graph: Graph, body: Model, captures: Sequence[Operand]) -> GraphProto:
    """Return a body as a graph that reads captures by their names in the outer graph."""
    inputs = list(body.inputs.values())
    body_inputs = inputs[: len(inputs) - len(captures)]
    inner = Graph(body_inputs, graph, body=True)
    for operand, captured in zip(inputs[len(body_inputs) :], captures, strict=True):
        inner.bind(operand, graph[captured])
    for operation in body.operations:
        add_operation(inner, operation)
    return inner.with_outputs(body.outputs.values())
