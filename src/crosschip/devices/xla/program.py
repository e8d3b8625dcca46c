"""Compiled models: an executable, and the weights that it shares with those for other shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax

from crosschip.devices.xla.memory import XlaBuffer, XlaEvent, owned, settle
from crosschip.devices.xla.weights import OnChip
from crosschip.hal import Buffer, Event, Program, Submission
from crosschip.ir import Array

if TYPE_CHECKING:
    from crosschip.devices.xla.engine import Engine, Executable


class XlaProgram(Program):
    """A model of known sizes.

    Args:
        engine: what compiled it.
        executable: what it compiled.
        weights: the first arguments of the executable.
        device: the `Device` whose memory the outputs are in.
    """

    def __init__(
        self, engine: Engine, executable: Executable, weights: Sequence[OnChip], device: object
    ) -> None:
        self._engine = engine
        self._executable = executable
        self._kept = weights
        self._weights = [weight.value for weight in weights]
        self._device = device

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        executable = self._executable
        outputs = executable([*self._weights, *map(self._engine.put, inputs)])
        settle(outputs, executable.rules)
        if executable.rules:
            outputs.pop()
        return [owned(output) for output in outputs]

    def submit(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer | None],
        after: Sequence[Event],
    ) -> Submission:
        for event in after:
            if not isinstance(event, XlaEvent):  # XLA keeps its own runs in order
                event.wait()
        executable = self._executable
        made = executable([*self._weights, *map(self._value, inputs)])
        event = XlaEvent(made, executable.rules)
        if executable.rules:
            made = made[:-1]
        given = outputs or [None] * len(made)
        return Submission(
            [self._held(value, buffer, event) for value, buffer in zip(made, given, strict=True)],
            event,
        )

    def save(self) -> bytes:
        return self._executable.to_bytes()

    def close(self) -> None:
        vars(self).clear()

    def _value(self, buffer: Buffer) -> jax.Array:
        return buffer.value if isinstance(buffer, XlaBuffer) else self._engine.put(buffer.array())

    def _held(self, value: jax.Array, buffer: Buffer | None, event: Event) -> Buffer:
        """An output, in the buffer that there is for it."""
        if not isinstance(buffer, XlaBuffer):
            if buffer is None:
                return XlaBuffer(value, self._device, event)
            event.wait()
            buffer.write(owned(value))
            return buffer
        buffer.hold(value, event)
        return buffer
