"""Memory that programs read and write, and the moments at which it has been written."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, DeviceError, ElementType
from crosschip.ir.dataclass import dataclass


class Event(ABC):
    """The end of work that a device has taken on."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Tell whether the work has ended, well or not."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the work has ended, at most `timeout` seconds; whether it has.

        Raises:
            DeviceError: it ended in a failure.
        """


class _Completed(Event):
    """The end of work that was done before anybody asked."""

    @property
    def done(self) -> bool:
        return True

    def wait(self, timeout: float | None = None) -> bool:
        return True


COMPLETED: Event = _Completed()


class HostEvent(Event):
    """An event that some thread of this process sets."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._error: BaseException | None = None

    def set(self, error: BaseException | None = None) -> None:
        """Say that the work has ended, in this failure if there is one."""
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

    Speaks DLPack, so that any library takes it (`torch.from_dlpack(buffer)`).

    Attributes:
        element_type: the type of the elements.
        shape: the sizes, all known.
        ready: when the elements are there.
        device: the `Device` whose memory it is; `None` if it is the host's.
    """

    element_type: ElementType
    shape: tuple[int, ...]
    ready: Event = COMPLETED
    device: object | None = None

    @abstractmethod
    def array(self) -> Array:
        """The elements on the host, once they are there: the memory itself if it is the host's."""

    @abstractmethod
    def write(self, array: Array) -> None:
        """Fill the memory with the elements of an array of its type and shape."""

    @abstractmethod
    def __dlpack__(self, **request: Any) -> Any: ...

    @abstractmethod
    def __dlpack_device__(self) -> tuple[int, int]: ...


class HostBuffer(Buffer):
    """An array as a buffer, in its own memory."""

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
    """Work that a device has taken on.

    Attributes:
        outputs: where the results will be, in the order of the program's outputs.
        event: the end of the work.
    """

    outputs: Sequence[Buffer]
    event: Event

    @classmethod
    def on_host(cls, results: Sequence[Array], places: Sequence[Buffer | None]) -> Submission:
        """Work that is done.

        Args:
            results: the results.
            places: for each result where to put it, or `None`; empty if there is no place for any.
        """
        buffers: list[Buffer] = [HostBuffer(array) for array in results]
        for index, place in enumerate(places):
            if place is not None:
                place.write(results[index])
                buffers[index] = place
        return cls(buffers, COMPLETED)
