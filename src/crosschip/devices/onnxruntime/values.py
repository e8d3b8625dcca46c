"""Arrays in and out of ONNX Runtime, which knows only NumPy's own types by name.

Elements of bfloat16 and of eight-bit floats go in and out as the integers of their bits. A value
shares the memory of the array that it is made of, unless that holds strings.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np
from onnxruntime import NodeArg, OrtValue

from crosschip.ir import Array

_FOREIGN = ("tensor(bfloat16)", "tensor(float8")
_NUMPYS = frozenset(
    f"tensor({name})"
    for name in (
        *("bool", "double", "float", "float16", "string"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
)


def all_known(arguments: Iterable[NodeArg]) -> bool:
    """Tell whether NumPy itself has the types of all elements of a session's inputs or outputs."""
    return not any(name in value.type for value in arguments for name in _FOREIGN)


def is_tensor(argument: NodeArg) -> bool:
    """Tell whether an input or output is a tensor."""
    return bool(argument.type.startswith("tensor("))


def renamed(arguments: Iterable[NodeArg]) -> list[tuple[int, np.dtype]]:
    """The outputs of types for which NumPy has two names, each with that of the usual name.

    ONNX Runtime's arrays of 64-bit integers are of C's `long long`, whatever `np.int64` is.
    """
    usual = {f"tensor({name})": np.dtype(name) for name in ("int64", "uint64")}
    return [
        (index, usual[value.type]) for index, value in enumerate(arguments) if value.type in usual
    ]


def ortvalue(array: Array) -> OrtValue:
    """An array as one of ONNX Runtime's values."""
    if _is_numpys(array.dtype):
        return OrtValue.ortvalue_from_numpy(array)
    from onnx import helper  # most programs run without it

    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    bits = array.view(f"u{array.itemsize}")
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, code)


def array_of(value: OrtValue) -> Array:
    """The elements of a value, in memory of their own if NumPy does not have their type."""
    if value.data_type() in _NUMPYS:
        array: Array = value.numpy()
        return array
    from onnx import helper  # most programs run without it

    dtype = helper.tensor_dtype_to_np_dtype(value.element_type())
    copy = bytearray(ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()))
    return np.frombuffer(copy, dtype).reshape(value.shape())


def _is_numpys(dtype: np.dtype) -> bool:
    return dtype.isbuiltin == 1
