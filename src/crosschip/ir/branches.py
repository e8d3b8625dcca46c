"""Branches: control flow that runs one of several bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from crosschip.ir.bodies import capture_type, retype
from crosschip.ir.control import ControlFlow
from crosschip.ir.errors import ModelError
from crosschip.ir.model import Model, Operand
from crosschip.ir.type_joins import hide_inner_sizes, join_types, names_in
from crosschip.ir.types import ElementType, TensorType


class If(ControlFlow):
    """Operation that runs one of two bodies: `outputs = (then if condition else else)(*captures)`.

    Operands: `condition` (one boolean, any rank), then the captures. Both bodies take the captures
    and return the same number of values with equal element types. The type of an output joins the
    types of both bodies: a size that differs is unknown, and so is the rank if the ranks differ.
    """

    __slots__ = ()

    type: ClassVar[str] = "IF"
    roles = ("then_body", "else_body")

    @classmethod
    def of(
        cls, name: str, condition: Operand, captures: Sequence[Operand], bodies: Sequence[Model]
    ) -> If:
        """Return the operation with its bodies inferred for the types of the captures.

        Raises:
            ModelError: a body breaks a rule.
        """
        operation = cls(name, (condition, *captures), bodies=bodies)
        return cls(name, operation.inputs, bodies=operation.infer_bodies(widening=False))

    @property
    def condition(self) -> Operand:
        """Return the condition: true runs the first body, false the second."""
        return self._required(0)

    @property
    def captures(self) -> tuple[Operand, ...]:
        return self._operands(1)

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        yield "condition", self.condition
        yield from zip(self.bodies[0].inputs, self.captures, strict=False)

    def infer_bodies(self, widening: bool) -> Sequence[Model]:
        types = [capture_type(operand) for operand in self.captures]
        narrower = all(_takes(body, types) for body in self.bodies)
        return change_branches(self.bodies, lambda body: retype(body, types, widening), narrower)

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
        output_types = []
        for (name, one), (_, other) in zip(first, second, strict=True):
            output_types.append(_join_outputs(f"{self.type}.{name}", one.type, other.type, outer))
        return tuple(output_types)


def change_branches(
    bodies: Sequence[Model], change: Callable[[Model], Model], narrower: bool = True
) -> list[Model]:
    """Change each of several bodies of which one runs; keep a body that can then never run.

    Args:
        bodies: the bodies, which stay unchanged.
        change: returns the changed body; a `ModelError` means that the body can never run.
        narrower: the unchanged bodies are valid for the new input types, too.

    Raises:
        ModelError: no body can run, or a body cannot be changed and `narrower` is false.
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
    """Return whether the body's input types include these types."""
    body_types = [operand.type for operand in body.inputs.values()]
    return len(body_types) == len(types) and all(map(_is_within, types, body_types))


def _is_within(type_: TensorType, other: TensorType) -> bool:
    """Return whether one type is as specific as another or more."""
    if not type_.fits(other) or other.shape is None:
        return type_.fits(other)
    return type_.shape is not None and all(
        size == size_a or not isinstance(size, int)
        for size_a, size in zip(type_.shape, other.shape, strict=True)
    )


def _join_outputs(
    slot: str, first: TensorType, second: TensorType, outer: frozenset[str]
) -> TensorType:
    try:
        return hide_inner_sizes(join_types(first, second), outer)
    except ModelError as error:
        raise ModelError(f"{slot}: {error}") from None
