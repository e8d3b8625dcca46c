"""Control flow: operations that hold models, and run them or not, once or many times.

The models, called bodies, are closed: whatever they read from outside is an input of the operation,
after its own operands, and the last inputs of the body. These are its captures. A constant that a
body reads is the body's own. So nothing that treats models has to know of scopes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from crosschip.ir.errors import ModelError
from crosschip.ir.frozen import set_field
from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.types import ElementType, TensorType

MAX_DEPTH = 64
"""The most operations of control flow that contain each other: models are walked recursively."""


class ControlFlow(Operation):
    """An operation that runs models; made by `of`, which infers the bodies for what they get.

    Attributes:
        bodies: the models.
        roles: what each of the bodies is, in order.
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
        """Plain data that tells the operation from others of its kind with the same bodies."""
        return {}

    @property
    def captures(self) -> tuple[Operand, ...]:
        """Operands that the bodies read from outside, in the order of their last inputs."""
        raise NotImplementedError(f"{self.type} does not say what its bodies read")

    def with_bodies(self, bodies: Sequence[Model]) -> Self:
        """The same operation on the same operands with other bodies."""
        copy = type(self)(self.name, self.inputs, self.outputs, bodies=bodies, **self.attributes)
        return copy.standing_for(self)

    def with_inputs(
        self,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] | None = None,
    ) -> Self:
        """The same operation on other inputs; its bodies are inferred anew for their types."""
        return self._on(inputs, self.outputs if outputs is None else outputs, widening=False)

    def adapted(self, inputs: tuple[Operand | None, ...], *, widening: bool) -> Self:
        return self._on(inputs, self.outputs, widening=widening)

    def _on(
        self,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...],
        *,
        widening: bool,
    ) -> Self:
        renewed = type(self)(self.name, inputs, outputs, bodies=self.bodies, **self.attributes)
        renewed.standing_for(self)
        if _types(inputs) == _types(self.inputs):
            return renewed
        return renewed.with_bodies(renewed.fitted(widening))

    def fitted(self, widening: bool) -> Sequence[Model]:
        """The bodies, inferred for the types of what the operation reads.

        Raises:
            ModelError: a body does not take as many values, or they break a rule in it.
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
        """The operands in a range of inputs, of which none may be left out."""
        return tuple(self._required(index) for index in range(len(self.inputs))[slice(start, stop)])

    def _check_one(self, slot: str, operand: Operand, element_type: ElementType) -> None:
        """Refuse an operand that is not one element of the type."""
        size = operand.type.static_shape
        self._expect(
            operand.type.element_type is element_type
            and (size is None or all(length == 1 for length in size)),
            f"{slot}: is {operand.type}, but must be one {element_type}",
        )

    def _check_body(self, role: str, body: Model, types: Sequence[TensorType]) -> None:
        """Refuse a body that does not take values of these types."""
        self._expect(
            len(body.inputs) == len(types),
            f"{role}: takes {len(body.inputs)} values, but gets {len(types)}",
        )
        for (name, operand), type_ in zip(body.inputs.items(), types, strict=True):
            self._expect(
                _fits(operand.type, type_), f"{role}: {name} is {operand.type}, but gets {type_}"
            )


def _fits(expected: TensorType, actual: TensorType) -> bool:
    """Tell whether a value of one type may be of another, as far as that is known."""
    if (
        expected.element_type is not actual.element_type
        or expected.quantization != actual.quantization
    ):
        return False
    if expected.shape is None or actual.shape is None:
        return True
    return len(expected.shape) == len(actual.shape) and not any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(expected.shape, actual.shape, strict=True)
    )


def _types(operands: Sequence[Operand | None]) -> list[TensorType | None]:
    return [None if operand is None else operand.type for operand in operands]
