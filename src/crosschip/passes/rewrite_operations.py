"""Rewriting of single operations by functions."""

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
"""Builds the operations that replace one, and returns the operands that replace its outputs.

Returns `None` to keep the operation.
"""


@dataclass(frozen=True)
class RewriteOperations(Pass):
    """Replaces operations of some operators by what a function builds.

    The pass does not rewrite operations that the function builds. The first new operation of the
    same operator, or else the last one, keeps the original name for messages to users.

    Args:
        function: the rewrite.
        operators: the exact classes of the operations to rewrite; derived classes are not.
        where: returns the operations of a model to rewrite, if that depends on other operations.
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
                replaced[operation] = _name_operations(operation, results, builder)
        if not replaced:
            return model
        operations = [part for o in model.operations for part in replaced.get(o, (o,))]
        return Model(model.name, model.inputs, operations, model.outputs)


def rebuild(b: Builder, op: Operator, **changes: object) -> Operand:
    """Add a copy of a one-output operation with some slots changed."""
    arguments: dict[str, Any] = {slot.name: operand for slot, operand in op.filled()}
    quantization = op.output_quantization
    return b.add_all(type(op), quantization=quantization, **{**arguments, **changes})[0]


def constant_like(b: Builder, operand: Operand, value: float) -> Operand:
    """Add a scalar constant of an operand's element type."""
    return b.constant(np.array(value, operand.type.element_type.dtype))


def operations_for(
    outputs: Sequence[Operand], results: Sequence[Operand], builder: Builder
) -> Sequence[Operation]:
    """Return the builder's operations; the results get the names of the outputs they replace."""
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
    """Map each operation of a rewritten model to the original operation that it implements.

    That is the original producer of one of its outputs, or else the source of a reader.
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


def _name_operations(
    operation: Operation, results: Sequence[Operand], builder: Builder
) -> Sequence[Operation]:
    """Return the operations that replace one; one of them gets its name."""
    parts = list(operations_for(operation.outputs, results, builder))
    same = (index for index, part in enumerate(parts) if part.type == operation.type)
    index = next(same, len(parts) - 1)
    parts[index] = parts[index].with_name(operation.name)
    return [part.standing_for(operation) for part in parts]
