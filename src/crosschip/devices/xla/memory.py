"""Memory of a chip, and transfers to and from it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from crosschip.hal import COMPLETED, Buffer, Event
from crosschip.ir import Array, DeviceError, ElementType

_LOOK_SECONDS = 0.0005


class XlaBuffer(Buffer):
    """A buffer that holds a JAX array; writing replaces the array.

    Args:
        value: the array.
        device: the `Device` that owns the memory.
        ready: the event after which the elements are valid.
    """

    def __init__(self, value: jax.Array, device: object, ready: Event = COMPLETED) -> None:
        self.value = value
        self.device = device
        self.ready = ready
        self.element_type = ElementType.of(np.dtype(value.dtype))
        self.shape = value.shape

    def array(self) -> Array:
        self.ready.wait()
        return owned(self.value).copy()

    def write(self, array: Array) -> None:
        if array.dtype != self.element_type.dtype or array.shape != self.shape:
            raise DeviceError(
                f"xla: {array.dtype}{list(array.shape)} is not what a buffer of "
                f"{self.element_type}{list(self.shape)} holds"
            )
        self.hold(on_chip(np.array(array), self.value.device), COMPLETED)

    def hold(self, value: jax.Array, ready: Event) -> None:
        """Replace the array by one of the same type and shape."""
        self.value = value
        self.ready = ready

    def __dlpack__(self, **request: Any) -> Any:
        self.ready.wait()
        return self.value.__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.value.__dlpack_device__()
        return int(kind), number


class XlaEvent(Event):
    """The end of a run.

    Args:
        outputs: the outputs of the run.
        rules: the error messages, one per element of the last output.
    """

    def __init__(self, outputs: Sequence[jax.Array], rules: Sequence[str]) -> None:
        self._outputs = outputs
        self._rules = rules

    @property
    def done(self) -> bool:
        return all(output.is_ready() for output in self._outputs)

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is not None:
            end = time.monotonic() + timeout
            while not self.done:
                if time.monotonic() >= end:
                    return False
                time.sleep(_LOOK_SECONDS)
        wait_for(self._outputs, self._rules)
        return True


def wait_for(outputs: Sequence[jax.Array], rules: Sequence[str]) -> None:
    """Wait until outputs are computed.

    Raises:
        DeviceError: the run failed, or broke a rule.
    """
    try:
        for output in outputs:
            output.block_until_ready()
    except Exception as error:  # the engine's exceptions have no base class of their own
        raise failure("failed while running", error) from error
    if rules:
        held = np.asarray(outputs[-1])
        if not held.all():
            raise DeviceError(f"xla: {rules[int(held.argmin())]}")


def on_chip(array: Array, chip: Any) -> jax.Array:
    """Copy an array to a chip's memory; the processor may share the array's memory."""
    with jax.enable_x64(True):
        return jax.device_put(array, chip)


class _Writable:
    """The memory of a read-only array, declared writable."""

    def __init__(self, array: Array) -> None:
        self._array = array  # keeps the memory
        self.__array_interface__ = {
            "shape": (array.nbytes,),
            "typestr": "|u1",
            "data": (array.ctypes.data, False),
            "version": 3,
        }


def owned(value: jax.Array) -> Array:
    """Return the elements of an array without other owners; on the processor, without a copy."""
    array = np.asarray(value)
    if not array.size or not array.flags.c_contiguous:
        return array.copy()
    return np.asarray(_Writable(array)).view(array.dtype).reshape(array.shape)


def failure(what: str, error: Exception) -> DeviceError:
    """Return an error that says what failed, with the first line of XLA's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return DeviceError(f"xla {what}: {lines[0] if lines else type(error).__name__}")
