"""Control flow: operations that hold models, and run them or not, once or many times.

The models, called bodies, are closed: whatever they read from outside is an input of the operation,
after its own operands, and the last inputs of the body. These are its captures. A constant that a
body reads is the body's own. So nothing that treats models has to know of scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from crosschip.ir.bodies import retyped, settled
from crosschip.ir.dimension import Dim, unknown
from crosschip.ir.errors import ModelError
from crosschip.ir.frozen import settle
from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.types import ElementType, TensorType
from crosschip.ir.widening import (
    axis_of,
    common_size,
    joined,
    names_in,
    visible,
    widened,
    with_axis,
    without_axis,
)

ITERATION = TensorType(ElementType.INT64, ())
"""The number of the time that a loop's body runs, from 0."""

CONDITION = TensorType(ElementType.BOOL, ())
"""Whether to go on."""


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
        settle(self, "_bodies", tuple(bodies))
        if len(self._bodies) != len(self.roles):
            raise ModelError(f"{self.type}: holds {' and '.join(self.roles)}")

    @property
    def bodies(self) -> tuple[Model, ...]:
        return self._bodies

    @property
    def attributes(self) -> Mapping[str, Any]:
        """What else tells the operation from others of its kind, as plain data."""
        return {}

    @property
    def captures(self) -> tuple[Operand, ...]:
        """What the bodies read from outside, in the order of their last inputs."""
        raise NotImplementedError(f"{self.type} does not say what its bodies read")

    def with_bodies(self, bodies: Sequence[Model]) -> Self:
        """The same operation on the same operands with other bodies."""
        made = type(self)(self.name, self.inputs, self.outputs, bodies=bodies, **self.attributes)
        return made.standing_for(self)

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

    def _check_body(self, role: str, body: Model, given: Sequence[TensorType]) -> None:
        """Refuse a body that does not take values of these types."""
        self._expect(
            len(body.inputs) == len(given),
            f"{role}: takes {len(body.inputs)} values, but gets {len(given)}",
        )
        for (name, operand), type_ in zip(body.inputs.items(), given, strict=True):
            self._expect(
                _fits(operand.type, type_), f"{role}: {name} is {operand.type}, but gets {type_}"
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
        """Which body runs."""
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


class Loop(ControlFlow):
    """Runs a body again and again, handing what it made to the next time.

    Operands: `trip_count`, one int64, how often at most; `condition`, one boolean, whether to
    begin; both may be left out; then the state, and the captures. The body takes the number of the
    time (int64, no axes), whether it was to run (boolean, no axes), the state and the captures;
    it makes whether to go on (one boolean), the next state, and values to collect. The loop ends
    when the body has run `trip_count` times, or is not to go on.

    Outputs: the last state, then each value to collect from all times along a new first axis, all
    of one shape. If the body never runs, the state is the first one, and sizes of collected values
    are 0 where they are not known. A state may change its shape, not its element type: its type is
    the one that all states have in common.

    Attributes:
        states: how many values the state has.
    """

    __slots__ = ("states",)

    states: int
    type: ClassVar[str] = "LOOP"
    roles = ("body",)

    def __init__(
        self,
        name: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] = (),
        *,
        bodies: Sequence[Model],
        states: int,
    ) -> None:
        super().__init__(name, inputs, outputs, bodies=bodies)
        settle(self, "states", states)

    @classmethod
    def of(
        cls,
        name: str,
        trip_count: Operand | None,
        condition: Operand | None,
        state: Sequence[Operand],
        captures: Sequence[Operand],
        body: Model,
    ) -> Loop:
        """The operation, with its body inferred for the types that the state comes to have.

        Raises:
            ModelError: the body breaks a rule.
        """
        inputs = (trip_count, condition, *state, *captures)
        operation = cls(name, inputs, bodies=[body], states=len(state))
        return cls(name, inputs, bodies=operation.fitted(widening=False), states=len(state))

    @property
    def attributes(self) -> Mapping[str, Any]:
        return {"states": self.states}

    @property
    def body(self) -> Model:
        """What runs each time."""
        return self.bodies[0]

    @property
    def trip_count(self) -> Operand | None:
        """How often the body runs at most."""
        return self.inputs[0]

    @property
    def condition(self) -> Operand | None:
        """Whether to begin."""
        return self.inputs[1]

    @property
    def state(self) -> tuple[Operand, ...]:
        """The first state."""
        return self._operands(2, 2 + self.states)

    @property
    def captures(self) -> tuple[Operand, ...]:
        return self._operands(2 + self.states)

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        if self.trip_count is not None:
            yield "trip_count", self.trip_count
        if self.condition is not None:
            yield "condition", self.condition
        yield from zip([*self.body.inputs][2:], self._operands(2), strict=False)

    def fitted(self, widening: bool) -> Sequence[Model]:
        before = (ITERATION, CONDITION)
        return [settled(self, self.body, before, self.state, (), self.captures, 1, widening)]

    def infer(self) -> tuple[TensorType, ...]:
        if self.trip_count is not None:
            self._check_one("trip_count", self.trip_count, ElementType.INT64)
        if self.condition is not None:
            self._check_one("condition", self.condition, ElementType.BOOL)
        given = [ITERATION, CONDITION, *(operand.type for operand in self._operands(2))]
        self._check_body("body", self.body, given)
        made = list(self.body.outputs.values())
        self._expect(
            len(made) > self.states,
            f"body: makes {len(made)} values, but must make a condition and {self.states} of state",
        )
        self._check_one("body: the condition", made[0], ElementType.BOOL)
        held = list(self.body.inputs.values())[2 : 2 + self.states]
        outer = names_in(given)
        state = _state_types(self, held, made[1 : 1 + self.states], outer)
        times = self._times()
        collected = (
            with_axis(visible(operand.type, outer), 0, times) for operand in made[1 + self.states :]
        )
        return (*state, *collected)

    def _times(self) -> Dim:
        """How often the body runs, if that is known beforehand."""
        going = next(iter(self.body.outputs.values()))
        goes_on = going is [*self.body.inputs.values()][1] or _is_true(going)
        if self.trip_count is None or not goes_on:
            return unknown()
        if self.condition is not None and not _is_true(self.condition):
            return unknown()
        if self.trip_count.value is not None:
            return max(0, int(self.trip_count.value.item()))
        sizes = self.trip_count.type.sizes
        return sizes[0] if sizes and len(sizes) == 1 else unknown()


class Scan(ControlFlow):
    """Runs a body for each slice of its inputs, handing the state to the next time.

    Operands: the state, the scanned, and the captures. The body takes the state, a slice of each
    of the scanned (without the axis it is taken along) and the captures; it makes the next state,
    and values to collect. Outputs: the last state, then each value to collect along a new axis,
    all of one shape. What is scanned has the same size along its axes; if that is 0, the state is
    the first one, and sizes of collected values are 0 where they are not known.

    Attributes:
        states: how many values the state has.
        input_axes: the axis that each of the scanned is sliced along, counted from either end.
        input_reversed: whether each of the scanned is sliced from its end on.
        output_axes: the axis along which each value to collect is put together.
        output_reversed: whether it is put together from the end on.
    """

    __slots__ = ("input_axes", "input_reversed", "output_axes", "output_reversed", "states")

    states: int
    input_axes: tuple[int, ...]
    input_reversed: tuple[bool, ...]
    output_axes: tuple[int, ...]
    output_reversed: tuple[bool, ...]
    type: ClassVar[str] = "SCAN"
    roles = ("body",)

    def __init__(
        self,
        name: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] = (),
        *,
        bodies: Sequence[Model],
        states: int,
        input_axes: Sequence[int],
        input_reversed: Sequence[bool],
        output_axes: Sequence[int],
        output_reversed: Sequence[bool],
    ) -> None:
        super().__init__(name, inputs, outputs, bodies=bodies)
        settle(self, "states", states)
        settle(self, "input_axes", tuple(input_axes))
        settle(self, "input_reversed", tuple(input_reversed))
        settle(self, "output_axes", tuple(output_axes))
        settle(self, "output_reversed", tuple(output_reversed))

    @classmethod
    def of(
        cls,
        name: str,
        state: Sequence[Operand],
        scanned: Sequence[Operand],
        captures: Sequence[Operand],
        body: Model,
        *,
        input_axes: Sequence[int] | None = None,
        input_reversed: Sequence[bool] | None = None,
        output_axes: Sequence[int] | None = None,
        output_reversed: Sequence[bool] | None = None,
    ) -> Scan:
        """The operation, with its body inferred; axes are the first and forwards if not given.

        Raises:
            ModelError: the body breaks a rule.
        """
        count = len(body.outputs) - len(state)
        attributes = {
            "states": len(state),
            "input_axes": (0,) * len(scanned) if input_axes is None else input_axes,
            "input_reversed": (False,) * len(scanned) if input_reversed is None else input_reversed,
            "output_axes": (0,) * count if output_axes is None else output_axes,
            "output_reversed": (False,) * count if output_reversed is None else output_reversed,
        }
        make: Callable[..., Scan] = cls
        operation = make(name, (*state, *scanned, *captures), bodies=[body], **attributes)
        operation._check_counts()
        bodies = operation.fitted(widening=False)
        return make(name, operation.inputs, bodies=bodies, **attributes)

    @property
    def attributes(self) -> Mapping[str, Any]:
        return {
            "states": self.states,
            "input_axes": self.input_axes,
            "input_reversed": self.input_reversed,
            "output_axes": self.output_axes,
            "output_reversed": self.output_reversed,
        }

    @property
    def body(self) -> Model:
        """What runs for each slice."""
        return self.bodies[0]

    @property
    def state(self) -> tuple[Operand, ...]:
        """The first state."""
        return self._operands(0, self.states)

    @property
    def scanned(self) -> tuple[Operand, ...]:
        """What is sliced."""
        return self._operands(self.states, self.states + len(self.input_axes))

    @property
    def captures(self) -> tuple[Operand, ...]:
        return self._operands(self.states + len(self.input_axes))

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        yield from zip(self.body.inputs, self._operands(0), strict=False)

    def fitted(self, widening: bool) -> Sequence[Model]:
        slices = self._slice_types()
        return [settled(self, self.body, (), self.state, slices, self.captures, 0, widening)]

    def infer(self) -> tuple[TensorType, ...]:
        self._check_counts()
        states = self.states
        own = [operand.type for operand in (*self.state, *self.captures)]
        given = [*own[:states], *self._slice_types(), *own[states:]]
        self._check_body("body", self.body, given)
        length = self._length()
        made = list(self.body.outputs.values())
        outer = names_in([*given, *(operand.type for operand in self.scanned)])
        held = list(self.body.inputs.values())[:states]
        state = _state_types(self, held, made[:states], outer)
        collected = []
        for operand, axis in zip(made[states:], self.output_axes, strict=True):
            try:
                collected.append(with_axis(visible(operand.type, outer), axis, length))
            except ModelError as error:
                raise ModelError(f"{self.type}.output_axes: {error}") from None
        return (*state, *collected)

    def _check_counts(self) -> None:
        scanned, made = len(self.input_axes), len(self.body.outputs) - self.states
        self._expect(scanned > 0, "input_axes: there must be something to scan")
        self._expect(
            len(self.input_reversed) == scanned <= len(self.inputs) - self.states,
            f"input_reversed: there are {scanned} axes, but {len(self.input_reversed)} directions "
            f"and {len(self.inputs) - self.states} operands",
        )
        self._expect(
            len(self.output_axes) == len(self.output_reversed) == made,
            f"output_axes: there are {len(self.output_axes)}, with {len(self.output_reversed)} "
            f"directions, for {made} values to collect",
        )

    def _slice_types(self) -> list[TensorType]:
        types = []
        for operand, axis in zip(self.scanned, self.input_axes, strict=True):
            try:
                types.append(without_axis(operand.type, axis))
            except ModelError as error:
                raise ModelError(f"{self.type}.input_axes: {error}") from None
        return types

    def _length(self) -> Dim:
        sizes: list[Dim] = []
        for operand, axis in zip(self.scanned, self.input_axes, strict=True):
            shape = operand.type.shape
            sizes.append(unknown() if shape is None else shape[axis_of(operand.type, axis)])
        try:
            return common_size(sizes)
        except ModelError as error:
            raise ModelError(f"{self.type}.input_axes: {error}") from None


KINDS: Mapping[str, type[ControlFlow]] = {kind.type: kind for kind in (If, Loop, Scan)}
"""The kinds of control flow, by type."""


def _state_types(
    operation: ControlFlow,
    held: Sequence[Operand],
    made: Sequence[Operand],
    outer: frozenset[str],
) -> list[TensorType]:
    """The types of the last state; `ModelError` if the body makes a state that it does not take."""
    types = []
    for one, other in zip(held, made, strict=True):
        if widened(one.type, other.type, outer, 0) != replace(one.type, sizes=None):
            raise ModelError(
                f"{operation.type}.body: takes {one.name!r} as {one.type}, but makes {other.type}"
            )
        types.append(visible(replace(one.type, sizes=None), outer))
    return types


def _joined(where: str, one: TensorType, other: TensorType, outer: frozenset[str]) -> TensorType:
    try:
        return visible(joined(one, other), outer)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def _fits(wanted: TensorType, given: TensorType) -> bool:
    """Whether a value of one type may be of another, as far as that is known."""
    if wanted.element_type is not given.element_type or wanted.quantization != given.quantization:
        return False
    if wanted.shape is None or given.shape is None:
        return True
    return len(wanted.shape) == len(given.shape) and not any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(wanted.shape, given.shape, strict=True)
    )


def _types(operands: Sequence[Operand | None]) -> list[TensorType | None]:
    return [None if operand is None else operand.type for operand in operands]


def _is_true(operand: Operand) -> bool:
    return operand.value is not None and bool(operand.value.all())
