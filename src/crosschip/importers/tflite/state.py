"""Variables of a model as state: inputs and outputs that a session passes from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from crosschip.importers.tflite.variable_uses import COUNTER
from crosschip.ir import (
    Builder,
    ElementType,
    ModelError,
    Operand,
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.logical import Where

_NOT_IN_A_NAME = re.compile(r"[^\w.]+")
_INITIALIZED = "initialized"


class Variables:
    """The values that variables have in a model or in a body of control flow.

    Args:
        builder: the builder of the model or the body.
        values: the values at its start, by the variables' keys.
    """

    def __init__(self, builder: Builder, values: Mapping[str, Operand]) -> None:
        self._builder = builder
        self.present: dict[str, Operand] = dict(values)

    def read(self, key: str, type_: TensorType) -> Operand:
        """Return the value of a variable.

        Args:
            key: what identifies the variable.
            type_: its type, for a variable that begins with zeros.

        Raises:
            ModelError: its shape or its type changes.
        """
        if key not in self.present:
            self.present[key] = self._first_value(key, type_)
        return self.present[key]

    def assign(self, key: str, value: Operand) -> None:
        """Assign a value to a variable."""
        self.read(key, value.type)
        self.present[key] = value

    def initialize(self, key: str, value: Operand) -> None:
        """Set the value with which a variable begins."""
        raise UnsupportedError(f"sets the first value of {key!r} in a body of control flow")

    def advance(self, key: str, step: int) -> Operand:
        """Return the value of a counter, int64, which begins with 0, and add a step to it."""
        value = self.read(key, COUNTER)
        self.present[key] = self._builder.add(Add, value, np.array(step, np.int64))
        return value

    def rename(self, renamed: Mapping[Operand, Operand]) -> None:
        """Replace values that have been renamed."""
        self.present = {key: renamed.get(value, value) for key, value in self.present.items()}

    def _first_value(self, key: str, type_: TensorType) -> Operand:
        """Return the value of a variable that has none yet."""
        raise UnsupportedError(f"the variable {key!r} is not one that its callers pass")


class State(Variables):
    """The variables of one model.

    A session's state begins with zeros, a quantized one with its zero point. So, if a variable
    begins with other values, the state has a flag, false in the first run, which chooses between
    these values and the past ones.

    Args:
        builder: the builder of the model.
        assigned: the keys of the variables that the model assigns.
    """

    def __init__(self, builder: Builder, assigned: frozenset[str]) -> None:
        super().__init__(builder, {})
        self._assigned = assigned
        self._initial: dict[str, Operand] = {}
        self._past: dict[str, Operand] = {}
        self._flag: Operand | None = None
        self._names: dict[str, str] = {}

    def initialize(self, key: str, value: Operand) -> None:
        self._initial[key] = value

    def assign(self, key: str, value: Operand) -> None:
        if key not in self._past:
            self._declare(key, value.type)
        self.present[key] = value

    def add_outputs(self) -> None:
        """Declare the outputs with which the next run begins."""
        for key, past in self._past.items():
            present = self.present.get(key, past)
            if not present.type.fits(past.type):
                raise ModelError(f"variable {key!r} is {past.type}, but becomes {present.type}")
            self._builder.output(f"present.{self._names[key]}", present)
        if self._flag is not None:
            self._builder.output(
                f"present.{_INITIALIZED}", constant(np.array(True), f"present.{_INITIALIZED}")
            )

    def _first_value(self, key: str, type_: TensorType) -> Operand:
        initial = self._initial.get(key)
        if key not in self._assigned:
            if initial is not None:
                return initial
            zeros = np.full(type_.static_shape or (), type_.zero, type_.element_type.dtype)
            return constant(zeros, key, type_.quantization)
        past = self._declare(key, type_ if initial is None else initial.type)
        if initial is None or (
            initial.value is not None and np.all(initial.value == initial.type.zero)
        ):
            return past
        if self._flag is None:
            self._flag = self._builder.input(
                f"past.{_INITIALIZED}", TensorType(ElementType.BOOL, ())
            )
        return self._builder.add(Where, self._flag, past, initial)

    def _declare(self, key: str, type_: TensorType) -> Operand:
        """Declare the input for a variable's past value."""
        if key not in self._past:
            stem = _NOT_IN_A_NAME.sub("_", key).strip("_") or "variable"
            name, number = stem, 1
            while name in self._names.values() or name == _INITIALIZED:
                number += 1
                name = f"{stem}_{number}"
            self._names[key] = name
            self._past[key] = self._builder.input(f"past.{name}", type_)
        return self._past[key]
