"""Control flow: subgraphs that run conditionally or repeatedly."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.flatbuffer.schemas.tflite.options import CallOptions, IfOptions, WhileOptions
from crosschip.importers.body import Body, import_widened_body
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import If, Loop, Operand, TensorType


@imports("IF")
def if_(node: Node) -> Sequence[Operand]:
    """Import a branch; a constant condition selects it."""
    options = node.options(IfOptions)
    condition, arguments = node[0], [node[index] for index in range(1, len(node.inputs))]
    indices = options.then_subgraph_index, options.else_subgraph_index
    name = next(node.names)
    if condition.value is not None:
        index = indices[0] if condition.value.any() else indices[1]
        return node.subgraph.run_subgraph(index, arguments, name)
    types = [argument.type for argument in arguments]
    bodies = [node.subgraph.run_body(index, types, f"{name}/{index}") for index in indices]
    models = [body.model(()) for body in bodies]
    return node.control(lambda each: If(each, (condition, *arguments), bodies=models))


@imports("CALL")
def call(node: Node) -> Sequence[Operand]:
    index = node.options(CallOptions).subgraph
    return node.subgraph.run_subgraph(index, node.all_inputs(), next(node.names))


@imports("WHILE")
def while_(node: Node) -> Sequence[Operand]:
    """Import a loop: the body ends with the condition for its next iteration."""
    options = node.options(WhileOptions)
    state, name = node.all_inputs(), next(node.names)
    (condition,) = node.subgraph.run_subgraph(options.cond_subgraph_index, state, f"{name}/start")

    def import_body(types: Sequence[TensorType]) -> Body:
        return node.subgraph.run_loop_body(
            options.body_subgraph_index, options.cond_subgraph_index, types, name
        )

    types = [operand.type for operand in state]
    imported = import_widened_body(import_body, types, (2, 1), node.subgraph.shared.open_axes, name)
    model = imported.model(())
    return node.control(
        lambda each: Loop(each, (None, condition, *state), bodies=[model], states=len(state))
    )
