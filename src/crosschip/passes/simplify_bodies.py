"""Simplification of the bodies of control flow that stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crosschip.ir import ControlFlow, Loop, Model, Operand, Scan
from crosschip.ir.control import substituted
from crosschip.passes.base import Keeps, Pass
from crosschip.passes.rewriter import Rewriter


class SimplifyBodies(Pass):
    """Simplifies the bodies of `IF`, `LOOP` and `SCAN`, and hands them only what they need.

    1. A state that a body always hands on as it got it is a capture; a captured constant becomes
       the body's own.
    2. The body is simplified like any model.
    3. What no body reads is not captured, and what nobody reads is not made or collected.

    Args:
        simplify: what is done to a body.
    """

    keeps = Keeps.MEANING

    def __init__(self, simplify: Callable[[Model], Model]) -> None:
        self._simplify = simplify

    def __call__(self, model: Model) -> Model:
        if not any(operation.bodies for operation in model.operations):
            return model
        rewriter = Rewriter(model)
        for old in model.operations:
            operation = rewriter.resolved(old)
            if isinstance(operation, ControlFlow):
                used = [output in model.uses for output in old.outputs]
                operation = self._simplified(operation, used, rewriter)
            rewriter.emit(operation)
        return rewriter.finish()

    def _simplified(
        self, operation: ControlFlow, used: Sequence[bool], rewriter: Rewriter
    ) -> ControlFlow:
        parts = _Parts(operation)
        parts.capture_unchanging_state(rewriter)
        parts.own_constants()
        parts.bodies = [self._simplify(body) for body in parts.bodies]
        parts.drop_unread_captures()
        parts.drop_unused_outputs(
            {o for o, u in zip(operation.outputs, used, strict=True) if not u}
        )
        return parts.rebuilt(rewriter)


class _Parts:
    """An operation taken apart: what goes into it and comes out, place by place."""

    def __init__(self, operation: ControlFlow) -> None:
        self.operation = operation
        self.bodies = list(operation.bodies)
        self.attributes: dict[str, Any] = dict(operation.attributes)
        self.states = self.attributes.get("states", 0)
        captured = len(operation.captures)
        self.given = list(operation.inputs[: len(operation.inputs) - captured])
        self.captures = list(operation.captures)
        self.outputs = list(operation.outputs)
        self._before_state = 2 if isinstance(operation, Loop) else 0
        self._before_next_state = 1 if isinstance(operation, Loop) else 0

    def capture_unchanging_state(self, rewriter: Rewriter) -> None:
        """Hand in as a capture what the body hands on as it is."""
        for index in reversed(range(self.states)):
            (body,) = self.bodies
            inputs, outputs = list(body.inputs.items()), list(body.outputs.items())
            own = inputs[self._before_state + index]
            if outputs[self._before_next_state + index][1] is not own[1]:
                continue
            first = self.given.pop(self._before_state + index)
            assert first is not None, "state is never left out"
            rewriter.replace(self.outputs.pop(index), first)
            self.captures.append(first)
            self.states -= 1
            del inputs[self._before_state + index]
            del outputs[self._before_next_state + index]
            operations = body.operations
            self.bodies = [Model(body.name, dict([*inputs, own]), operations, dict(outputs))]

    def own_constants(self) -> None:
        """Give the bodies the constants that they capture."""
        for place in reversed(range(len(self.captures))):
            value = self.captures[place]
            if value.is_constant:
                self._remove_capture(place, value)

    def drop_unread_captures(self) -> None:
        """Hand in nothing that no body reads."""
        for place in reversed(range(len(self.captures))):
            operands = [self._captured(body)[place][1] for body in self.bodies]
            pairs = zip(operands, self.bodies, strict=True)
            if not any(operand in body.uses for operand, body in pairs):
                self._remove_capture(place, None)

    def drop_unused_outputs(self, unused: set[Operand]) -> None:
        """Make nothing that nobody reads, but for the state."""
        for index in reversed(range(self.states, len(self.outputs))):
            if self.outputs[index] not in unused:
                continue
            del self.outputs[index]
            place = self._before_next_state + index
            self.bodies = [
                Model(body.name, body.inputs, body.operations, _without(body.outputs, place))
                for body in self.bodies
            ]
            if isinstance(self.operation, Scan):
                for name in ("output_axes", "output_reversed"):
                    values = list(self.attributes[name])
                    del values[index - self.states]
                    self.attributes[name] = tuple(values)

    def rebuilt(self, rewriter: Rewriter) -> ControlFlow:
        """The operation put together again, with its output types refined."""
        if "states" in self.attributes:
            self.attributes["states"] = self.states
        kind: Callable[..., ControlFlow] = type(self.operation)
        inputs = (*self.given, *self.captures)
        name, attributes = self.operation.name, self.attributes
        renewed = kind(name, inputs, tuple(self.outputs), bodies=self.bodies, **attributes)
        outputs = []
        for old, type_ in zip(self.outputs, renewed.infer(), strict=True):
            outputs.append(old if old.type == type_ else Operand(old.name, type_))
            if outputs[-1] is not old:
                rewriter.replace(old, outputs[-1])
        return renewed.with_inputs(inputs, tuple(outputs))

    def _captured(self, body: Model) -> list[tuple[str, Operand]]:
        inputs = list(body.inputs.items())
        return inputs[len(inputs) - len(self.captures) :]

    def _remove_capture(self, place: int, value: Operand | None) -> None:
        """Take out a capture, and let the bodies read a value in its place if there is one."""
        bodies = []
        for body in self.bodies:
            name, operand = self._captured(body)[place]
            inputs = {key: own for key, own in body.inputs.items() if key != name}
            replaced = {} if value is None else {operand: value}
            bodies.append(substituted(body, inputs, replaced))
        self.bodies = bodies
        del self.captures[place]


def _without(outputs: Any, place: int) -> dict[str, Operand]:
    return {name: o for index, (name, o) in enumerate(outputs.items()) if index != place}
