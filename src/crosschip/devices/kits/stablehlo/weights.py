"""The constants of a model that are arguments of its function."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from crosschip.ir import Array, Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.convolution import Conv
from crosschip.ops.standard.matrix import FullyConnected

_LARGE_BYTES = 1024


def filter_order(rank: int) -> tuple[int, ...]:
    """Return the order of a filter's axes as an argument: window, input and output channels."""
    return (*range(2, rank), 1, 0)


@dataclass(frozen=True, slots=True)
class Weight:
    """A large constant that is an argument.

    Attributes:
        operand: the constant.
        is_filter: whether the argument has the order that convolutions and products read.
    """

    operand: Operand
    is_filter: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the argument."""
        shape = self.operand.type.static_shape or ()
        return tuple(shape[axis] for axis in filter_order(len(shape))) if self.is_filter else shape

    def elements(self) -> Array:
        """Return the elements in the order of the argument."""
        value = self.operand.value
        assert value is not None, "it is constant"
        if not self.is_filter:
            return value
        return np.ascontiguousarray(value.transpose(filter_order(value.ndim)))


class OnChip:
    """A weight in the chip's memory, as long as a program uses it.

    Attributes:
        value: the engine's object.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Any) -> None:
        self.value = value


class SharedWeights:
    """Weights in a chip's memory, shared by programs for several sets of input shapes.

    Args:
        put: copies an array to the chip's memory.
    """

    def __init__(self, put: Callable[[Array], Any]) -> None:
        self._put = put
        self._weights: WeakValueDictionary[Weight, OnChip] = WeakValueDictionary()
        self._lock = threading.Lock()

    def of(self, model: Model) -> list[OnChip]:
        """Return the weights of a model, copied unless a program still uses them."""
        with self._lock:
            return [self._on_chip(weight) for weight in weights_of(model)]

    def _on_chip(self, weight: Weight) -> OnChip:
        on_chip = self._weights.get(weight)
        if on_chip is None:
            on_chip = self._weights[weight] = OnChip(self._put(weight.elements()))
        return on_chip


def weights_of(model: Model) -> list[Weight]:
    """Return the large constants of a model, in its order."""
    filters = Counter(
        operation.filter if isinstance(operation, Conv) else operation.weight
        for operation in model.operations
        if isinstance(operation, Conv | FullyConnected)
    )
    return [
        Weight(operand, filters[operand] == model.uses[operand])
        for operand in model.constants
        if _bytes(operand) >= _LARGE_BYTES
    ]


def _bytes(operand: Operand) -> int:
    return math.prod(operand.type.static_shape or ()) * operand.type.element_type.dtype.itemsize
