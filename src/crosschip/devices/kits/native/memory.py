"""Buffers in the memory of a device written in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.devices.kits.native.interface import foreign
from crosschip.devices.kits.native.library import Library
from crosschip.hal.buffers import COMPLETED, Buffer, Event
from crosschip.ir import Array, DeviceError, ElementType


class NativeBuffer(Buffer):
    """Memory that a driver allocated; freed with the buffer.

    Args:
        device: the device that owns the memory.
        library: the driver's library.
        context: the driver's context.
        element_type: the element type.
        shape: the shape.

    Raises:
        DeviceError: there is not enough memory.
    """

    def __init__(
        self,
        device: object,
        library: Library,
        context: Any,
        element_type: ElementType,
        shape: tuple[int, ...],
    ) -> None:
        self.element_type, self.shape, self.device = element_type, shape, device
        self.ready: Event = COMPLETED
        self._library, self._context = library, context
        self._freed = True
        self.length = int(np.prod(shape, dtype=np.int64)) * element_type.dtype.itemsize
        handle = foreign().new("void **")
        library.call("allocate_memory", context, max(1, self.length), handle)
        self._memory, self._freed = handle[0], False

    @property
    def memory(self) -> Any:
        """The driver's handle of the memory.

        Raises:
            DeviceError: the device is closed.
        """
        if self._freed:
            raise DeviceError("the memory went with its device, which is closed")
        return self._memory

    def free(self) -> None:
        """Free the memory; the buffer must not be read or written afterwards."""
        if not self._freed:
            self._freed = True
            self._library.driver.free_memory(self._context, self._memory)

    def array(self) -> Array:
        self.ready.wait()
        array = np.empty(self.shape, self.element_type.dtype)
        data = foreign().cast("void *", array.ctypes.data)
        self._library.call("read_memory", self._context, self.memory, data, self.length)
        return array

    def write(self, array: Array) -> None:
        contiguous = np.ascontiguousarray(array)
        data = foreign().cast("const void *", contiguous.ctypes.data)
        self._library.call("write_memory", self._context, self.memory, data, self.length)

    def __dlpack__(self, **request: Any) -> Any:
        return self.array().__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.empty(0).__dlpack_device__()

    def __del__(self) -> None:
        self.free()
