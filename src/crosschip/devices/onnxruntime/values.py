"""Conversion of arrays to and from ONNX Runtime's values.

Elements of types that NumPy lacks, such as bfloat16 and 8-bit floats, are passed as integers of the
same bits. A value shares its array's memory, unless it holds strings.
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


def all_numpy_types(arguments: Iterable[NodeArg]) -> bool:
    """Return whether all inputs or outputs have element types of NumPy."""
    return not any(name in value.type for value in arguments for name in _FOREIGN)


def is_tensor(argument: NodeArg) -> bool:
    """Return whether an input or output is a tensor."""
    return bool(argument.type.startswith("tensor("))


def unusual_types(arguments: Iterable[NodeArg]) -> list[tuple[int, np.dtype]]:
    """Return the outputs for which NumPy has two types, with the usual one: indices and types.

    ONNX Runtime's 64-bit integers are C's `long long`, whatever `np.int64` is.
    """
    usual = {f"tensor({name})": np.dtype(name) for name in ("int64", "uint64")}
    return [
        (index, usual[value.type]) for index, value in enumerate(arguments) if value.type in usual
    ]


def ortvalue(array: Array) -> OrtValue:
    """Convert an array to an ONNX Runtime value."""
    if _is_numpys(array.dtype):
        return OrtValue.ortvalue_from_numpy(array)

    from onnx import helper  # imported late: rarely needed

    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    bits = array.view(f"u{array.itemsize}")
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, code)


def array_of(value: OrtValue) -> Array:
    """Return a value's elements, copied if NumPy lacks their type."""
    if value.data_type() in _NUMPYS:
        array: Array = value.numpy()
        return array
    from onnx import helper  # imported late: rarely needed

    dtype = helper.tensor_dtype_to_np_dtype(value.element_type())
    copy = bytearray(ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()))
    return np.frombuffer(copy, dtype).reshape(value.shape())


def _is_numpys(dtype: np.dtype) -> bool:
    return dtype.isbuiltin == 1
