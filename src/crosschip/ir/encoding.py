"""Encoding of types and sizes as plain data (JSON), and decoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from crosschip.ir.dimension import (
    Dim,
    Dimension,
    Shape,
    is_unknown,
    minimum,
    substitute,
    symbol,
    terms_of,
    unknown,
)
from crosschip.ir.types import Arithmetic, ElementType, Quantization, TensorType

Fresh = dict[str, Dim]
"""Replacement of each anonymous size, by the name that it had when encoded."""


def encode_type(type_: TensorType, *, named: bool = False) -> list[object]:
    """Encode a type as plain data; for `named` see `encode_size`."""
    shape = encode_shape(type_.shape, named=named)
    return [type_.element_type.value, shape, encode_quantization(type_.quantization)]


def encode_shape(shape: Shape | None, *, named: bool = False) -> list[object] | None:
    """Encode a shape as plain data, an unknown rank as `None`; for `named` see `encode_size`."""
    return None if shape is None else [encode_size(size, named=named) for size in shape]


def encode_quantization(quantization: Quantization | None) -> object:
    """Encode a quantization as plain data."""
    if quantization is None:
        return None
    fields = [quantization.scale, quantization.zero_point, quantization.axis]
    is_real = quantization.arithmetic is Arithmetic.REAL
    return fields if is_real else [*fields, quantization.arithmetic.value]


def decode_quantization(encoded: Sequence[Any] | None) -> Quantization | None:
    """Decode a quantization from plain data."""
    if encoded is None:
        return None
    scale, zero_point, axis, *arithmetic = map(_as_tuple, encoded)
    return Quantization(scale, zero_point, axis, *map(Arithmetic, arithmetic))


def decode_type(encoded: Sequence[Any], fresh: Fresh | None = None) -> TensorType:
    """Decode a type from plain data; raise TypeError or ValueError if the data is malformed."""
    element_type, shape, quantization = encoded
    return TensorType(
        ElementType(element_type),
        None if shape is None else tuple(decode_size(size, fresh) for size in shape),
        decode_quantization(quantization),
    )


def encode_size(size: Dim, *, named: bool = False) -> object:
    """Encode a size: a number, a list of terms, or `None` if the size is unknown.

    Args:
        size: the size.
        named: encode an anonymous size by name, so that other sizes in the same data can refer to
            it.
    """
    if isinstance(size, int):
        return size
    if named:
        return terms_of(size, partial(encode_size, named=True))
    return None if is_unknown(size) else terms_of(size, encode_size)


def decode_size(encoded: object, fresh: Fresh | None = None) -> Dim:
    """Decode a size from plain data; raise TypeError or ValueError if the data is malformed.

    Args:
        encoded: the result of `encode_size`.
        fresh: replacements of anonymous sizes; new ones are inserted.
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


def from_terms(terms: Sequence[Any], decode: Callable[[object], Dim]) -> Dim:
    """Return the inverse of `terms_of`; raise TypeError or ValueError if the data is malformed."""
    total: Dim = 0
    for coefficient, *factors in terms:
        value: Dim = int(coefficient)
        for factor in factors:
            if isinstance(factor, str):
                value = value * symbol(factor)
            else:
                kind, *parts = factor
                value = value * _expression(kind, list(map(decode, parts)))
        total = total + value
    return total


def _expression(kind: str, parts: Sequence[Dim]) -> Dim:
    if kind == "min" and parts:
        return minimum(*parts)
    if kind != "//":
        raise ValueError(f"{kind!r} is no function of sizes")
    numerator, denominator = parts
    return numerator // denominator


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
