"""The bodies of control flow as models: walked, and inferred for other types than they had."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.ir.errors import ModelError
from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.types import MAX_RANK, ElementType, TensorType
from crosschip.ir.widening import names_in, widened


def every_operation(model: Model) -> Iterator[Operation]:
    """The operations of a model and, after each, those of the bodies that it holds."""
    for operation in model.operations:
        yield operation
        for body in operation.bodies:
            yield from every_operation(body)


def every_constant(model: Model) -> Iterator[Operand]:
    """The constants of a model and those of its bodies."""
    yield from model.constants
    for operation in model.operations:
        for body in operation.bodies:
            yield from every_constant(body)


def inner_type(operand: Operand) -> TensorType:
    """The type of what a body takes for an operand; of a constant with what it holds."""
    type_ = operand.type
    if (
        operand.content is None
        or type_.element_type not in _INTEGERS
        or math.prod(operand.content.shape) > MAX_RANK
    ):
        return type_
    return replace(type_, shape_value=tuple(np.asarray(operand.value).ravel().tolist()))


_INTEGERS = (ElementType.INT32, ElementType.INT64)


def retyped(model: Model, types: Sequence[TensorType], widening: bool = False) -> Model:
    """The model with other types for its inputs, and all others inferred from them.

    Args:
        model: not changed; what does not change is shared.
        types: one for each input, in order.
        widening: whether types in bodies may only become wider.

    Raises:
        ModelError: there are more or fewer inputs, or an operation does not take the types.
    """
    if len(types) != len(model.inputs):
        raise ModelError(f"{model.name}: takes {len(model.inputs)} values, but gets {len(types)}")
    if all(o.type == type_ for o, type_ in zip(model.inputs.values(), types, strict=True)):
        return model
    pairs = zip(model.inputs.items(), types, strict=True)
    inputs = {name: Operand(operand.name, type_) for (name, operand), type_ in pairs}
    replaced = dict(zip(model.inputs.values(), inputs.values(), strict=True))
    return substituted(model, inputs, replaced, widening)


def substituted(
    model: Model,
    inputs: Mapping[str, Operand],
    replaced: Mapping[Operand, Operand],
    widening: bool = False,
) -> Model:
    """The model with other inputs, and all types that depend on them inferred anew.

    Args:
        model: not changed.
        inputs: those that it is to have.
        replaced: what takes the place of operands of the model; all inputs that go are in it.
        widening: whether types in bodies may only become wider.

    Raises:
        ModelError: an operation does not take what it is to read.
    """
    new = dict(replaced)
    operations = [_renewed(operation, new, widening) for operation in model.operations]
    outputs = {name: new.get(o, o) for name, o in model.outputs.items()}
    return Model(model.name, inputs, operations, outputs)


def _renewed(operation: Operation, replaced: dict[Operand, Operand], widening: bool) -> Operation:
    """The operation on what its inputs have become; notes what its outputs become."""
    inputs = tuple(None if o is None else replaced.get(o, o) for o in operation.inputs)
    if inputs == operation.inputs:
        return operation
    renewed = operation.adapted(inputs, widening=widening)
    try:
        types = renewed.infer()
    except ModelError as error:
        raise ModelError(f"{operation.name!r}: {error}") from None
    outputs = tuple(
        Operand(old.name, type_) for old, type_ in zip(operation.outputs, types, strict=True)
    )
    replaced.update(zip(operation.outputs, outputs, strict=True))
    return renewed.with_inputs(inputs, outputs)


def settled(
    operation: Operation,
    body: Model,
    before: Sequence[TensorType],
    state: Sequence[Operand],
    slices: Sequence[TensorType],
    captures: Sequence[Operand],
    skipped: int,
    widening: bool,
) -> Model:
    """The body, inferred for state types that hold what it makes as well as the first state.

    Args:
        operation: whose body it is.
        body: not changed.
        before: the types of what the body takes before the state.
        state: the first state.
        slices: the types of what it takes after the state.
        captures: what it takes after that.
        skipped: how many values it makes before the next state.
        widening: whether the state's types may only become wider than they are.
    """
    after = [*slices, *map(inner_type, captures)]
    types = [replace(operand.type, shape_value=None) for operand in state]
    outer = names_in([*types, *after])
    carried = list(body.inputs.items())[len(before) :][: len(types)]
    slots = [f"{operation.type}.{name}" for name, _ in carried]
    if widening:
        types = _widen_all(slots, [o.type for _, o in carried], types, outer, 0)
    effort = 0
    while True:
        body = retyped(body, [*before, *types, *after], widening or effort > 0)
        output_types = [o.type for o in body.outputs.values()][skipped : skipped + len(types)]
        if len(output_types) < len(types):
            raise ModelError(
                f"{operation.type}.body: makes {len(body.outputs)} values, but must make at least "
                f"{skipped + len(types)}"
            )
        wider = _widen_all(slots, types, output_types, outer, effort)
        if wider == types:
            return body
        types = wider
        effort += 1


def _widen_all(
    slots: Sequence[str],
    old: Sequence[TensorType],
    new: Sequence[TensorType],
    outer: frozenset[str],
    effort: int,
) -> list[TensorType]:
    types = []
    for slot, one, other in zip(slots, old, new, strict=True):
        try:
            types.append(widened(one, other, outer, effort))
        except ModelError as error:
            raise ModelError(f"{slot}: {error}") from None
    return types
