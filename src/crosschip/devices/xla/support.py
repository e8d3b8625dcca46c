"""The operations that the device supports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from crosschip.devices.xla.converters import converters
from crosschip.devices.xla.converters.table import sizing
from crosschip.hal import Rule, Support
from crosschip.ir import Model, Operation
from crosschip.ops import Operator


def operators() -> Collection[str]:
    """Return the operators that have converters."""
    return converters.operators


def answers(model: Model) -> Sequence[Support]:
    """Return the support of each operation of a model of static shapes."""
    return [_answer(operation) for operation in model.operations]


def _answer(operation: Operation) -> Support:
    for slot in _computed(operation):
        detail = "is computed at run time, but must be constant or follow from shapes here"
        return Support.no(operation, slot, detail, Rule.COMPUTED)
    return converters.supports(operation)


def _computed(operation: Operation) -> Iterator[str]:
    """Yield the slots of parameters, and of tensors that determine sizes, that are not constant."""
    if isinstance(operation, Operator):
        tensors = sizing(operation)
        for slot, operand in operation.filled():
            if (slot.parameter or slot.name in tensors) and not operand.is_constant:
                yield slot.name
