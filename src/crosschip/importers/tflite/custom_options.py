"""Options of custom operators: maps in the FlexBuffers format, and C structures."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from crosschip.ir import ModelError

_MAX_LENGTH = 2**16


class CustomOptions:
    """A map in the FlexBuffers format, of which values are decoded when they are read.

    Args:
        data: the bytes of the options.

    Raises:
        ModelError: they are no map. Reading a damaged value raises it, too.
    """

    def __init__(self, data: bytes) -> None:
        # Imported late: few models have custom operators.
        from flatbuffers import flexbuffers

        self._map: Any = _decode(lambda: flexbuffers.GetRoot(bytearray(data)).AsMap)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer; a map without it has the default, or is refused."""
        return int(self._read(name, default, lambda value: value.AsInt))

    def real(self, name: str, default: float | None = None) -> float:
        """Return a number."""
        return float(self._read(name, default, lambda value: value.AsFloat))

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean."""
        return bool(self._read(name, default, lambda value: value.AsBool))

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text."""
        return str(self._read(name, default, lambda value: value.AsString))

    def integers(self, name: str) -> list[int]:
        """Return a list of integers."""

        def elements(value: Any) -> list[int]:
            vector = value.AsTypedVector if value.IsTypedVector else value.AsVector
            count = len(vector)
            if count > _MAX_LENGTH:
                raise ValueError(f"{count} elements")
            return [int(vector[index].AsInt) for index in range(count)]

        result: list[int] = self._read(name, None, elements)
        return result

    def _has(self, name: str) -> bool:
        """Return whether the map has a key."""
        keys = self._map.Keys
        if len(keys) > _MAX_LENGTH:
            raise ValueError(f"{len(keys)} keys")
        return any(str(keys[index].AsKey) == name for index in range(len(keys)))

    def _read(self, name: str, default: object, convert: Callable[[Any], Any]) -> Any:
        present = _decode(lambda: self._has(name))
        if not present and default is None:
            raise ModelError(f"its options have no {name!r}")
        return _decode(lambda: convert(self._map[name])) if present else default


def _decode(read: Callable[[], Any]) -> Any:
    """Return a decoded value; the library raises errors of many classes for damaged bytes."""
    try:
        return read()
    except Exception as error:
        raise ModelError(f"its options are damaged: {error}") from None


def unpack(form: str, data: bytes) -> tuple[int, ...]:
    """Return the numbers of a C structure.

    Args:
        form: the format, as in `struct`.
        data: the bytes of the options, which may be longer.
    """
    try:
        return struct.unpack_from(form, data)
    except struct.error as error:
        raise ModelError(f"its options are damaged: {error}") from None
