"""Tensors of other libraries with element types that NumPy lacks, such as bfloat16.

NumPy's own `from_dlpack` refuses them. Source: DLPack 1.1, `dlpack.h`.
"""

from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint64,
    c_void_p,
    cast,
    py_object,
    pythonapi,
)
from typing import Any, ClassVar

import numpy as np

from crosschip.ir import Array, ElementType

_PROCESSOR = 1
_TYPES = {
    (4, 16): ElementType.BFLOAT16,
    (10, 8): ElementType.FLOAT8E4M3FN,
    (11, 8): ElementType.FLOAT8E4M3FNUZ,
    (12, 8): ElementType.FLOAT8E5M2,
    (13, 8): ElementType.FLOAT8E5M2FNUZ,
    (14, 8): ElementType.FLOAT8E8M0,
}
"""The element types that NumPy does not know, by DLPack's code and number of bits."""


class _Tensor(Structure):
    _fields_: ClassVar[Any] = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _BorrowedMemory:
    """Memory of another library, kept alive as long as an array views it."""

    def __init__(self, capsule: object, interface: dict[str, Any]) -> None:
        self._capsule = capsule
        self.__array_interface__ = interface


def narrow_array(tensor: Any) -> Array | None:
    """Return a view of a tensor in host memory; `None` unless its type is in `_TYPES`.

    Args:
        tensor: an object with `__dlpack__`, whose errors are passed on.
    """
    capsule = tensor.__dlpack__()
    get = pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, (py_object, c_char_p)
    content = cast(get(capsule, b"dltensor"), POINTER(_Tensor)).contents
    element_type = _TYPES.get((content.code, content.bits))
    if element_type is None or content.lanes != 1 or content.device_type != _PROCESSOR:
        return None
    size = element_type.dtype.itemsize
    interface = {
        "version": 3,
        "shape": tuple(content.shape[: content.ndim]),
        "strides": tuple(size * s for s in content.strides[: content.ndim])
        if content.strides
        else None,
        "typestr": np.dtype(f"u{size}").str,
        "data": ((content.data or 0) + content.byte_offset, True),
    }
    return np.asarray(_BorrowedMemory(capsule, interface)).view(element_type.dtype)
