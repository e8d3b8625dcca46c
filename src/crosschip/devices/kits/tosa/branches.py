"""Branches without control flow: both are computed, and their results selected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosschip.ir import Builder, If, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import Where
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import operations_for


@dataclass(frozen=True)
class SelectBranches(Pass):
    """Replaces `IF` by the operations of both bodies, and `WHERE` on its condition.

    TOSA's control flow is an extension that few compilers have. Operations whose outputs' sizes
    depend on the branch stay.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        if not any(isinstance(operation, If) for operation in model.operations):
            return model
        used_names = {operation.name for operation in model.operations}
        operations = [
            part for operation in model.operations for part in _selected(operation, used_names)
        ]
        return Model(model.name, model.inputs, operations, model.outputs)


def _selected(operation: Operation, used_names: set[str]) -> Iterator[Operation]:
    """Yield the operations that replace one, also within bodies."""
    fixed = all(output.type.static_shape is not None for output in operation.outputs)
    if not isinstance(operation, If) or not fixed:
        yield operation
        return
    builder = Builder(prefix=f"{operation.name}.", used_names=used_names)
    condition = operation.condition
    if condition.type.shape != ():
        condition = builder.add(Reshape, condition, ())
    one, other = (_inline(builder, body, operation.captures) for body in operation.bodies)
    results = [builder.add(Where, condition, *pair) for pair in zip(one, other, strict=True)]
    for part in operations_for(operation.outputs, results, builder):
        yield from _selected(part.standing_for(operation), used_names)


def _inline(builder: Builder, body: Model, arguments: Sequence[Operand]) -> list[Operand]:
    """Append a body's operations, with operands for its inputs; return its outputs."""
    replaced = dict(zip(body.inputs.values(), arguments, strict=True))
    for operation in body.operations:
        reads = tuple(operand and replaced.get(operand, operand) for operand in operation.inputs)
        renamed = operation.with_name(builder.unique_name(operation.type.lower()))
        outputs = tuple(Operand(output.name, output.type) for output in operation.outputs)
        builder.append(renamed.with_inputs(reads, outputs))
        replaced.update(zip(operation.outputs, outputs, strict=True))
    return [replaced.get(operand, operand) for operand in body.outputs.values()]
