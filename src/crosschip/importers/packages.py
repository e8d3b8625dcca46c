"""Arguments of operators that packages define, and replacement of overridden standard operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crosschip.ir import Model, ModelError, Operand, Operation, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.slots import Parameter, Tensors
from crosschip.ops.packages import overriding_operator, packaged_operators


def arguments_in_order(
    operator: type[PackagedOperator],
    inputs: Sequence[Operand | None],
    setting: Callable[[str], object | None],
) -> dict[str, Any]:
    """Return arguments by slot name, for a file with positional inputs and named parameters.

    Args:
        operator: the operator of the package.
        inputs: the operands; `None` for an omitted one.
        setting: returns a parameter's value by its name in the definition; `None` if omitted.

    Raises:
        ModelError: there are more inputs than the operator has.
    """
    arguments: dict[str, Any] = {}
    remaining = list(inputs)
    tensors = [slot for slot in operator.slots if not slot.parameter]
    for index, slot in enumerate(tensors):
        if isinstance(slot, Tensors):
            # Optional tensors after the variadic slot are filled only if operands remain for them.
            required = sum(not later.optional for later in tensors[index + 1 :])
            after = min(len(tensors) - 1 - index, max(required, len(remaining) - 1))
            variadic = remaining[: len(remaining) - after]
            del remaining[: len(variadic)]
            arguments[slot.name] = [operand for operand in variadic if operand is not None]
        elif remaining:
            arguments[slot.name] = remaining.pop(0)
    if remaining:
        raise ModelError(f"has {len(inputs)} inputs, but {operator.type} takes {len(tensors)}")
    return {**arguments, **_parameters(operator, setting)}


def _parameters(
    operator: type[PackagedOperator], setting: Callable[[str], object | None]
) -> dict[str, Any]:
    by_slot = {slot: name for name, slot in operator.tensors.items()}
    values = {
        slot.name: setting(by_slot[slot.name])
        for slot in operator.slots
        if isinstance(slot, Parameter)
    }
    return {name: value for name, value in values.items() if value is not None}


def arguments_by_name(
    operator: type[PackagedOperator],
    inputs: Mapping[str, Sequence[Operand]],
    setting: Callable[[str], object | None],
) -> dict[str, Any]:
    """Return arguments by slot name, for a file with named inputs and parameters.

    Inputs are matched by their names in the definition. If none of the names occurs there, as with
    `in[0]`, they are matched in order.

    Raises:
        ModelError: an input's name is not in the definition, or a single tensor has several
            operands.
    """
    names = [
        name for name, slot in operator.tensors.items() if not getattr(operator, slot).parameter
    ]
    if names and not any(name in inputs for name in names):
        inputs = dict(zip(names, inputs.values(), strict=False))
    arguments: dict[str, Any] = {}
    for name, operands in inputs.items():
        slot = getattr(operator, operator.tensors[name]) if name in operator.tensors else None
        if slot is None:
            raise ModelError(
                f"{name}: {operator.type} has no such input; there are {', '.join(names)}"
            )
        if isinstance(slot, Tensors):
            arguments[slot.name] = list(operands)
        elif len(operands) > 1:
            raise ModelError(f"{name}: takes one tensor, not {len(operands)}")
        elif operands:
            arguments[slot.name] = operands[0]
    return {**arguments, **_parameters(operator, setting)}


def with_overriding(model: Model) -> Model:
    """Replace standard operations by the operators of packages that override them.

    Raises:
        UnsupportedError: the overriding operator lacks an input or output of the standard one.
    """
    if not any(operator.overrides for operator in packaged_operators().values()):
        return model
    operations = []
    replaced: dict[Operand, Operand] = {}
    for operation in model.operations:
        inputs = tuple(None if o is None else replaced.get(o, o) for o in operation.inputs)
        current = operation if inputs == operation.inputs else operation.with_inputs(inputs)
        override = overriding_operator(operation.type)
        if override is not None and isinstance(current, Operator):
            current = _convert_operation(override, current)
            replaced.update(zip(operation.outputs, current.outputs, strict=True))
        operations.append(current)
    outputs = {name: replaced.get(operand, operand) for name, operand in model.outputs.items()}
    return Model(model.name, model.inputs, operations, outputs)


def _convert_operation(operator: type[PackagedOperator], operation: Operator) -> Operation:
    """Return an operation of the package's operator with the operands of a standard operation."""
    by_tensor = dict(operator.tensors)
    arguments: dict[str, Any] = {}
    for slot, operand in operation.filled():
        slot_name = by_tensor.get(slot.name)
        if slot_name is None:
            raise UnsupportedError(
                f"{operation.type} {operation.name!r}: {operator.type} of the package "
                f"{operator.package!r} takes its place, but has no {slot.name!r}, which is filled"
            )
        if slot.variadic:
            arguments.setdefault(slot_name, []).append(operand)
        else:
            arguments[slot_name] = operand
    inputs = operator.bind(operation.name, (), arguments)
    quantization = operation.output_quantization
    replacement = operator(operation.name, inputs, (), quantization)
    types = replacement.infer()
    for before, type_ in zip(operation.outputs, types, strict=False):
        if len(types) != len(operation.outputs) or not type_.fits(before.type):
            raise UnsupportedError(
                f"{operation.type} {operation.name!r}: {operator.type} of the package "
                f"{operator.package!r} takes its place, but makes {', '.join(map(str, types))}"
            )
    outputs = tuple(
        Operand(before.name, type_) for before, type_ in zip(operation.outputs, types, strict=True)
    )
    return replacement.with_outputs(outputs).standing_for(operation)
