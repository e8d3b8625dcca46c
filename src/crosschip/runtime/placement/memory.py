"""Limits on the memory that operations occupy on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.hal import Rule, Support
from crosschip.ir import Model, Operand, Operation
from crosschip.ir.bodies import walk_operations
from crosschip.runtime.costs.workload import nbytes_of


def over_limit(
    model: Model, devices: Sequence[str | None], limits: Mapping[str, int]
) -> list[tuple[str, int, Support]]:
    """Return the operations that do not fit in the memory of their device, with refusals.

    A device holds its constants once, and the tensors that operations on other devices or the
    caller read. Operations fit in an executable order; those after the first that does not fit are
    returned too, which gives fewer segments. Sizes that are not known count as 1.

    A device that is not limited has no entry in `limits`.

    Args:
        model: the model.
        devices: the device of each operation.
        limits: the maximum number of bytes, by device.

    Returns:
        The device, the index of the operation, and the refusal of each.
    """
    shared = _shared(model, devices)
    refused = []
    for device, limit in limits.items():
        held: set[Operand] = set()
        occupied = 0
        for index, operation in enumerate(model.operations):
            if devices[index] != device:
                continue
            tensors = {*_constants(operation), *shared.intersection(operation.outputs)} - held
            held |= tensors
            occupied += sum(nbytes_of(operand.type) for operand in tensors)
            if occupied > limit:
                detail = f"does not fit in the {limit} bytes of memory that the caller allows"
                refused.append((device, index, Support.no(operation, "", detail, Rule.CALLER)))
    return refused


def _shared(model: Model, devices: Sequence[str | None]) -> set[Operand]:
    """Return the operands that pass from a device to another or to the caller."""
    makers = {o: devices[i] for i, each in enumerate(model.operations) for o in each.outputs}
    shared = {operand for operand in model.outputs.values() if operand in makers}
    for index, operation in enumerate(model.operations):
        for operand in operation.inputs:
            if operand is not None and makers.get(operand, devices[index]) != devices[index]:
                shared.add(operand)
    return shared


def _constants(operation: Operation) -> set[Operand]:
    """Return the constants of an operation and of its bodies."""
    operations = [operation, *(o for body in operation.bodies for o in walk_operations(body))]
    operands = [operand for each in operations for operand in each.inputs if operand is not None]
    return {operand for operand in operands if operand.content is not None}
