"""Operators of packages, as what a framework's own operators are imported as."""

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
    """Arguments by slot, where a file has inputs by position and parameters by name.

    Args:
        operator: what they are for.
        inputs: the operands; `None` where one is left out.
        setting: the value of a parameter by its name in the definition; `None` if it is left out.

    Raises:
        ModelError: there are more inputs than the operator has.
    """
    arguments: dict[str, Any] = {}
    left = list(inputs)
    tensors = [slot for slot in operator.slots if not slot.parameter]
    for index, slot in enumerate(tensors):
        if isinstance(slot, Tensors):
            # What may be left out is, before this has too few.
            needed = sum(not each.optional for each in tensors[index + 1 :])
            after = min(len(tensors) - 1 - index, max(needed, len(left) - 1))
            many = left[: len(left) - after]
            del left[: len(many)]
            arguments[slot.name] = [operand for operand in many if operand is not None]
        elif left:
            arguments[slot.name] = left.pop(0)
    if left:
        raise ModelError(f"has {len(inputs)} inputs, but {operator.type} takes {len(tensors)}")
    return {**arguments, **_settings(operator, setting)}


def _settings(
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
    """Arguments by slot, where a file has inputs by name, too.

    The inputs' names are those of the definition. Where none is, as with names like `in[0]`, they
    are taken in the order in which the file has them.

    Raises:
        ModelError: an input has a name that the definition has not, or several operands.
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
            known = ", ".join(names)
            raise ModelError(f"{name}: {operator.type} has no such input; there are {known}")
        if isinstance(slot, Tensors):
            arguments[slot.name] = list(operands)
        elif len(operands) > 1:
            raise ModelError(f"{name}: takes one tensor, not {len(operands)}")
        elif operands:
            arguments[slot.name] = operands[0]
    return {**arguments, **_settings(operator, setting)}


def with_overriding(model: Model) -> Model:
    """The model, with operators of packages in place of the standard ones that they override.

    Raises:
        UnsupportedError: one cannot say what the standard operator says.
    """
    if not any(operator.overrides for operator in packaged_operators().values()):
        return model
    operations = []
    replaced: dict[Operand, Operand] = {}
    for operation in model.operations:
        inputs = tuple(None if o is None else replaced.get(o, o) for o in operation.inputs)
        moved = operation if inputs == operation.inputs else operation.with_inputs(inputs)
        other = overriding_operator(operation.type)
        if other is not None and isinstance(moved, Operator):
            moved = _as(other, moved)
            replaced.update(zip(operation.outputs, moved.outputs, strict=True))
        operations.append(moved)
    outputs = {name: replaced.get(operand, operand) for name, operand in model.outputs.items()}
    return Model(model.name, model.inputs, operations, outputs)


def _as(operator: type[PackagedOperator], operation: Operator) -> Operation:
    """A standard operation as one of a package, with the same slots."""
    by_tensor = dict(operator.tensors)
    arguments: dict[str, Any] = {}
    for slot, operand in operation.filled():
        own = by_tensor.get(slot.name)
        if own is None:
            raise UnsupportedError(
                f"{operation.type} {operation.name!r}: {operator.type} of the package "
                f"{operator.package!r} takes its place, but has no {slot.name!r}, which is filled"
            )
        if slot.variadic:
            arguments.setdefault(own, []).append(operand)
        else:
            arguments[own] = operand
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
