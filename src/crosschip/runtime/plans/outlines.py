"""Serialization of the outline of a placed model to plain data, and its restoration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosschip.ir import Operand
from crosschip.ir.encoding import Fresh, decode_type, encode_type
from crosschip.ir.model import Deferred
from crosschip.runtime.outline import Outline, StoredOutline, StoredPart

if TYPE_CHECKING:
    from crosschip.hal.conditions import Condition
    from crosschip.ir import Model
    from crosschip.runtime.placement.placement import Placement


def describe_outline(outline: Outline) -> dict[str, Any]:
    """Return an outline as plain JSON values."""
    number: dict[Operand, int] = {}
    operands: list[list[Any]] = []

    def numbered(operand: Operand) -> int:
        if operand not in number:
            number[operand] = len(number)
            operands.append([operand.name, encode_type(operand.type, named=True)])
        return number[operand]

    inputs = [[name, numbered(operand)] for name, operand in outline.model.inputs.items()]
    parts = [
        [part.device, part.name, [*map(numbered, part.inputs)], [*map(numbered, part.outputs)]]
        for part in outline.segments
    ]
    return {
        "name": outline.model.name,
        "inputs": inputs,
        "outputs": [[name, numbered(o)] for name, o in outline.model.outputs.items()],
        "parts": parts,
        "operands": operands,
        "conditions": _describe_conditions(outline.conditions),
    }


def restore_outline(plain: Mapping[str, Any], placement: Callable[[], Placement]) -> StoredOutline:
    """Return the outline that `describe_outline` described.

    Args:
        plain: the result of `describe_outline`.
        placement: returns the placement, called when operations are requested.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: `plain` is malformed.
    """
    fresh: Fresh = {}
    operands = [Operand(str(name), decode_type(type_, fresh)) for name, type_ in plain["operands"]]
    name = str(plain["name"])
    inputs = {str(name): operands[number] for name, number in plain["inputs"]}
    outputs = {str(name): operands[number] for name, number in plain["outputs"]}
    parts = [
        _restore_part(index, part, operands, placement) for index, part in enumerate(plain["parts"])
    ]
    model = Deferred(name, inputs, outputs, lambda: placement().model)
    conditions = (
        _restore_conditions(plain["conditions"], model, fresh) if plain["conditions"] else ()
    )
    return StoredOutline(model, parts, conditions)


def _restore_part(
    index: int, part: Sequence[Any], operands: Sequence[Operand], placement: Callable[[], Placement]
) -> StoredPart:
    device, name, input_numbers, output_numbers = part
    inputs = tuple([operands[number] for number in input_numbers])
    outputs = tuple([operands[number] for number in output_numbers])
    model = Deferred(
        str(name),
        {f"input{number}": operand for number, operand in enumerate(inputs)},
        {f"output{number}": operand for number, operand in enumerate(outputs)},
        lambda: placement().segments[index].model,
    )
    return StoredPart(str(device), model, inputs, outputs)


def _describe_conditions(conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    from crosschip.runtime.artifact.conditions import describe_condition  # few models have any

    return [describe_condition(condition, named=True) for condition in conditions]


def _restore_conditions(
    plain: Sequence[Mapping[str, Any]], model: Model, fresh: Fresh
) -> list[Condition]:
    from crosschip.runtime.artifact.conditions import restore_condition  # few models have any

    return [restore_condition(condition, model, fresh) for condition in plain]
