"""Control flow: subgraphs that run conditionally or repeatedly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import CallOptions, IfOptions, WhileOptions
from crosschip.flatbuffer.schemas.tflite.stablehlo_options import (
    StablehloCaseOptions,
    StableHLOCompositeOptions,
)
from crosschip.importers.body import Body, import_widened_body
from crosschip.importers.tflite.node import Node, Resource, imports
from crosschip.importers.tflite.subgraph import Argument, Value
from crosschip.importers.tflite.variable_uses import indices
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
def if_(node: Node) -> Sequence[Value]:
    """Import a branch; a constant condition selects it."""
    options = node.options(IfOptions)
    condition, arguments, name = node[0], node.values(1), next(node.names)
    branches = [options.then_subgraph_index, options.else_subgraph_index]
    if condition.value is not None:
        index = branches[0] if condition.value.any() else branches[1]
        return node.subgraph.run_subgraph(index, arguments, name)
    types, variables, operands = _passed(node, branches, arguments)
    bodies = [
        node.subgraph.run_body(index, types, variables, f"{name}/{index}") for index in branches
    ]
    models = [body.model(()) for body in bodies]
    results = node.control(lambda each: If(each, (condition, *operands), bodies=models))
    return _assign(node, results, variables)


def _passed(
    node: Node, called: Sequence[int], arguments: Sequence[Value]
) -> tuple[list[Argument], dict[str, TensorType], list[Operand]]:
    """Return what bodies take: types of arguments, types of variables, and the operands of both."""
    uses = node.subgraph.uses(called, arguments)
    current = {key: node.subgraph.variables.read(key, type_) for key, type_ in uses.types.items()}
    types = [each if isinstance(each, Resource) else each.type for each in arguments]
    variables = {key: value.type for key, value in current.items()}
    operands = [each for each in arguments if isinstance(each, Operand)]
    return types, variables, [*operands, *current.values()]


def _assign(
    node: Node, results: Sequence[Operand], variables: Mapping[str, TensorType]
) -> list[Value]:
    """Assign the last results to variables; return the others."""
    outputs: list[Value] = [*results[: len(results) - len(variables)]]
    for key, value in zip(variables, results[len(outputs) :], strict=True):
        node.subgraph.variables.present[key] = value
    return outputs


@imports("CALL")
def call(node: Node) -> Sequence[Value]:
    index = node.options(CallOptions).subgraph
    return node.subgraph.run_subgraph(index, node.values(), next(node.names))


@imports("STABLEHLO_COMPOSITE")
def composite(node: Node) -> Sequence[Value]:
    """Import the decomposition of an operator with a name of its own."""
    index = node.options(StableHLOCompositeOptions).decomposition_subgraph_index
    return node.subgraph.run_subgraph(index, node.values(), next(node.names))


@imports("STABLEHLO_CASE")
def case(node: Node) -> Sequence[Value]:
    """Import the branch of an index; of one out of range, the last branch."""
    branches = indices(node.options(StablehloCaseOptions).branch_subgraph_indices)
    if not branches:
        raise ModelError("has no branches")
    arguments, name, last = node.values(1), next(node.names), len(branches) - 1
    chosen = node[0].value if last else np.zeros(())
    if chosen is not None:
        index = int(chosen.item())
        index = branches[index if 0 <= index <= last else last]
        return node.subgraph.run_subgraph(index, arguments, name)
    types, variables, operands = _passed(node, branches, arguments)
    models = []
    for number, index in enumerate(branches):
        body = node.subgraph.run_body(index, types, variables, f"{name}/{number}")
        selector = Operand("index", TensorType(ElementType.INT32, ()))
        inputs = [selector, *body.inputs]
        body = Body(body.name, inputs, body.operations, body.outputs, body.captures)
        models.append(body.model(()))
    rest = models[-1]
    for number in range(last - 1, 0, -1):
        rest = _choice(node, number, models[number], rest)
    position = node.add(Reshape, node[0], ())
    is_first = node.add(Equal, position, np.array(0, np.int32))
    captures = (position, *operands)
    results = node.control(lambda each: If(each, (is_first, *captures), bodies=[models[0], rest]))
    return _assign(node, results, variables)


def _choice(node: Node, number: int, branch: Model, rest: Model) -> Model:
    """Return a model that runs a branch if its first input is a number, else the rest."""
    used_names = node.subgraph.shared.operation_names
    builder = Builder(f"{branch.name}/choice", used_names=used_names)
    inputs = [builder.input(name, operand.type) for name, operand in branch.inputs.items()]
    wanted = constant(np.array(number, np.int32), f"{branch.name}/number")
    is_this = builder.add(Equal, inputs[0], wanted)
    name = f"{branch.name}/if"
    choices = builder.insert(If(name, (is_this, *inputs), bodies=[branch, rest]))
    for output, result in zip(branch.outputs, choices, strict=True):
        builder.output(output, result)
    return builder.build()


@imports("WHILE")
def while_(node: Node) -> Sequence[Value]:
    """Import a loop: the body ends with the condition for its next iteration."""
    options = node.options(WhileOptions)
    called = options.cond_subgraph_index, options.body_subgraph_index
    arguments, name = node.values(), next(node.names)
    types, variables, state = _passed(node, called, arguments)
    (condition,) = node.subgraph.run_subgraph(called[0], arguments, f"{name}/start")
    if isinstance(condition, Resource):
        raise ModelError("the condition is a handle, not a tensor")

    def import_body(state_types: Sequence[TensorType]) -> Body:
        remaining = iter(state_types)
        widened = [each if isinstance(each, Resource) else next(remaining) for each in types]
        last = dict(zip(variables, remaining, strict=True))
        return node.subgraph.run_loop_body(called, widened, last, name)

    state_types = [operand.type for operand in state]
    open_axes = node.subgraph.shared.open_axes
    imported = import_widened_body(import_body, state_types, (2, 1), open_axes, name)
    model = imported.model(())
    results = node.control(
        lambda each: Loop(each, (None, condition, *state), bodies=[model], states=len(state))
    )
    outputs = iter(_assign(node, results, variables))
    return [each if isinstance(each, Resource) else next(outputs) for each in arguments]
