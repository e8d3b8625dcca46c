"""A model as it is in a run, where every size is known."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.hal import CompileError
from crosschip.ir import Array, Model, ModelError, Operand, Operation, TensorType
from crosschip.ir.dimension import name_of
from crosschip.ops import Operator
from crosschip.ops.standard.creation import Rank, ShapeOf

_MOST_SIZES = 4096
"""How many elements are computed while compiling, so that parameters may depend on them."""


def describes_sizes(operation: Operation, known: Collection[Operand]) -> bool:
    """Whether an operation's results follow from the shapes of the model's inputs.

    Args:
        operation: any.
        known: the operands before it that do.
    """
    if isinstance(operation, ShapeOf | Rank):
        return True
    read = [operand for operand in operation.inputs if operand is not None]
    return (
        isinstance(operation, Operator)
        and any(operand in known for operand in read)
        and all(operand in known or operand.is_constant for operand in read)
    )


def fixed(model: Model, shapes: Sequence[tuple[int, ...]]) -> Model:
    """The model for inputs of these shapes: all sizes are numbers, and what follows is constant.

    Constants that are no sizes are the same operands as in the model.

    Raises:
        CompileError: an operation breaks a rule with these shapes, or a size depends on data.
    """
    sizes = _named_sizes(model, shapes)
    now = {
        operand: _input(operand, shape, sizes)
        for operand, shape in zip(model.inputs.values(), shapes, strict=True)
    }
    inputs = {
        name: Operand(operand.name, now[operand].type) for name, operand in model.inputs.items()
    }
    now.update(
        (operand, inputs[name])
        for name, operand in model.inputs.items()
        if not now[operand].is_constant
    )
    known = {operand for operand in now.values() if operand.is_constant}
    operations = []
    for operation in model.operations:
        made = _fixed(operation.with_inputs(_mapped(operation, now)), known)
        now.update(zip(operation.outputs, made.outputs, strict=True))
        if not all(output.is_constant for output in made.outputs):
            operations.append(made)
    outputs = {name: now.get(operand, operand) for name, operand in model.outputs.items()}
    return Model(model.name, inputs, operations, outputs)


def _named_sizes(model: Model, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The sizes that the inputs' types have names for."""
    found: dict[str, int] = {}
    for operand, shape in zip(model.inputs.values(), shapes, strict=True):
        for size, number in zip(operand.type.shape or (), shape, strict=False):
            name = name_of(size)
            if name is not None:
                found[name] = number
    return found


def _input(operand: Operand, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Operand:
    """An input of a known shape; a constant if it holds nothing but sizes, all of them known."""
    held = operand.type.substitute(sizes).shape_value
    type_ = replace(operand.type, shape=shape, shape_value=None)
    if held is None or not all(isinstance(size, int) for size in held):
        return Operand(operand.name, type_)
    return Operand(operand.name, type_, np.array(held, type_.element_type.dtype).reshape(shape))


def _mapped(operation: Operation, now: Mapping[Operand, Operand]) -> tuple[Operand | None, ...]:
    return tuple(
        None if operand is None else now.get(operand, operand) for operand in operation.inputs
    )


def _fixed(operation: Operation, known: set[Operand]) -> Operation:
    """An operation whose inputs have known sizes, with outputs that do; constant if they are sizes.

    Args:
        operation: on inputs as they are in the run.
        known: the constants that follow from shapes; those that it makes are added.
    """
    try:
        types = operation.infer()
    except ModelError as error:
        raise CompileError(f"xla: {operation.name!r}: {error}", [operation]) from None
    for type_ in types:
        if type_.static_shape is None:
            told = (
                f"xla: {operation.type} {operation.name!r}: the size of its result depends on data"
            )
            raise CompileError(told, [operation])
    values: Sequence[Array | None] = [None] * len(types)
    if describes_sizes(operation, known) and _are_few(types):
        assert isinstance(operation, Operator), "others describe no sizes"
        values = operation.kernel()([_elements(operand) for operand in operation.inputs])
    outputs = tuple(
        Operand(output.name, type_, value)
        for output, type_, value in zip(operation.outputs, types, values, strict=True)
    )
    known.update(output for output in outputs if output.is_constant)
    return operation.with_outputs(outputs)


def _are_few(types: Sequence[TensorType]) -> bool:
    return all(math.prod(type_.static_shape or ()) <= _MOST_SIZES for type_ in types)


def _elements(operand: Operand | None) -> Array | None:
    """What an operand holds; anything of its shape if only that counts."""
    if operand is None:
        return None
    held = operand.value
    if held is not None:
        return held
    nothing = np.zeros((), operand.type.element_type.dtype)
    return np.broadcast_to(nothing, operand.type.static_shape or ())
