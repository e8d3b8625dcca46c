"""Operands that are parts of inputs, whose elements can be checked before a run."""

from __future__ import annotations

from collections.abc import Iterable

from crosschip.devices.openvino.requirements import Place
from crosschip.ir import Operand, Operation
from crosschip.ir.types import INDICES
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Flatten, Reshape, Squeeze, Transpose, Unsqueeze

_VIEWS = (Reshape, Transpose, Squeeze, Unsqueeze, Flatten, Assign)


class Parts:
    """Operands that hold all elements of an input, or those at one index of an axis, in any order.

    Args:
        inputs: the inputs.
    """

    def __init__(self, inputs: Iterable[Operand]) -> None:
        self._inputs = {operand: index for index, operand in enumerate(inputs)}
        self._parts_of_inputs: dict[Operand, tuple[int, Place]] = {
            operand: (index, ()) for operand, index in self._inputs.items()
        }

    def of(self, operand: Operand) -> tuple[int, Place] | None:
        """Return the input that an operand is part of, and the part; `None` if it is not one."""
        return self._parts_of_inputs.get(operand)

    def follow(self, operation: Operation) -> None:
        """Store whether an operation's output is a part of an input."""
        if isinstance(operation, Gather):
            part = self._picked(operation)
        elif isinstance(operation, _VIEWS) or _widens(operation):
            data = operation.inputs[0]
            part = None if data is None else self._parts_of_inputs.get(data)
        else:
            part = None
        if part is not None:
            self._parts_of_inputs[operation.outputs[0]] = part

    def _picked(self, op: Gather) -> tuple[int, Place] | None:
        """Return the part that GATHER selects: all elements at one index."""
        indices, shape, input = op.indices.value, op.input.type.shape, self._inputs.get(op.input)
        if input is None or indices is None or indices.size != 1 or shape is None:
            return None
        axis = op.axis % len(shape)
        size = shape[axis]
        return (input, (axis, indices.item() % size)) if isinstance(size, int) else None


def _widens(operation: Operation) -> bool:
    """Return whether an operation is a cast between index types."""
    if not isinstance(operation, Cast) or operation.dtype not in INDICES:
        return False
    return operation.input.type.element_type in INDICES
