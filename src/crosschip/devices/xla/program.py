"""Compiled models: an executable for each set of input shapes, and weights for all."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import jax

from crosschip.devices.xla.memory import XlaBuffer, XlaEvent, owned, settle
from crosschip.devices.xla.saved import Record, write
from crosschip.devices.xla.weights import weights_of
from crosschip.hal import Buffer, Event, Options, Program, Submission
from crosschip.ir import Array, Model

if TYPE_CHECKING:
    from crosschip.devices.xla.engine import Engine, Executable

Shapes = tuple[tuple[int, ...], ...]


class XlaProgram(Program):
    """The executables of a model, of which only the last ones that were used are kept.

    Args:
        engine: what compiles them.
        model: what they compute.
        options: how they are compiled.
        device: the `Device` whose memory the outputs are in.
    """

    specializes: ClassVar[bool] = True

    def __init__(self, engine: Engine, model: Model, options: Options, device: object) -> None:
        self._engine = engine
        self._model = model
        self._options = options
        self._device = device
        self._constants = weights_of(model)
        self._weights = [engine.put(weight.elements()) for weight in self._constants]
        self._executables: OrderedDict[Shapes, Executable] = OrderedDict()
        self._compiling = threading.Lock()

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        executable = self._executable(tuple([array.shape for array in inputs]))
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
        executable = self._executable(tuple([buffer.shape for buffer in inputs]))
        made = executable([*self._weights, *map(self._value, inputs)])
        event = XlaEvent(made, executable.rules)
        if executable.rules:
            made = made[:-1]
        given = outputs or [None] * len(made)
        return Submission(
            [self._held(value, buffer, event) for value, buffer in zip(made, given, strict=True)],
            event,
        )

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        wanted = tuple(map(tuple, shapes))
        if wanted in self._executables:
            self._use(wanted)
            return False
        with self._compiling:
            if wanted in self._executables:
                return False
            precision = self._options.precision
            made = self._engine.executable(self._model, self._constants, wanted, precision)
            self.keep(wanted, made)
        return True

    def keep(self, shapes: Shapes, executable: Executable) -> None:
        """Have an executable for input shapes; the one that was used least recently may go."""
        self._executables[shapes] = executable
        while len(self._executables) > self._options.sizes.specializations:
            self._executables.popitem(last=False)

    def save(self) -> bytes:
        with self._compiling:
            kept = list(self._executables.items())
        stored = [executable.to_bytes() for _, executable in kept]
        records = [
            Record(shapes, executable.rules, len(code))
            for (shapes, executable), code in zip(kept, stored, strict=True)
        ]
        return write(records, stored)

    def close(self) -> None:
        vars(self).clear()

    def _executable(self, shapes: Shapes) -> Executable:
        found = self._executables.get(shapes)
        while found is None:
            self.prepare(shapes)
            found = self._executables.get(shapes)
        return found

    def _use(self, shapes: Shapes) -> None:
        try:
            self._executables.move_to_end(shapes)
        except KeyError:  # another thread has just compiled for others
            return

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
