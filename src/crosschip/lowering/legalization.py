"""Legalization of a model by rewrites of single operations, as a target lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.decomposition import operations_for
from crosschip.ops import Operator

Rewrite = Callable[[Builder, Operator], Sequence[Operand] | None]
"""Builds operations in place of one, and returns what takes the place of its outputs.

It returns `None` where the operation is legal as it stands, and must make what it builds legal.
"""

Rewrites = Mapping[type[Operator], Sequence[Rewrite]]
"""The rewrites for each operator, in order; those of a class hold for it alone."""


@dataclass(frozen=True, slots=True)
class Legalized:
    """A model that a target computes right, one to one.

    Attributes:
        model: the model.
        sources: for each operation that a rewrite built, the operation that it was built for.
    """

    model: Model
    sources: Mapping[Operation, Operation]

    def source(self, operation: Operation) -> Operation:
        """The operation of the original model that an operation stands for."""
        return self.sources.get(operation, operation)


def legalize(model: Model, rewrites: Rewrites) -> Legalized:
    """Rewrite the operations of a model that a target does not compute right as they stand.

    What a rewrite builds is rewritten in turn. Its first operation of the same operator keeps the
    name of the one that it replaces, so that messages name what the user knows.

    Args:
        model: the model; it is returned itself if no rewrite applies.
        rewrites: those of the target.
    """
    operations: list[Operation] = []
    sources: dict[Operation, Operation] = {}
    taken: set[str] = set()
    for operation in model.operations:
        parts = _parts(operation, rewrites, taken)
        operations += parts
        if parts != (operation,):
            sources |= dict.fromkeys(parts, operation)
    if not sources:
        return Legalized(model, sources)
    return Legalized(Model(model.name, model.inputs, operations, model.outputs), sources)


def rebuild(b: Builder, op: Operator, **changes: object) -> Operand:
    """Add an operation of one output once more, with other operands or values for some slots."""
    arguments: dict[str, Any] = {slot.name: operand for slot, operand in op.filled()}
    return b.add(type(op), **{**arguments, **changes})


def _parts(operation: Operation, rewrites: Rewrites, taken: set[str]) -> tuple[Operation, ...]:
    """The operations that take the place of one; itself if no rewrite applies."""
    if not isinstance(operation, Operator):
        return (operation,)
    for rewrite in rewrites.get(type(operation), ()):
        builder = Builder(prefix=f"{operation.name}.", used_names=taken)
        results = rewrite(builder, operation)
        if results is not None:
            parts = list(operations_for(operation.outputs, results, builder))
            same = next((i for i, part in enumerate(parts) if part.type == operation.type), None)
            if same is not None:
                parts[same] = parts[same].called(operation.name)
            return tuple(
                legal.standing_for(operation)
                for part in parts
                for legal in _parts(part, rewrites, taken)
            )
    return (operation,)
