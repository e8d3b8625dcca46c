"""Removal of transpositions that undo each other."""

from __future__ import annotations

from crosschip.ir import Model, Operand
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard.layout import Transpose
from crosschip.passes.base import Keeps, Pass
from crosschip.passes.rewriter import Rewriter


class CancelTransposes(Pass):
    """Merges a `TRANSPOSE` into the one before it.

    1. Two that undo each other vanish: readers read what the first one read.
    2. Two that do not become one; the first stays only if somebody else reads it.
    """

    keeps = Keeps.VALUES

    def __call__(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for operation in map(rewriter.resolved, model.operations):
            merged = _merged(operation, rewriter) if isinstance(operation, Transpose) else None
            if merged is None:
                rewriter.emit(operation)
                continue
            source, perm = merged
            if perm == tuple(range(len(perm))):
                rewriter.replace(operation.outputs[0], source)
            else:
                inputs = Transpose.bind(operation.name, (source, perm), {})
                rewriter.emit(operation.with_inputs(inputs))
        return rewriter.finish()


def _merged(second: Transpose, rewriter: Rewriter) -> tuple[Operand, tuple[int, ...]] | None:
    """What the two transpositions together read, and their joint permutation."""
    first = rewriter.producer(second.input)
    if not isinstance(first, Transpose):
        return None
    try:
        inner, outer = first.perm, second.perm
    except ComputedParameter:
        return None
    return first.input, tuple(inner[axis] % len(inner) for axis in outer)
