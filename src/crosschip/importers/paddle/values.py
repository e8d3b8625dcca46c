"""The operands that a program's variables stand for while it is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from typing import Any

import numpy as np

from crosschip.importers.body import Captures, OpenAxes
from crosschip.importers.paddle.lod import Lod
from crosschip.importers.paddle.program import Scalar
from crosschip.ir import Builder, ModelError, Operand, Quantization
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import FLOATS

MAX_ELEMENTS = 1024
"""The longest list of sizes or the like; only a damaged file has a longer one."""

Postponed = Callable[[], Mapping[str, Operand]]
"""Makes variables that nothing has asked for yet."""


@dataclass
class Appended:
    """An array as the body of the loop sees it.

    Attributes:
        iteration: how often the body has run before, which is how many tensors there are.
        lengths: operands that are this number in a list.
        added: what this run adds.
    """

    iteration: Operand
    lengths: set[Operand] = field(default_factory=set)
    added: Operand | None = None


@dataclass(frozen=True)
class Stacked:
    """An array after the loop.

    Attributes:
        tensors: its tensors, one behind the other on a first axis.
    """

    tensors: Operand


class Values:
    """The operand that each variable stands for at the point reached so far.

    Args:
        builder: builds the model, or the body of control flow, that the operands belong to.
        outer: the values around the body, which it captures when it reads them.

    Attributes:
        builder: builds the model that the operands belong to.
        read: the variables that an operator reads or the program hands out.
        captures: what has been read from outside.
        open_axes: the axes of the states of loops whose sizes change from time to time.
        branches: the conditional blocks that make variables only when they run.
        choices: the choices between two blocks of opposite conditions, until they are built.
        stacked: the tensors without axes that a list was stacked from. A program that computes only
            some of the sizes of a shape puts them together with constants so.
        lods: how the variables that hold sequences are divided into them.
        arrays: the tensors that each array of tensors holds.
        rounded: the reals that integers stand for, and how.
    """

    def __init__(
        self, builder: Builder, read: Set[str] = frozenset(), outer: Values | None = None
    ) -> None:
        self.builder = builder
        self.read: Set[str] = read if outer is None else outer.read
        self.captures = Captures()
        self.open_axes: OpenAxes = {} if outer is None else outer.open_axes
        self.branches: dict[str, Any] = {}
        self.choices: dict[Any, Any] = {}
        self.lods: dict[str, Lod] = {}
        self.arrays: dict[str, Sequence[Operand] | Appended | Stacked] = {}
        self.rounded: dict[Operand, Quantization] = {}
        self._outer = outer
        self._operands: dict[str, Operand] = {}
        self._postponed: dict[str, Postponed] = {}
        self._names: set[str] = set() if outer is None else outer._names
        self.stacked: dict[Operand, Sequence[Operand]] = {} if outer is None else outer.stacked

    def __getitem__(self, variable: str) -> Operand:
        if variable in self._postponed:
            self.define_postponed(self._postponed[variable])
        if variable in self._operands:
            return self._operands[variable]
        if self._outer is None:
            raise ModelError(f"{variable!r} is read, but nothing before makes it")
        outside = self._outer[variable]
        operand = self.captures.of(outside)
        if outside in self.stacked:
            self.stacked[operand] = self.stacked[outside]
        return operand

    def __contains__(self, variable: str) -> bool:
        """Tell whether something has made a variable, or will if it is asked for."""
        own = variable in self._operands or variable in self._postponed
        return own or (self._outer is not None and variable in self._outer)

    def define(self, variable: str, operand: Operand) -> None:
        """Let a variable stand for an operand from here on; Paddle may write to one again."""
        self._postponed.pop(variable, None)
        self._operands[variable] = operand

    def postpone(self, variables: Sequence[str], make: Postponed) -> None:
        """Let variables be made, all of them, when one of them is first asked for."""
        self._postponed.update(dict.fromkeys(variables, make))

    def define_postponed(self, make: Postponed) -> None:
        """Make postponed variables now, but those that have been written to since."""
        for variable, operand in make().items():
            if self._postponed.get(variable) == make:
                self.define(variable, operand)

    def is_postponed(self, variable: str) -> bool:
        """Tell whether a variable waits to be asked for."""
        return variable in self._postponed

    def new_name(self, name: str) -> str:
        """The name for another operand: this one, or one like it if it is taken."""
        new = name
        while new in self._names:
            new = self.builder.unique_name(name)
        self._names.add(new)
        return new


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
    values: list[Scalar] = array.ravel().tolist()
    return values
