"""Rewriting of single operations, by a function of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Assign
from crosschip.passes.base import Pass

Rewrite = Callable[[Builder, Any], Sequence[Operand] | None]
"""Builds operations in place of one, and returns what takes the place of its outputs.

It returns `None` where the operation stays as it is.
"""


@dataclass(frozen=True)
class RewriteOperations(Pass):
    """Replaces operations of some operators by what a function builds in their place.

    What the function builds is not rewritten in turn by the same pass. Its first operation of the
    same operator keeps the name of the one that it replaces, else the last one does, so that
    messages name what the user knows.

    Args:
        function: the rewrite.
        operators: the classes of the operations that it gets; classes derived from them do not
            count.
        where: finds the operations of a model to rewrite, if that depends on other operations.
    """

    exact = False

    function: Rewrite
    operators: tuple[type[Operator], ...]
    where: Callable[[Model], Collection[Operation]] | None = field(default=None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function.__module__}.{self.function.__name__})"

    def rewrite(self, model: Model) -> Model:
        candidates: Collection[Operation] = [
            o for o in model.operations if type(o) in self.operators
        ]
        if candidates and self.where is not None:
            chosen = self.where(model)
            candidates = [operation for operation in candidates if operation in chosen]
        if not candidates:
            return model
        used_names = {operation.name for operation in model.operations}
        replaced: dict[Operation, Sequence[Operation]] = {}
        for operation in candidates:
            builder = Builder(prefix=f"{operation.name}.", used_names=used_names)
            results = self.function(builder, operation)
            if results is not None:
                replaced[operation] = _named(operation, results, builder)
        if not replaced:
            return model
        operations = [part for o in model.operations for part in replaced.get(o, (o,))]
        return Model(model.name, model.inputs, operations, model.outputs)


def rebuild(b: Builder, op: Operator, **changes: object) -> Operand:
    """Add an operation of one output once more, with other operands or values for some slots."""
    arguments: dict[str, Any] = {slot.name: operand for slot, operand in op.filled()}
    quantization = op.output_quantization
    return b.add_all(type(op), quantization=quantization, **{**arguments, **changes})[0]


def constant_like(b: Builder, operand: Operand, value: float) -> Operand:
    """One number of the element type of an operand."""
    return b.constant(np.array(value, operand.type.element_type.dtype))


def operations_for(
    outputs: Sequence[Operand], results: Sequence[Operand], builder: Builder
) -> Sequence[Operation]:
    """The builder's operations, with the results renamed to the outputs that they replace."""
    computed = {operand for operation in builder.operations for operand in operation.outputs}
    renamed: dict[Operand, Operand] = {}
    for output, result in zip(outputs, results, strict=True):
        if result not in computed or result in renamed:
            result = builder.add(Assign, renamed.get(result, result))
        renamed[result] = output
    return [
        operation.with_inputs(
            tuple(None if o is None else renamed.get(o, o) for o in operation.inputs),
            tuple(renamed.get(o, o) for o in operation.outputs),
        )
        for operation in builder.operations
    ]


def sources(before: Model, after: Model) -> dict[Operation, Operation]:
    """For each operation of a rewritten model, the original one that it stands for.

    It is the one that makes the same operand, or the one for which the next operation stands.
    """
    originals: dict[Operation, Operation] = {}
    readers: dict[Operand, Operation] = {}
    for operation in reversed(after.operations):
        candidates = [before.producers.get(output) for output in operation.outputs]
        candidates += [readers.get(output) for output in operation.outputs]
        source = next((o for o in candidates if o is not None), operation)
        originals[operation] = source
        readers.update(dict.fromkeys((o for o in operation.inputs if o is not None), source))
    return originals


def _named(
    operation: Operation, results: Sequence[Operand], builder: Builder
) -> Sequence[Operation]:
    """The operations that replace one, of which one has its name."""
    parts = list(operations_for(operation.outputs, results, builder))
    same = (index for index, part in enumerate(parts) if part.type == operation.type)
    index = next(same, len(parts) - 1)
    parts[index] = parts[index].with_name(operation.name)
    return [part.standing_for(operation) for part in parts]
