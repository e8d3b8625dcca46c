"""Removal of transpositions that undo each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crosschip.ir import Model, ModelError, Operand, Operation
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard.layout import Transpose
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class CancelTransposes(Pass):
    """Merges a `TRANSPOSE` into the one before it.

    1. Two that undo each other vanish: readers read what the first one read.
    2. Two that do not become one; the first stays only if somebody else reads it.

    One that requantizes is left alone, and so is what reads it.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for operation in map(rewriter.resolved, model.operations):
            merged = _merged(operation, rewriter.producer)
            if merged is None:
                rewriter.keep(operation)
                continue
            source, perm = merged
            if perm == tuple(range(len(perm))):
                rewriter.replace(operation.outputs[0], source)
            else:
                inputs = Transpose.bind(operation.name, (source, perm), {})
                rewriter.emit(operation.with_inputs(inputs))
        return rewriter.finish()

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for operation in after.operations:
            if _merged(operation, after.producers.get) is not None:
                raise ModelError(f"{operation.type} {operation.name!r} still reads a TRANSPOSE")


def _merged(
    second: Operation, producer: Callable[[Operand], Operation | None]
) -> tuple[Operand, tuple[int, ...]] | None:
    """The input of a transposition and the one before it, and their joint permutation."""
    if not isinstance(second, Transpose):
        return None
    first = producer(second.input)
    if not isinstance(first, Transpose) or _requantizes(first) or _requantizes(second):
        return None
    try:
        inner, outer = first.perm, second.perm
    except ComputedParameter:
        return None
    return first.input, tuple(inner[axis] % len(inner) for axis in outer)


def _requantizes(operation: Transpose) -> bool:
    return bool(operation.quantized_inputs()) and not operation.moves_integers
