"""Removal of operations that return their input unchanged."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.ir import Model, ModelError, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import is_unknown
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.quantization import Reinterpret
from crosschip.ops.standard.slicing import Slice
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class RemoveIdentities(Pass):
    """Lets readers of an identity read its input.

    1. `ASSIGN`, `CAST` to the same type, `CONCAT` of one tensor.
    2. `RESHAPE`, `FLATTEN`, `SQUEEZE`, `UNSQUEEZE`, `EXPAND` and forward `SLICE` whose output has
       the shape of the input, with each size static or the same expression.
    3. `TRANSPOSE` with the identity permutation.
    4. Parts of `CONCAT` that have size 0 along the axis are removed, unless all parts have.
    5. `REINTERPRET` to the same quantization; a `REINTERPRET` of another one reads the input of
       the first.

    An operation that changes the type of its input, for example by requantizing, is no identity.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for resolved in map(rewriter.resolved, model.operations):
            operation = _drop_empty_parts(_skip_reinterpret(resolved, rewriter.producer))
            source = _identity_input(operation)
            if source is None:
                rewriter.keep(operation)
            else:
                rewriter.replace(operation.outputs[0], source)
        return rewriter.finish()

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for operation in after.operations:
            if _identity_input(operation) is not None:
                raise ModelError(f"{operation.type} {operation.name!r} is still an identity")


def _identity_input(operation: Operation) -> Operand | None:
    """Return the input that an identity returns unchanged; `None` for other operations."""
    source = _same_elements(operation)
    if source is None or not source.type.fits(operation.outputs[0].type):
        return None
    return source


def _skip_reinterpret(
    operation: Operation, producer: Callable[[Operand], Operation | None]
) -> Operation:
    """Let a `REINTERPRET` of a `REINTERPRET` read the input of the first."""
    if not isinstance(operation, Reinterpret):
        return operation
    before = producer(operation.input)
    if not isinstance(before, Reinterpret):
        return operation
    return operation.with_inputs((before.input, *operation.inputs[1:]))


def _drop_empty_parts(operation: Operation) -> Operation:
    """Return a `CONCAT` without empty parts; other operations unchanged."""
    if not isinstance(operation, Concat):
        return operation
    parts = [part for part in operation.parts if not _is_empty(part, operation.axis)]
    if not parts or len(parts) == len(operation.parts):
        return operation
    return operation.with_inputs((*parts, *operation.inputs[len(operation.parts) :]))


def _is_empty(part: Operand, axis: int) -> bool:
    shape = part.type.shape
    return shape is not None and shape[axis] == 0


def _same_elements(operation: Operation) -> Operand | None:
    """Return the input whose elements are the output's, in the same order, or `None`."""
    match operation:
        case Assign() | Reinterpret():
            return operation.input
        case Cast() if operation.dtype is operation.input.type.element_type:
            return operation.input
        case Concat() if len(operation.parts) == 1:
            return operation.parts[0]
        case Transpose() if _keeps_axes(operation):
            return operation.input
        case Slice() if _is_forward(operation) and _same_shape(operation.input, operation):
            return operation.input
        case Reshape() | Flatten() | Squeeze() | Unsqueeze() | Expand() if _same_shape(
            operation.input, operation
        ):
            return operation.input
    return None


def _keeps_axes(operation: Transpose) -> bool:
    try:
        perm = operation.perm
    except ComputedParameter:
        return False
    return [axis % len(perm) for axis in perm] == list(range(len(perm)))


def _is_forward(operation: Slice) -> bool:
    try:
        return all(step > 0 for step in operation.steps or ())
    except ComputedParameter:
        return False


def _same_shape(input: Operand, operation: Operation) -> bool:
    before, after = input.type.shape, operation.outputs[0].type.shape
    return before is not None and before == after and not any(map(is_unknown, before))
