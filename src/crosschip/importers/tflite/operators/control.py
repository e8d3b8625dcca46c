"""Control flow: subgraphs that run conditionally or repeatedly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import CallOptions, IfOptions, WhileOptions
from crosschip.flatbuffer.schemas.tflite.stablehlo_options import (
    StablehloCaseOptions,
    StableHLOCompositeOptions,
)
from crosschip.importers.body import Body, import_widened_body
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import (
    Builder,
    ElementType,
    If,
    Loop,
    Model,
    ModelError,
    Operand,
    TensorType,
    constant,
)
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.layout import Reshape


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


@imports("STABLEHLO_COMPOSITE")
def composite(node: Node) -> Sequence[Operand]:
    """Import the decomposition of an operator with a name of its own."""
    index = node.options(StableHLOCompositeOptions).decomposition_subgraph_index
    return node.subgraph.run_subgraph(index, node.all_inputs(), next(node.names))


@imports("STABLEHLO_CASE")
def case(node: Node) -> Sequence[Operand]:
    """Import the branch of an index; of one out of range, the last branch."""
    branches = node.options(StablehloCaseOptions).branch_subgraph_indices
    if branches is None or not len(branches):
        raise ModelError("has no branches")
    arguments, name = [node[index] for index in range(1, len(node.inputs))], next(node.names)
    last = len(branches) - 1
    if node[0].value is not None or not last:
        chosen = 0 if not last else int(node[0].value.item())  # type: ignore[union-attr]
        index = chosen if 0 <= chosen <= last else last
        return node.subgraph.run_subgraph(int(branches[index]), arguments, name)
    types = [argument.type for argument in arguments]
    models = []
    for number, index in enumerate(branches.tolist()):
        body = node.subgraph.run_body(index, types, f"{name}/{number}")
        selector = Operand("index", TensorType(ElementType.INT32, ()))
        inputs = [selector, *body.inputs]
        body = Body(body.name, inputs, body.operations, body.outputs, body.captures)
        models.append(body.model(()))
    rest = models[-1]
    for number in range(last - 1, 0, -1):
        rest = _choice(node, number, models[number], rest)
    position = node.add(Reshape, node[0], ())
    is_first = node.add(Equal, position, np.array(0, np.int32))
    operands = (is_first, position, *arguments)
    return node.control(lambda each: If(each, operands, bodies=[models[0], rest]))


def _choice(node: Node, number: int, branch: Model, rest: Model) -> Model:
    """Return a model that runs a branch if its first input is a number, else the rest."""
    used_names = node.subgraph.shared.operation_names
    builder = Builder(f"{branch.name}/choice", used_names=used_names)
    inputs = [builder.input(name, operand.type) for name, operand in branch.inputs.items()]
    wanted = constant(np.array(number, np.int32), f"{branch.name}/number")
    is_this = builder.add(Equal, inputs[0], wanted)
    name = f"{branch.name}/if"
    results = builder.insert(If(name, (is_this, *inputs), bodies=[branch, rest]))
    for output, result in zip(branch.outputs, results, strict=True):
        builder.output(output, result)
    return builder.build()


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
