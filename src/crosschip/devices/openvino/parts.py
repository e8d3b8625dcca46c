"""Operands that are parts of inputs: what is asked of their elements can be asked before a run."""

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
    """The operands that hold all elements of inputs, or those at one index, in any order.

    Args:
        inputs: the inputs.
    """

    def __init__(self, inputs: Iterable[Operand]) -> None:
        self._inputs = {operand: index for index, operand in enumerate(inputs)}
        self._parts_of_inputs: dict[Operand, tuple[int, Place]] = {
            operand: (index, ()) for operand, index in self._inputs.items()
        }

    def of(self, operand: Operand) -> tuple[int, Place] | None:
        """The input that it is a part of, and which one; `None` if it is none."""
        return self._parts_of_inputs.get(operand)

    def follow(self, operation: Operation) -> None:
        """Find whether what an operation makes is a part."""
        if isinstance(operation, Gather):
            picked = self._picked(operation)
        elif isinstance(operation, _VIEWS) or _widens(operation):
            data = operation.inputs[0]
            picked = None if data is None else self._parts_of_inputs.get(data)
        else:
            picked = None
        if picked is not None:
            self._parts_of_inputs[operation.outputs[0]] = picked

    def _picked(self, op: Gather) -> tuple[int, Place] | None:
        """What a gathering picks of an input, if that is all at one index."""
        places, shape, input = op.indices.value, op.input.type.shape, self._inputs.get(op.input)
        if input is None or places is None or places.size != 1 or shape is None:
            return None
        axis = op.axis % len(shape)
        size = shape[axis]
        return (input, (axis, places.item() % size)) if isinstance(size, int) else None


def _widens(operation: Operation) -> bool:
    """Tell whether an operation turns integers into others that are the same."""
    if not isinstance(operation, Cast) or operation.dtype not in INDICES:
        return False
    return operation.input.type.element_type in INDICES
