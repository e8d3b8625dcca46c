"""Branches: control flow that runs one of several bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from crosschip.ir.bodies import inner_type, retyped
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
        types = [inner_type(operand) for operand in self.captures]
        narrower = all(_takes(body, types) for body in self.bodies)
        return where_possible(self.bodies, lambda body: retyped(body, types, widening), narrower)

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
        joined_types = []
        for (name, one), (_, other) in zip(first, second, strict=True):
            joined_types.append(_joined(f"{self.type}.{name}", one.type, other.type, outer))
        return tuple(joined_types)


def where_possible(
    bodies: Sequence[Model], change: Callable[[Model], Model], narrower: bool = True
) -> list[Model]:
    """Bodies of which one runs, each changed; those that can then never run stay as they were.

    Args:
        bodies: not changed.
        change: what is done to each.
        narrower: whether bodies still hold for what they get if they stay as they were.

    Raises:
        ModelError: none of them can run, or one that cannot must not stay as it was.
    """
    changed, errors = [], []
    for body in bodies:
        try:
            changed.append(change(body))
        except ModelError as error:
            if not narrower:
                raise
            changed.append(body)
            errors.append(error)
    if len(errors) == len(bodies):
        raise errors[0]
    return changed


def _takes(body: Model, types: Sequence[TensorType]) -> bool:
    """Tell whether a body is made for whatever is of these types."""
    held = [operand.type for operand in body.inputs.values()]
    return len(held) == len(types) and all(map(_is_within, types, held))


def _is_within(type_: TensorType, other: TensorType) -> bool:
    """Tell whether a type says all that another does."""
    if not type_.fits(other) or other.shape is None:
        return type_.fits(other)
    return type_.shape is not None and all(
        size == own or not isinstance(size, int)
        for own, size in zip(type_.shape, other.shape, strict=True)
    )


def _joined(where: str, one: TensorType, other: TensorType, outer: frozenset[str]) -> TensorType:
    try:
        return visible(joined(one, other), outer)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
