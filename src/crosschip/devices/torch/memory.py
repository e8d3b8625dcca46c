"""Memory of a chip, transfers to and from it, and the completion of its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

import torch

from crosschip.devices.torch.elements import SHARED, entering, leaving, of_array, to_array
from crosschip.hal import COMPLETED, Buffer, Event
from crosschip.ir import Array, DeviceError, ElementType

_LOOK_SECONDS = 0.0002


def place(array: Array, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor of a program; the processor shares its memory if it can."""
    tensor = of_array(array)
    if device.type == "cuda":  # a transfer from pinned memory does not wait
        tensor = tensor.pin_memory().to(device, non_blocking=True)
    elif device.type != "cpu":
        tensor = tensor.to(device)
    return entering(tensor, ElementType.of(array.dtype))


def fetch(tensor: torch.Tensor, element_type: ElementType) -> Array:
    """Return a tensor of a program as an array, which shares memory of the processor."""
    return to_array(leaving(tensor, element_type).cpu(), element_type)


def placing(element_type: ElementType, device: torch.device) -> Callable[[Array], torch.Tensor]:
    """Return the function that places arrays of a type: `place`, or less where that is enough."""
    if device.type != "cpu" or element_type not in SHARED:
        return lambda array: place(array, device)
    own = element_type.dtype

    def share(array: Array) -> torch.Tensor:
        if array.flags.writeable and array.dtype is own:
            return torch.from_numpy(array)
        return of_array(array)

    return share


def fetching(element_type: ElementType, device: torch.device) -> Callable[[torch.Tensor], Array]:
    """Return the function that fetches tensors of a type: `fetch`, or less where that is enough."""
    if device.type != "cpu" or element_type not in SHARED:
        return lambda tensor: fetch(tensor, element_type)
    return torch.Tensor.numpy


def owned(tensor: torch.Tensor, taken: Collection[int]) -> torch.Tensor:
    """Return a contiguous tensor that shares no memory with others.

    Args:
        tensor: the tensor.
        taken: the addresses of the others' memory.
    """
    storage = tensor.untyped_storage()
    if (
        not tensor.is_contiguous()
        or storage.nbytes() != tensor.nbytes
        or storage.data_ptr() in taken
    ):
        return tensor.clone(memory_format=torch.contiguous_format)
    return tensor


class TorchEvent(Event):
    """The end of a run on an accelerator.

    Args:
        device: the accelerator, whose current stream ran it.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._event = torch.Event(device)
        self._event.record()

    @property
    def done(self) -> bool:
        return bool(self._event.query())

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is not None:
            end = time.monotonic() + timeout
            while not self.done:
                if time.monotonic() >= end:
                    return False
                time.sleep(_LOOK_SECONDS)
        try:
            try:
                self._event.synchronize()
            except RuntimeError:  # an accelerator of a package need not have events
                getattr(torch, self._device.type).synchronize()
        except RuntimeError as error:
            raise failure("failed while running", error) from error
        return True

    def order(self) -> None:
        """Let work that is queued later wait for it, without waiting here."""
        self._event.wait()


def end_of_run(device: torch.device) -> Event:
    """Return the event of the work that is queued on a chip."""
    return COMPLETED if device.type == "cpu" else TorchEvent(device)


class TorchBuffer(Buffer):
    """A buffer that holds a tensor of a program.

    Args:
        tensor: the tensor, in its type inside programs.
        element_type: the type of its elements.
        device: the `Device` that owns the memory.
        ready: the event after which the elements are valid.
    """

    def __init__(
        self,
        tensor: torch.Tensor,
        element_type: ElementType,
        device: object,
        ready: Event = COMPLETED,
    ) -> None:
        self.tensor = tensor
        self.element_type = element_type
        self.shape = tuple(tensor.shape)
        self.device = device
        self.ready = ready

    def array(self) -> Array:
        self.ready.wait()
        return fetch(self.tensor, self.element_type).copy()

    def write(self, array: Array) -> None:
        if array.dtype != self.element_type.dtype or array.shape != self.shape:
            raise DeviceError(
                f"torch: {array.dtype}{list(array.shape)} is not what a buffer of "
                f"{self.element_type}{list(self.shape)} holds"
            )
        self.ready.wait()
        with torch.inference_mode():
            self.tensor.copy_(place(array, self.tensor.device))

    def __dlpack__(self, **request: Any) -> Any:
        self.ready.wait()
        return leaving(self.tensor, self.element_type).__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.tensor.__dlpack_device__()
        return int(kind), number


def failure(what: str, error: BaseException) -> DeviceError:
    """Return an error that says what failed, with the first line of PyTorch's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return DeviceError(f"torch {what}: {lines[0] if lines else type(error).__name__}")
