"""Tensors of a predictor: elements with a shape, and LoD levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from crosschip.ir import Array, InputError
from crosschip.ir.suggestion import did_you_mean

Levels = list[list[int]]
"""LoD: for each level, the offsets at which sequences begin."""


class Value:
    """A tensor of a predictor.

    Attributes:
        name: the model's name for the tensor.
        array: the elements; `None` before they are set.
        levels: the LoD.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.array: Array | None = None
        self.levels: Levels = []
        self._shape: tuple[int, ...] | None = None
        self._owned = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the elements, else the shape that `reshape` set, else `(0,)`."""
        return self._shape or (0,) if self.array is None else self.array.shape

    @property
    def has_shape(self) -> bool:
        """Whether elements or a shape have been set."""
        return self.array is not None or self._shape is not None

    def copy(self, source: Array) -> None:
        """Copy an array, into the previous copy's memory where shape and type are the same."""
        current = self.array
        if (
            current is None
            or not self._owned
            or current.shape != source.shape
            or current.dtype != source.dtype
        ):
            self.array = np.array(source, order="C", copy=True)
            self._owned = True
        else:
            np.copyto(current, source)

    def share(self, source: Array) -> None:
        """Use an array without a copy; its owner may change it between runs."""
        self.array, self._owned = source, False

    def reshape(self, shape: Sequence[int]) -> None:
        """Set the shape; keep the first elements if there are enough.

        Raises:
            InputError: the shape is no sequence of integers.
        """
        sizes = tuple(shape) if isinstance(shape, Sequence | np.ndarray) else None
        if sizes is None or not all(isinstance(size, int | np.integer) for size in sizes):
            raise InputError(f"{self.name!r}: the shape is {shape!r}, but must be integers")
        self._shape = tuple(int(size) for size in sizes)
        current, count = self.array, prod(self._shape)
        if current is None or min(self._shape, default=0) < 0 or count > current.size:
            self.array = None
        elif self._shape != current.shape:
            self.array = np.ascontiguousarray(current).reshape(-1)[:count].reshape(self._shape)

    def set_levels(self, levels: Any) -> None:
        """Set the LoD.

        Raises:
            InputError: a level is no list of integers that starts at 0 and does not decrease.
        """
        try:
            lists = [[int(offset) for offset in level] for level in levels]
        except (TypeError, ValueError):
            raise InputError(f"{self.name!r}: the LoD is {levels!r}, but must be lists") from None
        for level in lists:
            if level[:1] != [0] or sorted(level) != level:
                raise InputError(f"{self.name!r}: a level of LoD is {level}, but must grow from 0")
        self.levels = lists

    def elements(self) -> Array:
        """Return the elements.

        Raises:
            InputError: there are none yet.
        """
        if self.array is None:
            raise InputError(f"{self.name!r} has no elements; run the predictor before")
        return self.array


def find_value(kind: str, name: str, values: Mapping[str, Value]) -> Value:
    """Return the value with a name.

    Args:
        kind: "input" or "output", for the message.
        name: the name.
        values: all values, by name.

    Raises:
        InputError: no value has this name.
    """
    if name not in values:
        suggestion, names = did_you_mean(str(name), values), ", ".join(values)
        raise InputError(f"there is no {kind} {name!r}{suggestion}; there are {names}")
    return values[name]
