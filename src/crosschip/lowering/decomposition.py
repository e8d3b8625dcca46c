"""Decomposition of unsupported operations into simpler ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosschip.hal.support import Offer
from crosschip.ir import Builder, Model, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import operations_for

Ask = Callable[[Model], Offer]
"""Returns a device's offer for a model."""


@dataclass(frozen=True)
class Decompose(Pass):
    """Replaces operations that a device does not support by simpler ones that it does.

    Operations without a supported decomposition stay.

    Args:
        ask: returns the device's offer for a model.
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
    """Return supported operations that are equivalent to an operation, or `None`."""
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
    """Return a model of the parts of an operation, with its inputs and outputs."""
    read = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
    return Model(
        operation.name,
        {f"input{index}": operand for index, operand in enumerate(read)},
        parts,
        {f"output{index}": operand for index, operand in enumerate(operation.outputs)},
    )
