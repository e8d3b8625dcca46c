"""Memory-mapped constants: letting the system have their pages back once they have been read."""

from __future__ import annotations

import mmap

import numpy as np

from crosschip.ir.types import Array

_WORTHWHILE = 2**18


def let_go(array: Array) -> None:
    """Say that a large memory-mapped array need not stay in memory for now.

    Its pages stop counting as the process's own; whoever reads it again gets them from the file,
    or from the system's cache of it. Any other array is left alone.
    """
    if array.nbytes < _WORTHWHILE:
        return
    owner: object = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    if isinstance(owner, mmap.mmap) and hasattr(owner, "madvise"):
        start = _address(array) - _address(np.frombuffer(owner, np.uint8))
        first = start - start % mmap.PAGESIZE
        owner.madvise(mmap.MADV_DONTNEED, first, start + array.nbytes - first)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
