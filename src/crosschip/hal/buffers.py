"""Tensor memory on hosts and devices, and events that signal when it has been written."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, DeviceError, ElementType
from crosschip.ir.dataclass import dataclass


class Event(ABC):
    """Completion of work that was submitted to a device."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Return whether the work has ended, successfully or not."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the work has ended, at most `timeout` seconds; return whether it has.

        Raises:
            DeviceError: the work failed.
        """


class _Completed(Event):
    """Event of work that has already succeeded."""

    @property
    def done(self) -> bool:
        return True

    def wait(self, timeout: float | None = None) -> bool:
        return True


COMPLETED: Event = _Completed()


class HostEvent(Event):
    """Event that a thread of this process sets."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._error: BaseException | None = None

    def set(self, error: BaseException | None = None) -> None:
        """Mark the work as ended, with the error if it failed."""
        self._error = error
        self._ended.set()

    @property
    def done(self) -> bool:
        return self._ended.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        ended = self._ended.wait(timeout)
        if ended and self._error is not None:
            raise DeviceError(str(self._error)) from self._error
        return ended


class Buffer(ABC):
    """Memory that holds one tensor, on a device or on the host.

    It supports DLPack, so other libraries can use it (`torch.from_dlpack(buffer)`).

    Attributes:
        element_type: the type of the elements.
        shape: the static shape.
        ready: the event after which the elements are valid.
        device: the `Device` that owns the memory; `None` for host memory.
    """

    element_type: ElementType
    shape: tuple[int, ...]
    ready: Event = COMPLETED
    device: object | None = None

    @abstractmethod
    def array(self) -> Array:
        """Wait for the elements and return them on the host, without a copy of host memory."""

    @abstractmethod
    def write(self, array: Array) -> None:
        """Copy an array of the buffer's type and shape into the memory."""

    @abstractmethod
    def __dlpack__(self, **request: Any) -> Any: ...

    @abstractmethod
    def __dlpack_device__(self) -> tuple[int, int]: ...


class HostBuffer(Buffer):
    """NumPy array as a buffer, without a copy."""

    def __init__(self, array: Array, ready: Event = COMPLETED) -> None:
        self.element_type = ElementType.of(array.dtype)
        self.shape = array.shape
        self.ready = ready
        self._array = array

    def array(self) -> Array:
        self.ready.wait()
        return self._array

    def write(self, array: Array) -> None:
        np.copyto(self._array, array, casting="no")

    def __dlpack__(self, **request: Any) -> Any:
        return self.array().__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@dataclass(frozen=True, slots=True)
class Submission:
    """Work that was submitted to a device.

    Attributes:
        outputs: buffers of the results, in the order of the program's outputs.
        event: the completion of the work.
    """

    outputs: Sequence[Buffer]
    event: Event

    @classmethod
    def on_host(cls, results: Sequence[Array], places: Sequence[Buffer | None]) -> Submission:
        """Return a completed submission.

        Args:
            results: the results.
            places: for each result the buffer to copy it to, or `None`; empty if there are no
                buffers.
        """
        buffers: list[Buffer] = [HostBuffer(array) for array in results]
        for index, place in enumerate(places):
            if place is not None:
                place.write(results[index])
                buffers[index] = place
        return cls(buffers, COMPLETED)
