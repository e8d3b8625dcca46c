"""Control flow: operations that hold models (bodies) and run them conditionally or repeatedly.

Bodies are closed. A value from the enclosing model that a body reads is a capture: one of the last
inputs of the operation and of the body. Constants belong to the body that reads them. So code that
processes models needs no notion of scopes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from crosschip.ir.dimension import Dim
from crosschip.ir.errors import ModelError
from crosschip.ir.frozen import set_field
from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.types import ElementType, TensorType

MAX_DEPTH = 64
"""The deepest nesting of control flow, because models are processed recursively."""


class ControlFlow(Operation):
    """Operation that runs models. `of` constructs it and infers the bodies for their input types.

    Attributes:
        bodies: the models.
        roles: the role of each body, in order.
    """

    __slots__ = ("_bodies",)

    roles: ClassVar[tuple[str, ...]]
    _bodies: tuple[Model, ...]

    def __init__(
        self,
        name: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] = (),
        *,
        bodies: Sequence[Model],
    ) -> None:
        super().__init__(name, inputs, outputs)
        set_field(self, "_bodies", tuple(bodies))
        if len(self._bodies) != len(self.roles):
            raise ModelError(f"{self.type}: holds {' and '.join(self.roles)}")
        if any(body.depth >= MAX_DEPTH for body in self._bodies):
            raise ModelError(f"{self.type} {name!r}: control flow is nested over {MAX_DEPTH} deep")

    @property
    def bodies(self) -> tuple[Model, ...]:
        return self._bodies

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return plain data that, with the bodies, determines the operation."""
        return {}

    @property
    def captures(self) -> tuple[Operand, ...]:
        """Return the captured operands, in the order of the bodies' last inputs."""
        raise NotImplementedError(f"{self.type} does not say what its bodies read")

    def multiply_adds(self) -> Dim:
        """Return the sum for all bodies, each of which counts once."""
        total: Dim = 0
        for operation in (each for body in self.bodies for each in body.operations):
            total = total + operation.multiply_adds()
        return total

    def with_bodies(self, bodies: Sequence[Model]) -> Self:
        """Return the operation with other bodies and the same operands."""
        copy = type(self)(self.name, self.inputs, self.outputs, bodies=bodies, **self.attributes)
        return copy.standing_for(self)

    def with_inputs(
        self, inputs: tuple[Operand | None, ...], outputs: tuple[Operand, ...] | None = None
    ) -> Self:
        """Return the operation on other inputs, with its bodies inferred for their types."""
        return self._on(inputs, self.outputs if outputs is None else outputs, widening=False)

    def adapt(self, inputs: tuple[Operand | None, ...], *, widening: bool) -> Self:
        return self._on(inputs, self.outputs, widening=widening)

    def _on(
        self, inputs: tuple[Operand | None, ...], outputs: tuple[Operand, ...], *, widening: bool
    ) -> Self:
        renewed = type(self)(self.name, inputs, outputs, bodies=self.bodies, **self.attributes)
        renewed.standing_for(self)
        if _types(inputs) == _types(self.inputs):
            return renewed
        return renewed.with_bodies(renewed.infer_bodies(widening))

    def infer_bodies(self, widening: bool) -> Sequence[Model]:
        """Return the bodies, inferred for the types of the operation's inputs.

        Raises:
            ModelError: a body has another number of inputs, or the types break a rule in a body.
        """
        raise NotImplementedError(f"{self.type} does not infer its bodies")

    def _expect(self, condition: bool, message: str) -> None:
        if not condition:
            raise ModelError(f"{self.type}.{message}")

    def _required(self, index: int) -> Operand:
        operand = self.inputs[index] if index < len(self.inputs) else None
        if operand is None:
            raise ModelError(f"{self.type}: input {index} is required")
        return operand

    def _operands(self, start: int, stop: int | None = None) -> tuple[Operand, ...]:
        """Return the operands in a range of inputs; raise ModelError if one is missing."""
        return tuple(self._required(index) for index in range(len(self.inputs))[slice(start, stop)])

    def _check_one(self, slot: str, operand: Operand, element_type: ElementType) -> None:
        """Raise ModelError unless an operand is one element of the type."""
        size = operand.type.static_shape
        self._expect(
            operand.type.element_type is element_type
            and (size is None or all(length == 1 for length in size)),
            f"{slot}: is {operand.type}, but must be one {element_type}",
        )

    def _check_body(self, role: str, body: Model, types: Sequence[TensorType]) -> None:
        """Raise ModelError unless a body accepts values of these types."""
        self._expect(
            len(body.inputs) == len(types),
            f"{role}: takes {len(body.inputs)} values, but gets {len(types)}",
        )
        for (name, operand), type_ in zip(body.inputs.items(), types, strict=True):
            self._expect(
                type_.fits(operand.type), f"{role}: {name} is {operand.type}, but gets {type_}"
            )


def _types(operands: Sequence[Operand | None]) -> list[TensorType | None]:
    return [None if operand is None else operand.type for operand in operands]
