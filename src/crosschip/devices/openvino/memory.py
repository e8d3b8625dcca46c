"""Memory shared between NumPy and OpenVINO, without copies in either direction."""

from __future__ import annotations

import numpy as np
import openvino

from crosschip.ir import Array, ElementType

_FOREIGN = "V"
"""The NumPy kind of extension types such as bfloat16, checked first to avoid an import."""

_OTHER_NAMES = {
    np.dtype(code).num: np.dtype(np.dtype(code).name)
    for code in "ilqILQ"
    if np.dtype(code).num != np.dtype(np.dtype(code).name).num
}
"""NumPy types that differ only in number, such as `long` and `long long`: OpenVINO accepts one."""


class _Writable:
    """The memory of an array, declared writable.

    OpenVINO's Python interface rejects read-only memory, although it only reads constants and
    inputs.
    """

    def __init__(self, array: Array) -> None:
        self._array = array  # keeps the memory
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def shared_tensor(array: Array) -> openvino.Tensor:
    """Return a tensor in the memory of a C-contiguous array, which must outlive the tensor."""
    dtype = array.dtype
    is_bfloat16 = dtype.kind == _FOREIGN and dtype == ElementType.BFLOAT16.dtype
    plain = array.view(np.uint16) if is_bfloat16 else array
    dtype_known = _OTHER_NAMES.get(plain.dtype.num)
    if dtype_known is not None:
        plain = plain.view(dtype_known)
    writable = plain if plain.flags.writeable else np.asarray(_Writable(plain))
    if is_bfloat16:
        return openvino.Tensor(writable, array.shape, openvino.Type.bf16)
    return openvino.Tensor(writable, shared_memory=True)


def array_of(tensor: openvino.Tensor) -> Array:
    """Return a tensor's elements as an array that keeps the tensor's memory alive."""
    data: Array = tensor.data
    if tensor.element_type == openvino.Type.bf16:
        return data.view(ElementType.BFLOAT16.dtype)
    return data


# The first call initializes OpenVINO's table of NumPy types, in which two threads would deadlock.
array_of(shared_tensor(np.zeros(1, np.float32)))
