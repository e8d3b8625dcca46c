"""Removal of operations whose outputs are not used."""

from __future__ import annotations

from crosschip.ir import Model, ModelError
from crosschip.ir.dataclass import dataclass
from crosschip.passes.base import Pass


@dataclass(frozen=True)
class RemoveUnused(Pass):
    """Keeps only the operations that a model output depends on.

    Inputs stay, used or not: callers provide them.
    """

    def rewrite(self, model: Model) -> Model:
        needed = set(model.outputs.values())
        used = []
        for operation in reversed(model.operations):
            if not needed.isdisjoint(operation.outputs):
                used.append(operation)
                needed.update(operand for operand in operation.inputs if operand is not None)
        if len(used) == len(model.operations):
            return model
        return Model(model.name, model.inputs, reversed(used), model.outputs)

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for operation in after.operations:
            if after.uses.keys().isdisjoint(operation.outputs):
                raise ModelError(f"{operation.type} {operation.name!r} is not used")
