"""Removal of operations whose outputs nothing uses."""

from __future__ import annotations

from crosschip.ir import Model
from crosschip.passes.base import Keeps, Pass


class RemoveUnused(Pass):
    """Keeps the operations that a model output depends on, and no other.

    Inputs stay, used or not: they are what the caller provides.
    """

    keeps = Keeps.VALUES

    def __call__(self, model: Model) -> Model:
        needed = set(model.outputs.values())
        kept = []
        for operation in reversed(model.operations):
            if not needed.isdisjoint(operation.outputs):
                kept.append(operation)
                needed.update(operand for operand in operation.inputs if operand is not None)
        return Model(model.name, model.inputs, reversed(kept), model.outputs)
