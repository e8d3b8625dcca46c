"""The operands that a program's variables stand for while it is imported."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from crosschip.importers.paddle.program import Scalar
from crosschip.ir import Builder, ModelError, Operand
from crosschip.ir.types import FLOATS

MAX_ELEMENTS = 1024
"""The longest list of sizes or the like; only a damaged file has a longer one."""

Entries = Sequence[int | None]
"""The elements of a list of integers, `None` for those that are computed."""


class Values:
    """The operand that each variable stands for at the point reached so far.

    Attributes:
        builder: builds the model that the operands belong to.
        read: the variables that an operator reads or the program hands out.
    """

    def __init__(self, builder: Builder, read: Set[str]) -> None:
        self.builder = builder
        self.read = read
        self._operands: dict[str, Operand] = {}
        self._names: set[str] = set()
        self._entries: dict[Operand, Entries] = {}

    def __getitem__(self, variable: str) -> Operand:
        if variable not in self._operands:
            raise ModelError(f"{variable!r} is read, but nothing before makes it")
        return self._operands[variable]

    def define(self, variable: str, operand: Operand) -> None:
        """Let a variable stand for an operand from here on; Paddle may write to one again."""
        self._operands[variable] = operand

    def new_name(self, name: str) -> str:
        """The name for another operand: this one, or one like it if it is taken."""
        new = name
        while new in self._names:
            new = self.builder.unique_name(name)
        self._names.add(new)
        return new

    def entries(self, operand: Operand) -> Entries | None:
        """The elements of a list of integers, as far as known; `None` if not even how many."""
        if operand.is_constant:
            return [entry if isinstance(entry, int) else None for entry in elements(operand)]
        return self._entries.get(operand)

    def note(self, operand: Operand, entries: Entries) -> None:
        """Record what is known of the elements of a list of integers."""
        self._entries[operand] = entries


def elements(operand: Operand) -> list[Scalar]:
    """The elements of a constant that is a single value or a short list.

    Raises:
        ModelError: it has too many elements for that.
    """
    array = operand.value
    if array is None or array.size > MAX_ELEMENTS:
        raise ModelError(f"{operand.name!r} is {operand.type}, not a short list")
    if operand.type.element_type in FLOATS:
        array = array.astype(np.float64)
    found: list[Scalar] = array.ravel().tolist()
    return found
