"""Base class for the export of models to other systems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from crosschip.ir import Builder, Model, Operand, Operation, UnsupportedError
from crosschip.mapping.translation import Expressed
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.registry import operator_named

K = TypeVar("K")


class Writer(ABC, Generic[K]):
    """Writes a model operation by operation; each system has a subclass.

    An operation without a counterpart in the system is written as its decomposition. Operands are
    identified by an index, in the order of their declarations.

    Args:
        system: the system's name in messages.
        decomposing: whether to decompose operations without a counterpart; else they are refused.
    """

    def __init__(self, system: str, *, decomposing: bool = True) -> None:
        self._system = system
        self._decomposing = decomposing
        self._indices: dict[Operand, int] = {}
        self._aliases: dict[Operand, Operand] = {}

    def write(self, model: Model) -> tuple[Sequence[int], Sequence[int]]:
        """Write a model and return the operand indices of its inputs and of its outputs.

        An output that is a constant, an input or another output is copied.

        Raises:
            UnsupportedError: the system cannot express the model; the message names the operation.
        """
        inputs = [self.index_of(operand) for operand in model.inputs.values()]
        for operation in model.operations:
            self.operation(operation)
        outputs: list[int] = []
        for operand in model.outputs.values():
            resolved = self.resolve(operand)
            index = self.index_of(resolved)
            if resolved.value is not None or index in inputs or index in outputs:
                copy = Operand(f"{operand.name}.copy", resolved.type)
                self.operation(self.copy_operation(resolved, copy))
                index = self.index_of(copy)
            outputs.append(index)
        return inputs, outputs

    @abstractmethod
    def expressions(self, operation: Operator) -> Iterable[tuple[K, Expressed]]:
        """Yield the expressions of an operation with their keys for `call`; the first is written.

        Raises:
            UnsupportedError: there is none.
        """

    @abstractmethod
    def check(self, operand: Operand) -> None:
        """Raise UnsupportedError unless the operand can be declared."""

    @abstractmethod
    def declare(self, operand: Operand) -> None:
        """Write the declaration of an operand; its index is the number of earlier declarations."""

    @abstractmethod
    def call(self, key: K, expressed: Expressed) -> None:
        """Write the call that adds an operation."""

    def copy_operation(self, operand: Operand, copy: Operand) -> Operator:
        """Return an operation that copies an operand."""
        return operator_named("ASSIGN")(f"{operand.name}.assign", (operand,), (copy,))

    def operation(self, operation: Operation) -> None:
        """Write an operation.

        Raises:
            UnsupportedError: the system cannot express it.
        """
        refusal = UnsupportedError(f"{operation.name!r}: {self._system} has no {operation.type}")
        if not isinstance(operation, Operator):
            raise refusal
        try:
            for key, expressed in self.expressions(operation):
                return self._write_expressed(key, expressed)
        except UnsupportedError as error:
            refusal = error
        b = Builder(prefix=f"{operation.name}.")
        results = operation.decomposition(b) if self._decomposing else None
        if results is None:
            raise refusal
        try:
            for part in b.operations:
                self.operation(part)
        except UnsupportedError:
            raise refusal from None
        for output, result in zip(operation.outputs, results, strict=True):
            self.alias(output, result)
        return None

    def alias(self, operand: Operand, other: Operand) -> None:
        """Make `resolve` return `other` for an operand."""
        self._aliases[operand] = other

    def index_of(self, operand: Operand) -> int:
        """Return the index of an operand; declare it on the first call."""
        operand = self.resolve(operand)
        if operand not in self._indices:
            self.check(operand)
            self._indices[operand] = len(self._indices)
            self.declare(operand)
        return self._indices[operand]

    def _write_expressed(self, key: K, expressed: Expressed) -> None:
        for operand in (*expressed.inputs, *expressed.outputs):
            if operand is not None:
                self.check(self.resolve(operand))  # refused before anything is written
        for earlier in expressed.before:
            self.operation(earlier)
        self.call(key, expressed)
        for operation in expressed.after:
            self.operation(operation)

    def resolve(self, operand: Operand) -> Operand:
        """Return the operand that the aliases of an operand lead to, or the operand itself."""
        while operand in self._aliases:
            operand = self._aliases[operand]
        return operand
