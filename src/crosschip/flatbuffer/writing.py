"""Writing of tables with the flatbuffers package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.flatbuffer.table import (
    Field,
    Scalar,
    String,
    Strings,
    SubTable,
    SubTables,
    Table,
    Union,
    Vector,
)

if TYPE_CHECKING:
    from flatbuffers import Builder


def write(root: Table, identifier: bytes | None = None) -> bytes:
    """Return a file with a table as its root.

    A table that occurs several times is written once.

    Args:
        root: the table.
        identifier: the file's identifier, of four bytes.
    """
    # Imported late: most programs write no file.
    from flatbuffers import Builder

    writer = _Writer(Builder(1 << 16))
    offset = writer.table(root)
    writer.builder.Finish(offset, identifier)
    return bytes(writer.builder.Output())


class _Writer:
    """Appends values to a file; each value lies before what refers to it."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._tables: dict[int, int] = {}

    def table(self, value: Table) -> int:
        """Return the offset of a table."""
        known = self._tables.get(id(value))
        if known is not None:
            return known
        slots: list[tuple[Field[Any], Any]] = []
        for field in value._fields.values():
            content = getattr(value, field.name)
            if content is not None:
                slots.append((field, self._reference(field, content)))
        self.builder.StartObject(value._field_numbers)
        for field, slot in slots:
            self._slot(field, slot)
        offset: int = self.builder.EndObject()
        self._tables[id(value)] = offset
        return offset

    def _reference(self, field: Field[Any], content: Any) -> Any:
        """Append what a field refers to; return its offset, or the value of a scalar."""
        match field:
            case String():
                return self.builder.CreateString(content)
            case Strings():
                return self._offsets([self.builder.CreateString(each) for each in content])
            case Vector():
                return self._numbers(field, content)
            case SubTable():
                return self.table(content)
            case SubTables():
                return self._offsets([self.table(each) for each in content])
            case Union():
                return field.codes[type(content)], self.table(content)
        return content

    def _slot(self, field: Field[Any], slot: Any) -> None:
        builder = self.builder
        match field:
            case Scalar():
                prepend = getattr(builder, f"Prepend{field.type.name}Slot")
                prepend(field.number, slot, field.default)
            case Union():
                builder.PrependUint8Slot(field.number - 1, slot[0], 0)
                builder.PrependUOffsetTRelativeSlot(field.number, slot[1], 0)
            case _:
                builder.PrependUOffsetTRelativeSlot(field.number, slot, 0)

    def _numbers(self, field: Vector, content: Any) -> int:
        """Append numbers."""
        array = np.ascontiguousarray(content, field.type.dtype).reshape(-1)
        builder, data = self.builder, array.tobytes()
        builder.StartVector(field.type.size, len(array), field.alignment)
        head = builder.head - len(data)
        builder.head = head
        builder.Bytes[head : head + len(data)] = data
        offset: int = builder.EndVector()
        return offset

    def _offsets(self, offsets: Sequence[int]) -> int:
        """Append a list of offsets."""
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        result: int = self.builder.EndVector()
        return result
