"""Operations as the simpler ones that a device runs in place of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosschip.hal.support import Offer
from crosschip.ir import Builder, Model, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import operations_for

Ask = Callable[[Model], Offer]
"""A device's offer for a model, whatever device it is."""


@dataclass(frozen=True)
class Decompose(Pass):
    """Replaces operations that a device does not support by simpler ones that it does.

    One that has no such form stays as it is.

    Args:
        ask: asks the device.
    """

    exact = False

    ask: Ask

    def rewrite(self, model: Model) -> Model:
        answers = self.ask(model).answers
        if all(answers):
            return model
        used_names = {operation.name for operation in model.operations}
        operations: list[Operation] = []
        for operation, answer in zip(model.operations, answers, strict=True):
            parts = None
            if not answer and isinstance(operation, Operator):
                parts = decompose(operation, self.ask, used_names)
            operations += [operation] if parts is None else parts
        return Model(model.name, model.inputs, operations, model.outputs)


def decompose(operation: Operator, ask: Ask, used_names: set[str]) -> Sequence[Operation] | None:
    """Replace an operation by simpler ones that the device supports; `None` if there are none."""
    builder = Builder(prefix=f"{operation.name}.", used_names=used_names)
    results = operation.decomposition(builder)
    if results is None:
        return None
    simpler = operations_for(operation.outputs, results, builder)
    offer = ask(model_of_parts(operation, simpler))
    if offer.groups or any(answer.dialect for answer in offer.answers):
        return None
    parts: list[Operation] = []
    for part, answer in zip(simpler, offer.answers, strict=True):
        if answer:
            parts.append(part)
            continue
        smaller = decompose(part, ask, used_names) if isinstance(part, Operator) else None
        if smaller is None:
            return None
        parts.extend(smaller)
    return parts


def model_of_parts(operation: Operation, parts: Sequence[Operation]) -> Model:
    """The parts of an operation as a model that reads and makes what the operation does."""
    read = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
    return Model(
        operation.name,
        {f"input{index}": operand for index, operand in enumerate(read)},
        parts,
        {f"output{index}": operand for index, operand in enumerate(operation.outputs)},
    )
