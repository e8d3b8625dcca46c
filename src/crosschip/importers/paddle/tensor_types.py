"""Element types and shapes in Paddle's files."""

from __future__ import annotations

from collections.abc import Iterable

from crosschip.importers.paddle.messages import TensorDesc
from crosschip.ir import ElementType, ModelError, UnsupportedError
from crosschip.ir.types import ALL_TYPES, MAX_RANK

_BY_CODE = {
    0: ElementType.BOOL,
    1: ElementType.INT16,
    2: ElementType.INT32,
    3: ElementType.INT64,
    4: ElementType.FLOAT16,
    5: ElementType.FLOAT32,
    6: ElementType.FLOAT64,
    20: ElementType.UINT8,
    21: ElementType.INT8,
    22: ElementType.BFLOAT16,
    36: ElementType.UINT16,
    37: ElementType.UINT32,
    38: ElementType.UINT64,
}
_BY_TYPE_NAME = {
    "t_bool": ElementType.BOOL,
    "t_i8": ElementType.INT8,
    "t_ui8": ElementType.UINT8,
    "t_i16": ElementType.INT16,
    "t_i32": ElementType.INT32,
    "t_i64": ElementType.INT64,
    "t_f16": ElementType.FLOAT16,
    "t_bf16": ElementType.BFLOAT16,
    "t_f32": ElementType.FLOAT32,
    "t_f64": ElementType.FLOAT64,
}
_BY_NAME = {element_type.value: element_type for element_type in ALL_TYPES}


def from_code(code: int) -> ElementType:
    """Return the element type of a `VarType.Type` in Paddle 2's framework.proto.

    Raises:
        UnsupportedError: no operand can hold elements of the type.
    """
    return _known_type(_BY_CODE.get(code), code)


def from_type_name(name: str) -> ElementType:
    """Return the element type of a type in Paddle 3's builtin dialect, such as `t_f32`.

    Raises:
        UnsupportedError: no operand can hold elements of the type.
    """
    return _known_type(_BY_TYPE_NAME.get(name), name)


def from_name(name: str) -> ElementType:
    """Return the element type that an attribute of Paddle 3 names, such as `float32`.

    Raises:
        UnsupportedError: no operand can hold elements of the type.
    """
    return _known_type(_BY_NAME.get(name), name)


def from_desc(desc: TensorDesc) -> tuple[ElementType, tuple[int, ...]]:
    """Return the element type and shape of a protobuf message.

    Raises:
        ModelError: the shape is invalid.
        UnsupportedError: no operand can hold elements of the type.
    """
    return from_code(desc.data_type), shape(desc.dims)


def shape(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return a declared shape, in which -1 is an unknown size; raise ModelError if invalid."""
    shape_sizes = tuple(sizes)
    if len(shape_sizes) > MAX_RANK or any(size < -1 for size in shape_sizes):
        raise ModelError(f"{list(shape_sizes)} is not the shape of a tensor")
    return shape_sizes


def _known_type(element_type: ElementType | None, written: object) -> ElementType:
    if element_type is None:
        known = ", ".join(map(str, ElementType))
        raise UnsupportedError(f"element type {written!r} is not one of {known}")
    return element_type
