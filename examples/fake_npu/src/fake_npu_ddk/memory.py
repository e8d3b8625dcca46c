"""The chip's memory: limited, and reached by handles only."""

from __future__ import annotations

import threading
from collections import deque
from itertools import count

import numpy as np

from fake_npu_ddk.status import NpuError, Status
from fake_npu_ddk.tensors import BLOCK, Array, Tensor


class Memory:
    """Memory of a size.

    Args:
        size: in bytes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._used = 0
        self._blocks: dict[int, Array] = {}
        self._handles = count(1)
        self._discarded: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        """The bytes that are not in use."""
        with self._lock:
            self._sweep()
            return self.size - self._used

    def allocate(self, size: int) -> int:
        """A block of memory; its handle.

        Raises:
            NpuError: there is not so much.
        """
        whole = -(-size // BLOCK) * BLOCK
        with self._lock:
            self._sweep()
            free = self.size - self._used
            if whole > free:
                raise NpuError(Status.OUT_OF_MEMORY, f"{whole} bytes of {free} that are free")
            self._used += whole
            handle = next(self._handles)
            self._blocks[handle] = np.zeros(whole, np.uint8)
            return handle

    def release(self, handle: int) -> None:
        """Give a block back."""
        with self._lock:
            self._release(handle)

    def discard(self, handle: int) -> None:
        """Have a block given back when memory is next asked for; finalizers may call it."""
        self._discarded.append(handle)

    def block(self, handle: int) -> Array:
        """The bytes of a block, for the chip itself."""
        if handle not in self._blocks:
            raise NpuError(Status.INVALID_HANDLE, str(handle))
        return self._blocks[handle]

    def copy_in(self, handle: int, tensor: Tensor, elements: Array) -> None:
        """Put the elements of a tensor into a block."""
        self._checked(handle, tensor)[...] = elements

    def copy_out(self, handle: int, tensor: Tensor) -> Array:
        """The elements of a tensor in a block, in memory of their own."""
        return self._checked(handle, tensor).copy()

    def _sweep(self) -> None:
        while self._discarded:
            self._release(self._discarded.popleft())

    def _release(self, handle: int) -> None:
        self._used -= len(self.block(handle))
        del self._blocks[handle]

    def _checked(self, handle: int, tensor: Tensor) -> Array:
        block = self.block(handle)
        if tensor.size > len(block):
            raise NpuError(
                Status.INVALID_ARGUMENT, f"{tensor.size} bytes in a block of {len(block)}"
            )
        return tensor.view(block)
