"""Values that a program hands in and reads back: elements with a shape, and levels of sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from crosschip.ir import Array, InputError
from crosschip.ir.suggestion import did_you_mean

Levels = list[list[int]]
"""The offsets at which sequences begin (LoD), a list for each level."""


class Value:
    """A tensor of a predictor.

    Attributes:
        name: what the model calls it.
        array: its elements; `None` before there are any.
        levels: where sequences begin in it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.array: Array | None = None
        self.levels: Levels = []
        self._shape: tuple[int, ...] | None = None
        self._owned = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes: those of the elements, those that were given in advance, or `(0,)`."""
        return self._shape or (0,) if self.array is None else self.array.shape

    @property
    def has_shape(self) -> bool:
        """Whether there are elements, or sizes that were given in advance."""
        return self.array is not None or self._shape is not None

    def copy(self, source: Array) -> None:
        """Take a copy of an array, into the memory of the copy before if that fits."""
        held = self.array
        if (
            held is None
            or not self._owned
            or held.shape != source.shape
            or held.dtype != source.dtype
        ):
            self.array = np.array(source, order="C", copy=True)
            self._owned = True
        else:
            np.copyto(held, source)

    def share(self, source: Array) -> None:
        """Take an array as it is, whose owner may change it between runs."""
        self.array, self._owned = source, False

    def reshape(self, shape: Sequence[int]) -> None:
        """Give sizes; the first elements stay as far as there are enough of them.

        Raises:
            InputError: it is no list of integers.
        """
        sizes = tuple(shape) if isinstance(shape, Sequence | np.ndarray) else None
        if sizes is None or not all(isinstance(size, int | np.integer) for size in sizes):
            raise InputError(f"{self.name!r}: the shape is {shape!r}, but must be integers")
        self._shape = tuple(int(size) for size in sizes)
        held, count = self.array, prod(self._shape)
        if held is None or min(self._shape, default=0) < 0 or count > held.size:
            self.array = None
        elif self._shape != held.shape:
            self.array = np.ascontiguousarray(held).reshape(-1)[:count].reshape(self._shape)

    def set_levels(self, levels: Any) -> None:
        """Give the offsets at which sequences begin.

        Raises:
            InputError: they are no lists of integers that grow from 0.
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
        """The elements.

        Raises:
            InputError: there are none yet.
        """
        if self.array is None:
            raise InputError(f"{self.name!r} has no elements; run the predictor before")
        return self.array


def named(kind: str, name: str, values: Mapping[str, Value]) -> Value:
    """The value of a name.

    Args:
        kind: the sort of values, for the message.
        name: the one that is wanted.
        values: all there are, by name.

    Raises:
        InputError: there is none.
    """
    if name not in values:
        near, there = did_you_mean(str(name), values), ", ".join(values)
        raise InputError(f"there is no {kind} {name!r}{near}; there are {there}")
    return values[name]
