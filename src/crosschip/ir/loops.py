"""Loops: control flow that runs a body repeatedly on its own results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from crosschip.ir.bodies import infer_body
from crosschip.ir.control import ControlFlow
from crosschip.ir.dimension import Dim, unknown
from crosschip.ir.errors import ModelError
from crosschip.ir.frozen import set_field
from crosschip.ir.model import Model, Operand
from crosschip.ir.type_joins import (
    axis_of,
    common_size,
    hide_inner_sizes,
    names_in,
    widen_type,
    with_axis,
    without_axis,
)
from crosschip.ir.types import ElementType, TensorType

ITERATION = TensorType(ElementType.INT64, ())
"""The type of the iteration number that a loop's body takes, from 0."""

CONDITION = TensorType(ElementType.BOOL, ())
"""The type of the condition to continue."""


class Loop(ControlFlow):
    """Operation that runs a body repeatedly and passes its state to the next iteration.

    Operands: `trip_count` (one int64, the largest number of iterations; optional), `condition` (one
    boolean, whether to start; optional), the state, the captures. Body inputs: the iteration number
    (int64 scalar), the condition (boolean scalar), the state, the captures. Body outputs: the
    condition to continue (one boolean), the next state, values to collect. The loop ends after
    `trip_count` iterations, or when the condition is false.

    Outputs: the last state, then each collected value of all iterations stacked along a new first
    axis; its shape is the same in all iterations. Without any iteration the state is the initial
    one, and unknown sizes of collected values are 0. A state may change its shape but not its
    element type; its type joins the types of all iterations.

    Attributes:
        states: the number of state values.
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
        set_field(self, "states", states)

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
        """Return the operation, with its body inferred for the types that the state takes.

        Raises:
            ModelError: the body breaks a rule.
        """
        inputs = (trip_count, condition, *state, *captures)
        operation = cls(name, inputs, bodies=[body], states=len(state))
        return cls(name, inputs, bodies=operation.infer_bodies(widening=False), states=len(state))

    @property
    def attributes(self) -> Mapping[str, Any]:
        return {"states": self.states}

    @property
    def body(self) -> Model:
        """Return the model that runs in each iteration."""
        return self.bodies[0]

    @property
    def trip_count(self) -> Operand | None:
        """Return the largest number of iterations."""
        return self.inputs[0]

    @property
    def condition(self) -> Operand | None:
        """Return the condition to start."""
        return self.inputs[1]

    @property
    def state(self) -> tuple[Operand, ...]:
        """Return the initial state."""
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

    def infer_bodies(self, widening: bool) -> Sequence[Model]:
        before = (ITERATION, CONDITION)
        return [infer_body(self, self.body, before, self.state, (), self.captures, 1, widening)]

    def infer(self) -> tuple[TensorType, ...]:
        if self.trip_count is not None:
            self._check_one("trip_count", self.trip_count, ElementType.INT64)
        if self.condition is not None:
            self._check_one("condition", self.condition, ElementType.BOOL)
        input_types = [ITERATION, CONDITION, *(operand.type for operand in self._operands(2))]
        self._check_body("body", self.body, input_types)
        body_outputs = list(self.body.outputs.values())
        self._expect(
            len(body_outputs) > self.states,
            f"body: makes {len(body_outputs)} values, but must make a condition and {self.states} "
            "of state",
        )
        self._check_one("body: the condition", body_outputs[0], ElementType.BOOL)
        body_states = list(self.body.inputs.values())[2 : 2 + self.states]
        outer = names_in(input_types)
        state = _state_types(self, body_states, body_outputs[1 : 1 + self.states], outer)
        times = self._times()
        collected = (
            with_axis(hide_inner_sizes(operand.type, outer), 0, times)
            for operand in body_outputs[1 + self.states :]
        )
        return (*state, *collected)

    def _times(self) -> Dim:
        """Return the number of iterations if it is known before the loop runs."""
        going = next(iter(self.body.outputs.values()))
        goes_on = going is [*self.body.inputs.values()][1] or _is_true(going)
        if self.trip_count is None or not goes_on:
            return unknown()
        if self.condition is not None and not _is_true(self.condition):
            return unknown()
        if self.trip_count.value is not None:
            return max(0, int(self.trip_count.value.item()))
        value = self.trip_count.type.shape_value
        return value[0] if value and len(value) == 1 else unknown()


class Scan(ControlFlow):
    """Operation that runs a body on each slice of its inputs and passes the state on.

    Operands: the state, the scanned inputs, the captures. Body inputs: the state, a slice of each
    scanned input (without the sliced axis), the captures. Body outputs: the next state, values to
    collect. Outputs: the last state, then each collected value stacked along a new axis; its shape
    is the same for all slices. All scanned inputs have the same size along their axes; if it is 0,
    the state is the initial one, and unknown sizes of collected values are 0.

    Attributes:
        states: the number of state values.
        input_axes: the axis along which each scanned input is sliced; may be negative.
        input_reversed: whether each scanned input is sliced in reverse order.
        output_axes: the axis along which each collected value is stacked; may be negative.
        output_reversed: whether each collected value is stacked in reverse order.
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
        set_field(self, "states", states)
        set_field(self, "input_axes", tuple(input_axes))
        set_field(self, "input_reversed", tuple(input_reversed))
        set_field(self, "output_axes", tuple(output_axes))
        set_field(self, "output_reversed", tuple(output_reversed))

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
        """Return the operation with its body inferred; by default axes are 0 and order is forward.

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
        bodies = operation.infer_bodies(widening=False)
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
        """Return the model that runs for each slice."""
        return self.bodies[0]

    @property
    def state(self) -> tuple[Operand, ...]:
        """Return the initial state."""
        return self._operands(0, self.states)

    @property
    def scanned(self) -> tuple[Operand, ...]:
        """Return the operands that are sliced."""
        return self._operands(self.states, self.states + len(self.input_axes))

    @property
    def captures(self) -> tuple[Operand, ...]:
        return self._operands(self.states + len(self.input_axes))

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        yield from zip(self.body.inputs, self._operands(0), strict=False)

    def infer_bodies(self, widening: bool) -> Sequence[Model]:
        slices = self._slice_types()
        return [infer_body(self, self.body, (), self.state, slices, self.captures, 0, widening)]

    def infer(self) -> tuple[TensorType, ...]:
        self._check_counts()
        states = self.states
        outer_types = [operand.type for operand in (*self.state, *self.captures)]
        input_types = [*outer_types[:states], *self._slice_types(), *outer_types[states:]]
        self._check_body("body", self.body, input_types)
        length = self._length()
        body_outputs = list(self.body.outputs.values())
        outer = names_in([*input_types, *(operand.type for operand in self.scanned)])
        body_states = list(self.body.inputs.values())[:states]
        state = _state_types(self, body_states, body_outputs[:states], outer)
        collected = []
        for operand, axis in zip(body_outputs[states:], self.output_axes, strict=True):
            try:
                collected.append(with_axis(hide_inner_sizes(operand.type, outer), axis, length))
            except ModelError as error:
                raise ModelError(f"{self.type}.output_axes: {error}") from None
        return (*state, *collected)

    def _check_counts(self) -> None:
        scanned, collected = len(self.input_axes), len(self.body.outputs) - self.states
        self._expect(scanned > 0, "input_axes: there must be something to scan")
        self._expect(
            len(self.input_reversed) == scanned <= len(self.inputs) - self.states,
            f"input_reversed: there are {scanned} axes, but {len(self.input_reversed)} directions "
            f"and {len(self.inputs) - self.states} operands",
        )
        self._expect(
            len(self.output_axes) == len(self.output_reversed) == collected,
            f"output_axes: there are {len(self.output_axes)}, with {len(self.output_reversed)} "
            f"directions, for {collected} values to collect",
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


def _state_types(
    operation: ControlFlow,
    body_states: Sequence[Operand],
    next_state: Sequence[Operand],
    outer: frozenset[str],
) -> list[TensorType]:
    """Return the types of the last state; raise ModelError if a next state does not fit."""
    types = []
    for state, other in zip(body_states, next_state, strict=True):
        if widen_type(state.type, other.type, outer, 0) != replace(state.type, shape_value=None):
            raise ModelError(
                f"{operation.type}.body: takes {state.name!r} as {state.type}, but makes "
                f"{other.type}"
            )
        types.append(hide_inner_sizes(replace(state.type, shape_value=None), outer))
    return types


def _is_true(operand: Operand) -> bool:
    return operand.value is not None and bool(operand.value.all())
