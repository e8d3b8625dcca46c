"""Branches: control flow that runs one of several bodies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from crosschip.ir.bodies import retyped
from crosschip.ir.control import ControlFlow
from crosschip.ir.errors import ModelError
from crosschip.ir.model import Model, Operand
from crosschip.ir.types import ElementType, TensorType
from crosschip.ir.widening import (
    joined,
    names_in,
    visible,
)


class If(ControlFlow):
    """Runs one of two bodies: `outputs = (then_body if condition else else_body)(*captures)`.

    Operands: `condition`, one boolean in any number of axes, then the captures. Both bodies take
    the captures and make the same number of values, of the same element types; an output is of
    the type that both have in common, with an unknown size where they differ, and of unknown rank
    where the ranks do.
    """

    __slots__ = ()

    type: ClassVar[str] = "IF"
    roles = ("then_body", "else_body")

    @classmethod
    def of(
        cls, name: str, condition: Operand, captures: Sequence[Operand], bodies: Sequence[Model]
    ) -> If:
        """The operation, with bodies inferred for the types of the captures.

        Raises:
            ModelError: the bodies break a rule.
        """
        operation = cls(name, (condition, *captures), bodies=bodies)
        return cls(name, operation.inputs, bodies=operation.fitted(widening=False))

    @property
    def condition(self) -> Operand:
        """The condition: true runs the first body, false the second."""
        return self._required(0)

    @property
    def captures(self) -> tuple[Operand, ...]:
        return self._operands(1)

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        yield "condition", self.condition
        yield from zip(self.bodies[0].inputs, self.captures, strict=False)

    def fitted(self, widening: bool) -> Sequence[Model]:
        types = [operand.type for operand in self.captures]
        return [retyped(body, types, widening) for body in self.bodies]

    def infer(self) -> tuple[TensorType, ...]:
        self._check_one("condition", self.condition, ElementType.BOOL)
        types = [operand.type for operand in self.captures]
        for role, body in zip(self.roles, self.bodies, strict=True):
            self._check_body(role, body, types)
        first, second = (list(body.outputs.items()) for body in self.bodies)
        self._expect(
            len(first) == len(second),
            f"else_body: makes {len(second)} values, but then_body {len(first)}",
        )
        outer = names_in(types)
        made = []
        for (name, one), (_, other) in zip(first, second, strict=True):
            made.append(_joined(f"{self.type}.{name}", one.type, other.type, outer))
        return tuple(made)


def _joined(where: str, one: TensorType, other: TensorType, outer: frozenset[str]) -> TensorType:
    try:
        return visible(joined(one, other), outer)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
