"""Element types of tensors inside a program, and their conversion at its ends.

PyTorch computes in all types of the models but unsigned integers of more than 8 bits and types of
fewer than 8. These are inside a program: uint16 and uint32 as the next wider signed integer, uint64
as the int64 of the same bits, integers of 2 and 4 bits as those of 8, and narrow floats as their
bits in uint8.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from crosschip.ir import Array, ElementType
from crosschip.ir.types import NARROW_FLOATS, NARROW_INTEGERS

_UNSIGNED: Mapping[ElementType, torch.dtype] = {
    ElementType.UINT16: torch.int32,
    ElementType.UINT32: torch.int64,
    ElementType.UINT64: torch.int64,
}
_INNER: dict[ElementType, torch.dtype] = {
    **{
        ElementType(name): getattr(torch, name)
        for name in ("bool", "int8", "uint8", "int16", "int32", "int64")
    },
    **{
        ElementType(name): getattr(torch, name)
        for name in ("float16", "bfloat16", "float32", "float64")
    },
    **_UNSIGNED,
    **{t: torch.uint8 if t.value.startswith("u") else torch.int8 for t in NARROW_INTEGERS},
    **dict.fromkeys(NARROW_FLOATS, torch.uint8),
}
NARROW = frozenset(_INNER) & (NARROW_INTEGERS | NARROW_FLOATS)
CARRIED = frozenset(_UNSIGNED) | NARROW
"""The types that have another type inside a program."""

SHARED = frozenset(_INNER) - CARRIED - {ElementType.BFLOAT16}
"""The types whose arrays and tensors share memory as they are."""


def inner(element_type: ElementType) -> torch.dtype:
    """Return the type of a tensor inside a program."""
    return _INNER[element_type]


def entering(tensor: torch.Tensor, element_type: ElementType) -> torch.Tensor:
    """Convert a tensor to its type inside a program."""
    if element_type is ElementType.UINT64:
        return tensor.view(torch.int64)
    return tensor.to(_INNER[element_type]) if element_type in _UNSIGNED else tensor


def leaving(tensor: torch.Tensor, element_type: ElementType) -> torch.Tensor:
    """Convert a tensor from its type inside a program."""
    if element_type is ElementType.UINT64:
        return tensor.view(torch.uint64)
    return tensor.to(getattr(torch, element_type.value)) if element_type in _UNSIGNED else tensor


def wrapped(tensor: torch.Tensor, element_type: ElementType) -> torch.Tensor:
    """Convert numbers to the inner form of a type; integers keep the low bits."""
    tensor = tensor.to(_INNER[element_type])
    if element_type in NARROW_INTEGERS:
        spare = 8 - int(element_type.value.lstrip("uint"))
        return torch.bitwise_right_shift(torch.bitwise_left_shift(tensor, spare), spare)
    if element_type in (ElementType.UINT16, ElementType.UINT32):
        return torch.bitwise_and(
            tensor, 0xFFFF if element_type is ElementType.UINT16 else 2**32 - 1
        )
    return tensor


def of_array(array: Array) -> torch.Tensor:
    """Return a tensor of the host that shares the array's memory, where its type allows it."""
    element_type = ElementType.of(array.dtype)
    array = array.view(element_type.dtype)  # NumPy has two types for some integers
    if not array.flags.writeable:
        array = np.asarray(_Writable(array)).view(array.dtype).reshape(array.shape)
    if element_type is ElementType.BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    if element_type in NARROW_FLOATS:
        return torch.from_numpy(array.view(np.uint8))
    if element_type in NARROW_INTEGERS:
        unsigned = element_type.value.startswith("u")
        return torch.from_numpy(array.astype(np.uint8 if unsigned else np.int8))
    return torch.from_numpy(array)


def to_array(tensor: torch.Tensor, element_type: ElementType) -> Array:
    """Return the array of a contiguous tensor of the host; it shares memory as in `of_array`."""
    if element_type is ElementType.BFLOAT16:
        bits: Array = tensor.view(torch.int16).numpy()
        return bits.view(element_type.dtype)
    array: Array = tensor.numpy()
    if element_type in NARROW_FLOATS:
        return array.view(element_type.dtype)
    return array.astype(element_type.dtype) if element_type in NARROW_INTEGERS else array


class _Writable:
    """The memory of a read-only array, declared writable, since PyTorch warns of others."""

    def __init__(self, array: Array) -> None:
        self._array = array  # keeps the memory
        self.__array_interface__ = {
            "shape": (array.nbytes,),
            "typestr": "|u1",
            "data": (array.ctypes.data, False),
            "version": 3,
        }
