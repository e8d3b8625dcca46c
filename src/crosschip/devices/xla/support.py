"""Which operations the device runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from crosschip.devices.xla.converters import converters
from crosschip.devices.xla.converters.table import TYPES, sizing
from crosschip.devices.xla.fixing import describes_sizes
from crosschip.hal import Rule, Support
from crosschip.ir import Model, Operand, Operation
from crosschip.ops import Operator
from crosschip.ops.standard.searching import NonZero, Unique
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

__all__ = ["TYPES", "answers", "operators", "unresolved"]

_OF_DATA = (NonMaxSuppression, NonMaxSuppressionIndices, NonZero, Unique)


def operators() -> Collection[str]:
    """The operators that there are converters for."""
    return converters.operators


def answers(model: Model) -> Sequence[Support]:
    """The answer about each operation of a model."""
    found, known = [], _inputs_of_sizes(model)
    for operation in model.operations:
        answer = _answer(operation, known)
        found.append(answer)
        if answer and describes_sizes(operation, known):
            known.update(operation.outputs)
    return found


def unresolved(model: Model) -> Sequence[Operation]:
    """The operations that need to know what the shapes of the model's inputs do not tell."""
    found, known = [], _inputs_of_sizes(model)
    for operation in model.operations:
        if _unknown(operation, known):
            found.append(operation)
        if describes_sizes(operation, known):
            known.update(operation.outputs)
    return found


def _answer(operation: Operation, known: Collection[Operand]) -> Support:
    for slot, operand in _unknown(operation, known):
        if operand.type.shape_value is None:
            detail = "is computed at run time, but must be constant or follow from shapes here"
            return Support.no(operation, slot, detail, Rule.COMPUTED)
    if isinstance(operation, _OF_DATA):
        detail = "its size depends on data, and XLA compiles for sizes that are known"
        return Support.no(operation, "output", detail, Rule.SHAPE)
    return converters.supports(operation)


def _inputs_of_sizes(model: Model) -> set[Operand]:
    return {operand for operand in model.inputs.values() if operand.type.shape_value is not None}


def _unknown(operation: Operation, known: Collection[Operand]) -> list[tuple[str, Operand]]:
    """What must be known before a run and is not: parameters, and tensors that sizes depend on."""
    if not isinstance(operation, Operator):
        return []
    tensors = sizing(operation)
    return [
        (slot.name, operand)
        for slot, operand in operation.filled()
        if (slot.parameter or slot.name in tensors)
        and not operand.is_constant
        and operand not in known
    ]
