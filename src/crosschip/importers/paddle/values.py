"""The operands of a program's variables during its import."""

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
"""The longest list of a parameter, such as sizes; only a damaged file has a longer one."""

Deferred = Callable[[], Mapping[str, Operand]]
"""Builds variables when the first of them is read."""


@dataclass
class LoopArray:
    """A tensor array inside of the body of a loop that appends one tensor in each iteration.

    Attributes:
        iteration: the number of earlier iterations, which is the length of the array.
        lengths: operands [1] that hold the same number.
        appended: the tensor that this iteration appends.
    """

    iteration: Operand
    lengths: set[Operand] = field(default_factory=set)
    appended: Operand | None = None


@dataclass(frozen=True)
class StackedArray:
    """A tensor array after the loop that filled it.

    Attributes:
        tensors: its tensors, stacked on axis 0.
    """

    tensors: Operand


class Values:
    """The current operand of each variable.

    Args:
        builder: the builder of the model, or of a body of control flow.
        read: the variables that are read or outputs of the program.
        outer: the values around the body, which captures those that it reads.

    Attributes:
        builder: the builder of the model or body.
        read: the variables that are read or outputs of the program.
        captures: the operands captured from outside of the body.
        open_axes: the axes of loop states whose sizes change between iterations.
        branches: the conditional blocks that define variables only if they run.
        choices: the selections between two blocks of opposite conditions that are not built yet.
        stacked: the scalars that a list was stacked from. Programs stack computed and constant
            sizes into a shape.
        lods: the LoD of variables with sequences.
        arrays: the tensors in each tensor array.
        rounded: the quantization of operands that have been quantized and dequantized.
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
        self.arrays: dict[str, Sequence[Operand] | LoopArray | StackedArray] = {}
        self.rounded: dict[Operand, Quantization] = {}
        self._outer = outer
        self._operands: dict[str, Operand] = {}
        self._deferred: dict[str, Deferred] = {}
        self._names: set[str] = set() if outer is None else outer._names
        self.stacked: dict[Operand, Sequence[Operand]] = {} if outer is None else outer.stacked

    def __getitem__(self, variable: str) -> Operand:
        if variable in self._deferred:
            self.define_deferred(self._deferred[variable])
        if variable in self._operands:
            return self._operands[variable]
        if self._outer is None:
            raise ModelError(f"{variable!r} is read before it is defined")
        outside = self._outer[variable]
        operand = self.captures.of(outside)
        if outside in self.stacked:
            self.stacked[operand] = self.stacked[outside]
        return operand

    def __contains__(self, variable: str) -> bool:
        """Return whether a variable is defined or deferred."""
        is_inner = variable in self._operands or variable in self._deferred
        return is_inner or (self._outer is not None and variable in self._outer)

    def define(self, variable: str, operand: Operand) -> None:
        """Set a variable to an operand, until the program overwrites the variable."""
        self._deferred.pop(variable, None)
        self._operands[variable] = operand

    def defer(self, variables: Sequence[str], make: Deferred) -> None:
        """Build all these variables when the first of them is read."""
        self._deferred.update(dict.fromkeys(variables, make))

    def define_deferred(self, make: Deferred) -> None:
        """Build deferred variables now, except those that have been overwritten since."""
        for variable, operand in make().items():
            if self._deferred.get(variable) == make:
                self.define(variable, operand)

    def is_deferred(self, variable: str) -> bool:
        """Return whether a variable is deferred."""
        return variable in self._deferred

    def new_name(self, name: str) -> str:
        """Return a unique name for an operand, `name` itself if it is unused."""
        new = name
        while new in self._names:
            new = self.builder.unique_name(name)
        self._names.add(new)
        return new


def elements(operand: Operand) -> list[Scalar]:
    """Return the elements of a constant; raise ModelError if there are too many for a parameter."""
    array = operand.value
    if array is None or array.size > MAX_ELEMENTS:
        raise ModelError(f"{operand.name!r} is {operand.type}, not a short list")
    if operand.type.element_type in FLOATS:
        array = array.astype(np.float64)
    values: list[Scalar] = array.ravel().tolist()
    return values
