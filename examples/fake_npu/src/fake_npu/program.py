"""Programs on the chip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from crosschip.devices.kits.toolchain.program import OutputMap
from crosschip.hal import Buffer, Event, Program, Submission
from crosschip.ir import Array
from fake_npu import saved
from fake_npu.forms import Form
from fake_npu.memory import NpuBuffer, NpuEvent, failure
from fake_npu_ddk import Chip, NpuError


class NpuProgram(Program):
    """A program of the DDK.

    Args:
        parts: the program, what it reads and what it makes.
        chip: the chip.
        device: the `Device` whose memory outputs are in.

    Raises:
        DeviceError: the chip does not take it.
    """

    def __init__(self, parts: saved.Parts, chip: Chip, device: object) -> None:
        self._parts = parts
        self._chip = chip
        self._device = device
        try:
            self._handle = chip.load(parts.code)
        except NpuError as error:
            raise failure(error) from error

    def submit(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer | None],
        after: Sequence[Event],
    ) -> Submission:
        for event in after:
            if not (isinstance(event, NpuEvent) and event.chip is self._chip):
                event.wait()
        read = [self._fed(inputs[place], form) for place, form in self._parts.feeds]
        places = outputs or [None] * len(self._parts.results)
        made = [
            place if place is not None and self._holds(place, form) else self._new(form)
            for place, form in zip(places, self._parts.results, strict=True)
        ]
        blocks = [[buffer.block for buffer in buffers] for buffers in (read, made)]
        try:
            event = NpuEvent(self._chip.submit(self._handle, *blocks), self._chip)
        except NpuError as error:
            raise failure(error) from error
        for buffer in made:
            buffer.ready = event
        return Submission([*map(_delivered, made, places)], event)

    def save(self) -> bytes:
        return saved.write(self._parts)

    def close(self) -> None:
        self._chip.unload(self._handle)

    def _holds(self, buffer: Buffer, form: Form) -> TypeGuard[NpuBuffer]:
        """Tell whether a buffer is one of this chip's in which a tensor lies in a form."""
        return isinstance(buffer, NpuBuffer) and buffer.chip is self._chip and buffer.form == form

    def _fed(self, buffer: Buffer, form: Form) -> NpuBuffer:
        """An input in the chip's memory."""
        if self._holds(buffer, form):
            return buffer
        entered = self._new(form)
        entered.write(buffer.array())
        return entered

    def _new(self, form: Form) -> NpuBuffer:
        return NpuBuffer(self._chip, form, self._device)


def _delivered(made: NpuBuffer, place: Buffer | None) -> Buffer:
    """An output where the caller wants it."""
    if place is None or place is made:
        return made
    place.write(made.array())
    return place


class WithKnownOutputs(Program):
    """A program, and those outputs of its model that are inputs, constants, or another once more.

    Args:
        inner: the program of the others; `None` if there are none.
        outputs: which are which.
    """

    def __init__(self, inner: Program | None, outputs: OutputMap) -> None:
        self._inner = inner
        self._outputs = outputs

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self._outputs.fill(inputs, self._inner.run(inputs) if self._inner else [])

    def save(self) -> bytes | None:
        return self._inner.save() if self._inner else b""

    def close(self) -> None:
        if self._inner:
            self._inner.close()
