"""Types and sizes as plain data, and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from crosschip.ir.dimension import (
    Dim,
    Dimension,
    Shape,
    from_terms,
    is_unknown,
    substitute,
    terms_of,
    unknown,
)
from crosschip.ir.types import ElementType, Quantization, TensorType

Fresh = dict[str, Dim]
"""What the sizes have become that nothing is known about, by the names that they had."""


def encode_type(type_: TensorType, *, named: bool = False) -> list[object]:
    """A type as plain data; `named` is as for `encode_size`."""
    shape = encode_shape(type_.shape, named=named)
    return [type_.element_type.value, shape, encode_quantization(type_.quantization)]


def encode_shape(shape: Shape | None, *, named: bool = False) -> list[object] | None:
    """A shape as plain data, `None` if its rank is unknown; `named` is as for `encode_size`."""
    return None if shape is None else [encode_size(size, named=named) for size in shape]


def encode_quantization(quantization: Quantization | None) -> object:
    """A quantization as plain data."""
    return quantization and [quantization.scale, quantization.zero_point, quantization.axis]


def decode_quantization(encoded: Sequence[Any] | None) -> Quantization | None:
    """The quantization that `encode_quantization` made plain."""
    return None if encoded is None else Quantization(*map(_as_tuple, encoded))


def decode_type(encoded: Sequence[Any], fresh: Fresh | None = None) -> TensorType:
    """The type that `encode_type` made plain; `TypeError` or `ValueError` if it did not."""
    element_type, shape, quantization = encoded
    return TensorType(
        ElementType(element_type),
        None if shape is None else tuple(decode_size(size, fresh) for size in shape),
        decode_quantization(quantization),
    )


def encode_size(size: Dim, *, named: bool = False) -> object:
    """A size as plain data: a number, a list of terms, or `None` if nothing is known of it.

    Args:
        size: the size.
        named: whether a size about which nothing is known goes by a name, so that others of the
            same data may depend on it.
    """
    if isinstance(size, int):
        return size
    if named:
        return terms_of(size, partial(encode_size, named=True))
    return None if is_unknown(size) else terms_of(size, encode_size)


def decode_size(encoded: object, fresh: Fresh | None = None) -> Dim:
    """The size that `encode_size` made plain; `TypeError` or `ValueError` if it did not.

    Args:
        encoded: what `encode_size` returned.
        fresh: what became of names of sizes about which nothing is known; more may come to it.
    """
    if encoded is None:
        return unknown()
    if isinstance(encoded, int):
        return encoded
    size = from_terms(cast(Any, encoded), decode_size)
    if fresh is None or not isinstance(size, Dimension):
        return size
    for name in size.names:
        if name.startswith("?"):
            fresh.setdefault(name, unknown())
    return substitute(size, fresh)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
