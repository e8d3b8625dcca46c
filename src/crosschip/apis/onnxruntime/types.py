"""ONNX Runtime's names of types, such as `tensor(float)`, and the types of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.apis.onnxruntime.errors import InvalidArgument
from crosschip.ir import ElementType, TensorType
from crosschip.onnx_messages import CODES, OPERAND_TYPES, TensorProto, TypeProto

_NAMES = {code: name.lower() for name, code in TensorProto.DataType.items()}


def type_name(type_: TypeProto) -> str:
    """Return the name of a type: `tensor(float)`, `seq(map(int64,tensor(float)))`, …."""
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({_NAMES[type_.tensor_type.elem_type]})"
    if kind == "sequence_type":
        return f"seq({type_name(type_.sequence_type.elem_type)})"
    if kind == "map_type":
        return f"map({_NAMES[type_.map_type.key_type]},{type_name(type_.map_type.value_type)})"
    if kind == "optional_type":
        return f"optional({type_name(type_.optional_type.elem_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({_NAMES[type_.sparse_tensor_type.elem_type]})"
    return ""


def tensor_name(type_: TensorType) -> str:
    """Return the name of the type of an operand."""
    code = CODES.get(type_.element_type)
    return f"tensor({_NAMES[code]})" if code is not None else "object"


def name_of_array(array: np.ndarray[Any, Any]) -> str:
    """Return the name of an array's type."""
    return f"tensor({_NAMES[code_of(array.dtype)]})"


def code_of(dtype: np.dtype[Any]) -> int:
    """Return ONNX's code of a NumPy type.

    Raises:
        InvalidArgument: there is none.
    """
    if dtype.kind in "OUST":
        return int(TensorProto.STRING)
    try:
        return CODES[ElementType.of(dtype)]
    except (KeyError, ValueError):
        raise InvalidArgument.of(f"{dtype} is no element type of ONNX's") from None


def dtype_of(element_type: object) -> np.dtype[Any]:
    """Return the NumPy type of an argument `element_type`: one of NumPy's, or ONNX's code.

    Raises:
        InvalidArgument: it is neither.
    """
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        if element_type in OPERAND_TYPES:
            return OPERAND_TYPES[element_type].dtype
    else:
        try:
            return np.dtype(element_type)  # type: ignore[call-overload,no-any-return]
        except TypeError:
            pass
    raise InvalidArgument.of(f"{element_type!r} is no type of NumPy's, and no code of ONNX's")
