"""Bounds of integer operands, computed while a graph is built so that no run checks them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from crosschip.devices.openvino.requirements import Place
from crosschip.ir import Dim, Operand, Operation
from crosschip.ir.dimension import is_natural
from crosschip.ir.types import INDICES
from crosschip.lowering.ranges.analysis import LONGEST, Assumptions, Ranges
from crosschip.lowering.ranges.interval import Interval
from crosschip.lowering.ranges.upper_bounds import UpperBounds
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Flatten, Reshape, Squeeze, Transpose, Unsqueeze


class Bounds:
    """Upper bounds of integer operands, without assumptions about the inputs of the model."""

    def __init__(self) -> None:
        nothing = Assumptions({}, {}, LONGEST, (), Interval(-math.inf, math.inf))
        self._ranges = Ranges(nothing, {}, floats=False)
        self._lasts = UpperBounds()

    def follow(self, operation: Operation) -> None:
        """Derive the bounds of an operation's outputs from those of its inputs."""
        self._ranges.follow(operation)
        self._lasts.follow(operation)

    def are_within(self, indices: Operand, sizes: Sequence[Dim]) -> bool:
        """Return whether all indices are certainly in the range [0, size).

        Args:
            indices: one index per element; with several sizes, one index per size along the last
                axis.
            sizes: the sizes of the axes that are indexed.
        """
        range_ = self._ranges.of(indices)
        lasts = self._lasts.of_columns(indices, len(sizes))
        return all(
            (last is not None and is_natural(size - 1 - last))
            or (range_ is not None and isinstance(size, int) and range_ in Interval(0, size - 1))
            for size, last in zip(sizes, lasts, strict=True)
        )

    def greatest(self, indices: Operand, count: int) -> Sequence[Dim] | None:
        """Return the greatest index per indexed axis, or `None` if unknown.

        Args:
            indices: indices of 0 or more.
            count: the number of indexed axes; index tuples lie along the last axis of `indices`.
        """
        return self._lasts.reached(indices, count)


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
            part = self._selected_part(operation)
        elif isinstance(operation, _VIEWS) or _widens(operation):
            data = operation.inputs[0]
            part = None if data is None else self._parts_of_inputs.get(data)
        else:
            part = None
        if part is not None:
            self._parts_of_inputs[operation.outputs[0]] = part

    def _selected_part(self, op: Gather) -> tuple[int, Place] | None:
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
