"""Types and sizes as plain data, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from crosschip.ir.dimension import Dim, from_terms, is_unknown, terms_of, unknown
from crosschip.ir.types import ElementType, Quantization, TensorType


def encode_type(type_: TensorType) -> list[object]:
    """A type as plain data."""
    shape = None if type_.shape is None else [encode_size(size) for size in type_.shape]
    return [type_.element_type.value, shape, encode_quantization(type_.quantization)]


def encode_quantization(quantization: Quantization | None) -> object:
    """A quantization as plain data."""
    return quantization and [quantization.scale, quantization.zero_point, quantization.axis]


def decode_quantization(encoded: Sequence[Any] | None) -> Quantization | None:
    """The quantization that `encode_quantization` made plain."""
    return None if encoded is None else Quantization(*map(_as_tuple, encoded))


def decode_type(encoded: Sequence[Any]) -> TensorType:
    """The type that `encode_type` made plain; `TypeError` or `ValueError` if it did not."""
    element_type, shape, quantization = encoded
    return TensorType(
        ElementType(element_type),
        None if shape is None else tuple(decode_size(size) for size in shape),
        decode_quantization(quantization),
    )


def encode_size(size: Dim) -> object:
    """A size as plain data: a number, a list of terms, or `None` if nothing is known of it."""
    if isinstance(size, int):
        return size
    return None if is_unknown(size) else terms_of(size, encode_size)


def decode_size(encoded: object) -> Dim:
    """The size that `encode_size` made plain; `TypeError` or `ValueError` if it did not."""
    if encoded is None:
        return unknown()
    return encoded if isinstance(encoded, int) else from_terms(cast(Any, encoded), decode_size)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
