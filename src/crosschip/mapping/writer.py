"""Models written out in the operators of another system."""

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
    """Writes a model out, operation by operation; each interface says how in a subclass.

    What an interface has no operator for is written as the simpler operators that it decomposes
    into. Operands are told by their places, in the order in which they are declared.

    Args:
        system: what messages call the interface.
        decomposing: whether to do so; else such an operation is refused.
    """

    def __init__(self, system: str, *, decomposing: bool = True) -> None:
        self._system = system
        self._decomposing = decomposing
        self._places: dict[Operand, int] = {}
        self._same: dict[Operand, Operand] = {}

    def written(self, model: Model) -> tuple[Sequence[int], Sequence[int]]:
        """Write a model, and give the places of its inputs and of its outputs.

        An output that is a constant, an input or another output is handed out as a copy.

        Raises:
            UnsupportedError: the interface has no way to say it; the message names the operation.
        """
        inputs = [self.place(operand) for operand in model.inputs.values()]
        for operation in model.operations:
            self.operation(operation)
        outputs: list[int] = []
        for operand in model.outputs.values():
            resolved = self.resolved(operand)
            place = self.place(resolved)
            if resolved.value is not None or place in inputs or place in outputs:
                copy = Operand(f"{operand.name}.copy", resolved.type)
                self.operation(self.copied(resolved, copy))
                place = self.place(copy)
            outputs.append(place)
        return inputs, outputs

    @abstractmethod
    def expressions(self, operation: Operator) -> Iterable[tuple[K, Expressed]]:
        """The ways to express an operation, the first of which is taken, with what they call.

        Raises:
            UnsupportedError: there is none; also where nothing is given.
        """

    @abstractmethod
    def check(self, operand: Operand) -> None:
        """Check that an operand can be declared.

        Raises:
            UnsupportedError: it cannot.
        """

    @abstractmethod
    def declare(self, operand: Operand) -> None:
        """Write the declaration of an operand; its place is how many there were."""

    @abstractmethod
    def call(self, key: K, expressed: Expressed) -> None:
        """Write the call that adds an operation."""

    def copied(self, operand: Operand, copy: Operand) -> Operator:
        """The operation that makes a copy of an operand."""
        return operator_named("ASSIGN")(f"{operand.name}.assign", (operand,), (copy,))

    def operation(self, operation: Operation) -> None:
        """Write an operation.

        Raises:
            UnsupportedError: the interface has no way to say it.
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
        """Let another operand stand for one."""
        self._same[operand] = other

    def place(self, operand: Operand) -> int:
        """The place of an operand, which is declared when it is first asked for."""
        operand = self.resolved(operand)
        if operand not in self._places:
            self.check(operand)
            self._places[operand] = len(self._places)
            self.declare(operand)
        return self._places[operand]

    def _write_expressed(self, key: K, expressed: Expressed) -> None:
        for operand in (*expressed.inputs, *expressed.outputs):
            if operand is not None:
                self.check(self.resolved(operand))  # refused before anything is written
        for earlier in expressed.before:
            self.operation(earlier)
        self.call(key, expressed)
        for follower in expressed.after:
            self.operation(follower)

    def resolved(self, operand: Operand) -> Operand:
        """The operand that stands for one: itself, unless an alias says another."""
        while operand in self._same:
            operand = self._same[operand]
        return operand
