"""Tensors in the chip's memory, and the ends of its runs."""

from __future__ import annotations

import weakref
from typing import Any

from crosschip.hal import COMPLETED, Buffer, Event
from crosschip.ir import Array, DeviceError
from fake_npu.forms import Form
from fake_npu_ddk import Chip, Fence, NpuError


class NpuEvent(Event):
    """The end of a run.

    Args:
        fence: the chip's.
        chip: whose it is; runs of one chip come one after the other.
    """

    def __init__(self, fence: Fence, chip: Chip) -> None:
        self._fence = fence
        self.chip = chip

    @property
    def done(self) -> bool:
        return self._fence.passed

    def wait(self, timeout: float | None = None) -> bool:
        try:
            return self._fence.wait(timeout)
        except NpuError as error:
            raise failure(error) from error


class NpuBuffer(Buffer):
    """A tensor in the chip's memory, which is given back with it.

    Args:
        chip: the chip.
        form: how the tensor lies there.
        device: the `Device` whose memory it is.

    Raises:
        DeviceError: there is not so much memory.
    """

    def __init__(self, chip: Chip, form: Form, device: object) -> None:
        self.element_type = form.element_type
        self.shape = form.shape
        self.ready = COMPLETED
        self.device = device
        self.form = form
        self.chip = chip
        try:
            self.block = chip.memory.allocate(form.tensor.size)
        except NpuError as error:
            raise failure(error) from error
        weakref.finalize(self, chip.memory.discard, self.block)

    def array(self) -> Array:
        self.ready.wait()
        return self.form.from_chip(self.chip.memory.copy_out(self.block, self.form.tensor))

    def write(self, array: Array) -> None:
        if array.dtype != self.element_type.dtype or array.shape != self.shape:
            raise DeviceError(
                f"fake_npu: {array.dtype}{list(array.shape)} is not what a buffer of "
                f"{self.element_type}{list(self.shape)} holds"
            )
        self.ready.wait()
        self.chip.memory.copy_in(self.block, self.form.tensor, self.form.to_chip(array))

    def __dlpack__(self, **request: Any) -> Any:
        return self.array().__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def failure(error: NpuError) -> DeviceError:
    """The DDK's error as crosschip's."""
    return DeviceError(f"fake_npu: {error}")
