"""Sharing memory between NumPy and OpenVINO, both ways without a copy."""

from __future__ import annotations

import numpy as np
import openvino

from crosschip.ir import Array, ElementType

_FOREIGN = "V"
"""The kind of types that are not NumPy's own. Which one it is takes an import to tell."""

_OTHER_NAMES = {
    np.dtype(code).num: np.dtype(np.dtype(code).name)
    for code in "ilqILQ"
    if np.dtype(code).num != np.dtype(np.dtype(code).name).num
}
"""Of NumPy's types that are alike but for their number, as `long` and `long long` may be, OpenVINO
knows one."""


class _Writable:
    """An array's memory, declared as writable.

    OpenVINO's Python interface turns read-only memory away, although it only reads constants and
    inputs.
    """

    def __init__(self, array: Array) -> None:
        self._array = array  # keeps the memory
        self.__array_interface__ = {
            **array.__array_interface__,
            "data": (array.ctypes.data, False),
        }


def shared_tensor(array: Array) -> openvino.Tensor:
    """A tensor in the memory of a C-contiguous array, which must outlive it."""
    dtype = array.dtype
    is_bfloat16 = dtype.kind == _FOREIGN and dtype == ElementType.BFLOAT16.dtype
    plain = array.view(np.uint16) if is_bfloat16 else array
    known = _OTHER_NAMES.get(plain.dtype.num)
    if known is not None:
        plain = plain.view(known)
    writable = plain if plain.flags.writeable else np.asarray(_Writable(plain))
    if is_bfloat16:
        return openvino.Tensor(writable, array.shape, openvino.Type.bf16)
    return openvino.Tensor(writable, shared_memory=True)


def array_of(tensor: openvino.Tensor) -> Array:
    """The elements of a tensor, as an array that keeps its memory."""
    data: Array = tensor.data
    if tensor.element_type == openvino.Type.bf16:
        return data.view(ElementType.BFLOAT16.dtype)
    return data


# What OpenVINO knows of NumPy's types it finds out in the first of these calls. Two threads that
# make it at once wait for each other for ever; whoever imports this is alone.
array_of(shared_tensor(np.zeros(1, np.float32)))
