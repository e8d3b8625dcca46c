"""The constants of a model that are arguments of its function."""

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
    """Return the order of a filter's axes on the chip: window, input and output channels."""
    return (*range(2, rank), 1, 0)


class OnChip:
    """A weight in the chip's memory, as long as a program uses it.

    Attributes:
        value: the array.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: jax.Array) -> None:
        self.value = value


@dataclass(frozen=True, slots=True)
class Weight:
    """A large constant that is an argument.

    Attributes:
        operand: the constant.
        is_filter: whether it is stored on the chip in the order that convolutions read.
    """

    operand: Operand
    is_filter: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape on the chip."""
        shape = self.operand.type.static_shape or ()
        return tuple(shape[axis] for axis in filter_order(len(shape))) if self.is_filter else shape

    def elements(self) -> Array:
        """Return the elements in the order on the chip."""
        value = self.operand.value
        assert value is not None, "it is constant"
        if not self.is_filter:
            return value
        return np.ascontiguousarray(value.transpose(filter_order(value.ndim)))


def weights_of(model: Model) -> list[Weight]:
    """Return the large constants of a model, in its order."""
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
