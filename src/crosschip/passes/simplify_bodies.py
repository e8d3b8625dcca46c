"""Simplification of the bodies of control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import field
from typing import Any, ClassVar

from crosschip.ir import ControlFlow, If, Loop, Model, ModelError, Operand, Scan
from crosschip.ir.bodies import with_replaced_inputs
from crosschip.ir.branches import change_branches
from crosschip.ir.dataclass import dataclass
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class SimplifyBodies(Pass):
    """Simplifies the bodies of `IF`, `LOOP` and `SCAN`, and removes unneeded inputs and outputs.

    1. State that a body returns unchanged becomes a capture; a captured constant moves into the
       body.
    2. Unread outputs are not computed or collected.
    3. Each body is simplified like a model; captures that it then does not read are removed.

    Args:
        simplify: the simplification of a body.
    """

    exact: ClassVar[bool] = False

    simplify: Callable[[Model], Model] = field(repr=False)

    def rewrite(self, model: Model) -> Model:
        if not any(operation.bodies for operation in model.operations):
            return model
        rewriter = Rewriter(model)
        for old in model.operations:
            operation = rewriter.resolved(old)
            simplified = operation
            if isinstance(operation, ControlFlow):
                used = [output in model.uses for output in old.outputs]
                simplified = self._simplify_operation(operation, used, rewriter)
            if simplified is operation:
                rewriter.keep(operation)
            else:
                rewriter.emit(simplified)
        return rewriter.finish()

    def _simplify_operation(
        self, operation: ControlFlow, used: Sequence[bool], rewriter: Rewriter
    ) -> ControlFlow:
        parts = _Parts(operation)
        parts.capture_unchanging_state(rewriter)
        parts.inline_constants()
        unused = {o for o, read in zip(operation.outputs, used, strict=True) if not read}
        parts.drop_unused_outputs(unused)
        parts.simplify(self.simplify)
        parts.drop_unread_captures()
        return parts.rebuilt()


class _Parts:
    """The inputs, outputs and bodies of an operation, as lists to edit."""

    def __init__(self, operation: ControlFlow) -> None:
        self.operation = operation
        self.bodies = list(operation.bodies)
        self.attributes: dict[str, Any] = dict(operation.attributes)
        self.states = self.attributes.get("states", 0)
        captured = len(operation.captures)
        self.arguments = list(operation.inputs[: len(operation.inputs) - captured])
        self.captures = list(operation.captures)
        self.outputs = list(operation.outputs)
        self._before_state = 2 if isinstance(operation, Loop) else 0
        self._before_next_state = 1 if isinstance(operation, Loop) else 0

    def capture_unchanging_state(self, rewriter: Rewriter) -> None:
        """Turn state that the body returns unchanged into captures."""
        for index in reversed(range(self.states)):
            (body,) = self.bodies
            inputs, outputs = list(body.inputs.items()), list(body.outputs.items())
            body_input = inputs[self._before_state + index]
            if outputs[self._before_next_state + index][1] is not body_input[1]:
                continue
            first = self.arguments.pop(self._before_state + index)
            assert first is not None, "state is never left out"
            rewriter.replace(self.outputs.pop(index), first)
            self.captures.append(first)
            self.states -= 1
            del inputs[self._before_state + index]
            del outputs[self._before_next_state + index]
            operations = body.operations
            self.bodies = [Model(body.name, dict([*inputs, body_input]), operations, dict(outputs))]

    def inline_constants(self) -> None:
        """Move captured constants into the bodies, except into branches that reject them."""
        for index in reversed(range(len(self.captures))):
            value = self.captures[index]
            if value.is_constant:
                with suppress(ModelError) if isinstance(self.operation, If) else nullcontext():
                    self._remove_capture(index, value)

    def simplify(self, simplify: Callable[[Model], Model]) -> None:
        """Simplify the bodies; keep branches that are proven never to run."""
        if isinstance(self.operation, If):
            self.bodies = change_branches(self.bodies, simplify)
        else:
            self.bodies = [simplify(body) for body in self.bodies]

    def drop_unread_captures(self) -> None:
        """Remove captures that no body reads."""
        for index in reversed(range(len(self.captures))):
            operands = [self._captured(body)[index][1] for body in self.bodies]
            pairs = zip(operands, self.bodies, strict=True)
            if not any(operand in body.uses for operand, body in pairs):
                self._remove_capture(index, None)

    def drop_unused_outputs(self, unused: set[Operand]) -> None:
        """Remove unread outputs, except state."""
        for index in reversed(range(self.states, len(self.outputs))):
            if self.outputs[index] not in unused:
                continue
            del self.outputs[index]
            position = self._before_next_state + index
            self.bodies = [
                Model(body.name, body.inputs, body.operations, _without(body.outputs, position))
                for body in self.bodies
            ]
            if isinstance(self.operation, Scan):
                for name in ("output_axes", "output_reversed"):
                    values = list(self.attributes[name])
                    del values[index - self.states]
                    self.attributes[name] = tuple(values)

    def rebuilt(self) -> ControlFlow:
        """Return the operation with the edited parts; the same object if nothing has changed."""
        if "states" in self.attributes:
            self.attributes["states"] = self.states
        operation = self.operation
        inputs = (*self.arguments, *self.captures)
        if inputs == operation.inputs and tuple(self.bodies) == operation.bodies:
            return operation
        kind: Callable[..., ControlFlow] = type(operation)
        outputs, attributes = tuple(self.outputs), self.attributes
        return kind(operation.name, inputs, outputs, bodies=self.bodies, **attributes)

    def _captured(self, body: Model) -> list[tuple[str, Operand]]:
        inputs = list(body.inputs.items())
        return inputs[len(inputs) - len(self.captures) :]

    def _remove_capture(self, index: int, value: Operand | None) -> None:
        """Remove a capture; let the bodies read `value` in its place, if there is one."""
        bodies = []
        for body in self.bodies:
            name, operand = self._captured(body)[index]
            inputs = {key: operand_ for key, operand_ in body.inputs.items() if key != name}
            replaced = {} if value is None else {operand: value}
            bodies.append(with_replaced_inputs(body, inputs, replaced))
        self.bodies = bodies
        del self.captures[index]


def _without(outputs: Any, dropped: int) -> dict[str, Operand]:
    return {name: o for index, (name, o) in enumerate(outputs.items()) if index != dropped}
