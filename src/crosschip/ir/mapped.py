"""Memory-mapped constants: telling them, and giving the system their pages back once read."""

from __future__ import annotations

import mmap

import numpy as np

from crosschip.ir.types import Array

_WORTHWHILE = 2**18


def is_mapped(array: Array) -> bool:
    """True if the array lies in a memory-mapped file, so that it changes when the file does."""
    return _mapping(array) is not None


def let_go(array: Array) -> None:
    """Say that a large memory-mapped array need not stay in memory for now.

    Its pages stop counting as the process's own; whoever reads it again gets them from the file,
    or from the system's cache of it. Any other array is left alone.
    """
    if array.nbytes < _WORTHWHILE:
        return
    mapping = _mapping(array)
    if mapping is not None and hasattr(mapping, "madvise"):
        start = _address(array) - _address(np.frombuffer(mapping, np.uint8))
        first = start - start % mmap.PAGESIZE
        mapping.madvise(mmap.MADV_DONTNEED, first, start + array.nbytes - first)


def _mapping(array: Array) -> mmap.mmap | None:
    owner: object = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner if isinstance(owner, mmap.mmap) else None


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
