"""Bodies of control flow as models: traversal, and type inference for other input types."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.ir.errors import ModelError
from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.type_joins import names_in, widen_type
from crosschip.ir.types import MAX_RANK, ElementType, TensorType


def walk_operations(model: Model) -> Iterator[Operation]:
    """Yield the operations of a model; each is followed by the operations of its bodies."""
    for operation in model.operations:
        yield operation
        for body in operation.bodies:
            yield from walk_operations(body)


def walk_constants(model: Model) -> Iterator[Operand]:
    """Yield the constants of a model and of the bodies in it."""
    yield from model.constants
    for operation in model.operations:
        for body in operation.bodies:
            yield from walk_constants(body)


def capture_type(operand: Operand) -> TensorType:
    """Return the type of a body's input for an operand, with the value of a small constant."""
    type_ = operand.type
    if (
        operand.content is None
        or type_.element_type not in _INTEGERS
        or math.prod(operand.content.shape) > MAX_RANK
    ):
        return type_
    return replace(type_, shape_value=tuple(np.asarray(operand.value).ravel().tolist()))


_INTEGERS = (ElementType.INT32, ElementType.INT64)


def retype(model: Model, types: Sequence[TensorType], widening: bool = False) -> Model:
    """Return the model with other input types, and all other types inferred from them.

    Args:
        model: the model; unchanged parts are shared with the result.
        types: one type per input, in order.
        widening: types inside bodies may only become wider.

    Raises:
        ModelError: the number of inputs differs, or an operation rejects the types.
    """
    if len(types) != len(model.inputs):
        raise ModelError(f"{model.name}: takes {len(model.inputs)} values, but gets {len(types)}")
    if all(o.type == type_ for o, type_ in zip(model.inputs.values(), types, strict=True)):
        return model
    pairs = zip(model.inputs.items(), types, strict=True)
    inputs = {name: Operand(operand.name, type_) for (name, operand), type_ in pairs}
    replaced = dict(zip(model.inputs.values(), inputs.values(), strict=True))
    return with_replaced_inputs(model, inputs, replaced, widening)


def with_replaced_inputs(
    model: Model,
    inputs: Mapping[str, Operand],
    replaced: Mapping[Operand, Operand],
    widening: bool = False,
) -> Model:
    """Return the model with other inputs, and all types that depend on them inferred again.

    Args:
        model: the model, which stays unchanged.
        inputs: the new inputs by name.
        replaced: the replacement of each replaced operand; it contains all removed inputs.
        widening: types inside bodies may only become wider.

    Raises:
        ModelError: an operation rejects its new inputs.
    """
    new = dict(replaced)
    operations = [_reinfer(operation, new, widening) for operation in model.operations]
    outputs = {name: new.get(o, o) for name, o in model.outputs.items()}
    return Model(model.name, inputs, operations, outputs)


def _reinfer(operation: Operation, replaced: dict[Operand, Operand], widening: bool) -> Operation:
    """Return the operation on its replaced inputs; add its new outputs to `replaced`."""
    inputs = tuple(None if o is None else replaced.get(o, o) for o in operation.inputs)
    if inputs == operation.inputs:
        return operation
    renewed = operation.adapt(inputs, widening=widening)
    try:
        types = renewed.infer()
    except ModelError as error:
        raise ModelError(f"{operation.name!r}: {error}") from None
    outputs = tuple(
        Operand(old.name, type_) for old, type_ in zip(operation.outputs, types, strict=True)
    )
    replaced.update(zip(operation.outputs, outputs, strict=True))
    return renewed.with_inputs(inputs, outputs)


def infer_body(
    operation: Operation,
    body: Model,
    before: Sequence[TensorType],
    state: Sequence[Operand],
    slices: Sequence[TensorType],
    captures: Sequence[Operand],
    skipped: int,
    widening: bool,
) -> Model:
    """Infer a loop's body for state types that hold both the initial state and each next state.

    The state types are widened until the body maps them to themselves (a fixed point).

    Args:
        operation: the loop.
        body: its body, which stays unchanged.
        before: types of the body's inputs before the state.
        state: the initial state.
        slices: types of the body's inputs after the state.
        captures: the operands of the body's last inputs.
        skipped: number of body outputs before the next state.
        widening: state types may only become wider than they are.
    """
    after = [*slices, *map(capture_type, captures)]
    types = [replace(operand.type, shape_value=None) for operand in state]
    outer = names_in([*types, *after])
    carried = list(body.inputs.items())[len(before) :][: len(types)]
    slots = [f"{operation.type}.{name}" for name, _ in carried]
    if widening:
        types = _widen_all(slots, [o.type for _, o in carried], types, outer, 0)
    effort = 0
    while True:
        body = retype(body, [*before, *types, *after], widening or effort > 0)
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
    for slot, old_type, new_type in zip(slots, old, new, strict=True):
        try:
            types.append(widen_type(old_type, new_type, outer, effort))
        except ModelError as error:
            raise ModelError(f"{slot}: {error}") from None
    return types
