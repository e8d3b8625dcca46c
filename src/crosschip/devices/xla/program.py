"""Compiled models: an executable, and weights shared with programs for other shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np

from crosschip.devices.kits.stablehlo.padded import cut, open_axes
from crosschip.devices.kits.stablehlo.weights import OnChip
from crosschip.devices.xla.memory import XlaBuffer, XlaEvent, owned, wait_for
from crosschip.hal import Buffer, Event, Program, Submission
from crosschip.ir import Array, Model

if TYPE_CHECKING:
    from crosschip.devices.xla.engine import Engine, Executable


class XlaProgram(Program):
    """A model of static shapes, or one operation with data-dependent output sizes.

    The executable pads such sizes and returns the actual size as an additional output; the padding
    is removed on the host.

    Args:
        engine: the engine that compiled it.
        executable: the compiled function.
        weights: its first arguments.
        model: the source model.
        device: the `Device` that owns the outputs' memory.
    """

    def __init__(
        self,
        engine: Engine,
        executable: Executable,
        weights: Sequence[OnChip],
        model: Model,
        device: object,
    ) -> None:
        self._padded = open_axes(model)
        self._engine = engine
        self._executable = executable
        self._keep_alive = weights
        self._weights = [weight.value for weight in weights]
        self._device = device

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self._finish(self._executable([*self._weights, *map(self._engine.put, inputs)]))

    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        for event in after:
            if not isinstance(event, XlaEvent):  # XLA orders its own runs
                event.wait()
        executable = self._executable
        results = executable([*self._weights, *map(self._value, inputs)])
        if self._padded:
            return Submission.on_host(self._finish(results), outputs)
        event = XlaEvent(results, executable.rules)
        if executable.rules:
            results = results[:-1]
        targets = outputs or [None] * len(results)
        return Submission(
            [
                self._store_output(value, buffer, event)
                for value, buffer in zip(results, targets, strict=True)
            ],
            event,
        )

    def save(self) -> bytes:
        return self._executable.to_bytes()

    def close(self) -> None:
        vars(self).clear()

    def _finish(self, results: list[jax.Array]) -> Sequence[Array]:
        """Return the outputs of a run, on the host."""
        rules = self._executable.rules
        wait_for(results, rules)
        if rules:
            results.pop()
        if not self._padded:
            return [owned(output) for output in results]
        count = int(results.pop())
        return [
            owned(output) if axis is None else cut(np.asarray(output), axis, count)
            for output, axis in zip(results, self._padded, strict=True)
        ]

    def _value(self, buffer: Buffer) -> jax.Array:
        return buffer.value if isinstance(buffer, XlaBuffer) else self._engine.put(buffer.array())

    def _store_output(self, value: jax.Array, buffer: Buffer | None, event: Event) -> Buffer:
        """Return an output, in the caller's buffer if there is one."""
        if not isinstance(buffer, XlaBuffer):
            if buffer is None:
                return XlaBuffer(value, self._device, event)
            event.wait()
            buffer.write(owned(value))
            return buffer
        buffer.hold(value, event)
        return buffer
