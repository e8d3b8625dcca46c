"""Reading of tables, checked against the file's bounds."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np

from crosschip.flatbuffer.table import INT32, UINT16, UINT32, Number, TableType
from crosschip.ir import Array, ModelFileError

_STRUCTS: dict[str, Struct] = {code: Struct("<" + code) for code in "?bBhHiIqQfd"}
_MIN_BYTES_PER_TABLE = 4
"""A file in which no table is shared has at least this many bytes for each table."""


def read(
    root: type[TableType], data: bytes | memoryview, where: str, identifiers: tuple[bytes, ...] = ()
) -> TableType:
    """Return the root table of a file; everything else is read when it is accessed.

    Args:
        root: the type of the root table.
        data: the content; arrays of the result share its memory.
        where: the file's name, for messages.
        identifiers: the allowed identifiers, of four bytes; empty if any is.

    Raises:
        ModelFileError: the file is damaged, or its identifier is another one. Accesses to the
            tables raise it, too.
    """
    buffer = Buffer(memoryview(data).cast("B"), where)
    if identifiers and bytes(buffer.data[4:8]) not in identifiers:
        names = " or ".join(each.decode() for each in identifiers)
        raise ModelFileError(f"{where}: its identifier is not {names}: it is no such file")
    return buffer.table(root, 0)


class Buffer:
    """The bytes of a file.

    Args:
        data: the bytes.
        where: the file's name, for messages.
    """

    def __init__(self, data: memoryview, where: str) -> None:
        self.data = data
        self.where = where
        self._tables_left = len(data) // _MIN_BYTES_PER_TABLE

    def scalar(self, position: int, type_: Number) -> Any:
        """Return the scalar at a position."""
        if not 0 <= position <= len(self.data) - type_.size:
            raise self._damaged(position)
        return _STRUCTS[type_.code].unpack_from(self.data, position)[0]

    def field(self, table: int, number: int) -> int | None:
        """Return the position of a field's value; `None` if the table omits it."""
        vtable = table - self.scalar(table, INT32)
        size = self.scalar(vtable, UINT16)
        if vtable + size > len(self.data):
            raise self._damaged(vtable)
        entry = 4 + 2 * number
        if entry + 2 > size:
            return None
        offset = self.scalar(vtable + entry, UINT16)
        return table + offset if offset else None

    def string(self, position: int) -> str:
        """Return the text that the offset at a position points to."""
        start, count = self._list(position, 1)
        try:
            return str(self.data[start : start + count], "utf-8")
        except UnicodeDecodeError:
            raise ModelFileError(
                f"{self.where}: is damaged: the text at byte {start} is not UTF-8"
            ) from None

    def vector(self, position: int, type_: Number) -> Array:
        """Return the numbers that the offset at a position points to, without a copy."""
        start, count = self._list(position, type_.size)
        return np.frombuffer(self.data, type_.dtype, count, start)

    def elements(self, position: int) -> range:
        """Return the positions of the elements of the list that an offset points to."""
        start, count = self._list(position, 4)
        return range(start, start + 4 * count, 4)

    def table(self, type_: type[TableType], position: int) -> TableType:
        """Return the table that the offset at a position points to."""
        self._tables_left -= 1
        if self._tables_left < 0:
            raise ModelFileError(f"{self.where}: is damaged: tables are used too often")
        start = position + self.scalar(position, UINT32)
        self.field(start, 0)
        result = type_.__new__(type_)
        result._buffer, result._position, result._values = self, start, {}
        return result

    def _list(self, position: int, size: int) -> tuple[int, int]:
        """Return the position and the count of the elements that an offset points to."""
        start = position + self.scalar(position, UINT32)
        count = self.scalar(start, UINT32)
        if start + 4 + count * size > len(self.data):
            raise self._damaged(start)
        return start + 4, count

    def _damaged(self, position: int) -> ModelFileError:
        return ModelFileError(
            f"{self.where}: is damaged: byte {position} is referred to, but there are "
            f"{len(self.data)}"
        )
