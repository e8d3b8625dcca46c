"""Coverage of the operators by a device, from its answers about their examples."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.hal import Options
from crosschip.ir import Builder, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.definition.examples import examples_of, model_of
from crosschip.ops.definition.slots import Fuse
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.decision import Decision
from crosschip.runtime.placement.placement import place
from crosschip.runtime.placement.queries import device_query

NATIVE = "yes"
DECOMPOSED = "decomposed"
_PLAIN = Options()


def coverage(operator: type[Operator], device: GuardedDevice, options: Options = _PLAIN) -> str:
    """Return how a device runs an operator: `yes`, `decomposed`, or why it does not.

    It is `yes` if the device supports one of the operator's examples, and `decomposed` if it
    supports the decomposition of one. A device may still decline other uses.
    """
    count = len(examples_of(operator))
    decisions = [decide(operator, index, device, options) for index in range(count)]
    if any(isinstance(d, Decision) and d.parts[0].type == operator.type for d in decisions):
        return NATIVE
    if any(isinstance(decision, Decision) for decision in decisions):
        return DECOMPOSED
    return str(next(iter(decisions), f"{operator.type}: has no example"))


def decide(
    operator: type[Operator], index: int, device: GuardedDevice, options: Options = _PLAIN
) -> Decision | str:
    """Return the placement's decision about an example on one device, or the device's reason."""
    model = model_of(operator, examples_of(operator)[index])
    query = device_query(device, options)
    try:
        return place(model, {device.name: query}).decisions[0]
    except UnsupportedError:
        return query(model).answers[0].reason


def parts_of(operator: type[Operator]) -> Sequence[str]:
    """Return the operators in the decomposition of an operator's first plain example.

    A result that is a constant or an input becomes an ASSIGN.
    """
    for arguments in examples_of(operator):
        (operation,) = model_of(operator, arguments).operations
        assert isinstance(operation, Operator), "examples are of standard operators"
        if operation.quantized_inputs() or operation.fused is not Fuse.NONE:
            continue
        builder = Builder()
        results = operation.decomposition(builder)
        if results is not None:
            written = {operand for part in builder.operations for operand in part.outputs}
            parts = {part.type for part in builder.operations}
            assigns = set() if written.issuperset(results) else {"ASSIGN"}
            return sorted((parts | assigns) - {operator.type})
    return []
