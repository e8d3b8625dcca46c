"""The constants of a model that are arguments of the function that it becomes."""

from __future__ import annotations

import math
from collections import Counter

import jax
import numpy as np

from crosschip.ir import Array, Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.convolution import Conv

_LARGE_BYTES = 1024


def filter_order(rank: int) -> tuple[int, ...]:
    """The order of a filter's axes on the chip: those of a window, input and output channels."""
    return (*range(2, rank), 1, 0)


class OnChip:
    """A weight in the chip's memory, for as long as a program holds it.

    Attributes:
        value: the array.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: jax.Array) -> None:
        self.value = value


@dataclass(frozen=True, slots=True)
class Weight:
    """A large constant.

    Attributes:
        operand: the constant.
        is_filter: whether it is on the chip in the order in which convolutions read it.
    """

    operand: Operand
    is_filter: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape on the chip."""
        shape = self.operand.type.static_shape or ()
        return tuple(shape[axis] for axis in filter_order(len(shape))) if self.is_filter else shape

    def elements(self) -> Array:
        """Its elements as they are on the chip."""
        held = self.operand.value
        assert held is not None, "it is constant"
        if not self.is_filter:
            return held
        return np.ascontiguousarray(held.transpose(filter_order(held.ndim)))


def weights_of(model: Model) -> list[Weight]:
    """The constants that are no part of the function, in the model's order."""
    filters = Counter(
        operation.filter for operation in model.operations if isinstance(operation, Conv)
    )
    return [
        Weight(operand, filters[operand] == model.uses[operand])
        for operand in model.constants
        if _bytes(operand) >= _LARGE_BYTES
    ]


def _bytes(operand: Operand) -> int:
    return math.prod(operand.type.static_shape or ()) * operand.type.element_type.dtype.itemsize
