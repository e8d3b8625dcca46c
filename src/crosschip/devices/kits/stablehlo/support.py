"""The operations of models of static shapes that a device supports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosschip.devices.kits.stablehlo.converters.table import sizing
from crosschip.devices.kits.stablehlo.graph import Emission
from crosschip.hal import Rule, Support
from crosschip.ir import Model, Operation
from crosschip.ops import Operator


def query(model: Model, emission: Emission) -> Sequence[Support]:
    """Return the support of each operation of a model of static shapes."""
    return [supports(operation, emission) for operation in model.operations]


def supports(operation: Operation, emission: Emission) -> Support:
    """Return whether there is a converter for an operation, with the reason if there is none."""
    for slot in _computed(operation):
        detail = "is computed at run time, but must be constant or follow from shapes here"
        return Support.no(operation, slot, detail, Rule.COMPUTED)
    return emission.converters.supports(operation)


def _computed(operation: Operation) -> Iterator[str]:
    """Yield the slots of parameters, and of tensors that determine sizes, that are not constant."""
    if isinstance(operation, Operator):
        tensors = sizing(operation)
        for slot, operand in operation.filled():
            if (slot.parameter or slot.name in tensors) and not operand.is_constant:
                yield slot.name
