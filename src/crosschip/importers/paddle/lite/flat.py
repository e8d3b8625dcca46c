"""Reader of programs and parameters in FlatBuffers (format versions 1 and 2).

Source: lite/model_parser/flatbuffers/framework.fbs and param.fbs of Paddle Lite 2.14.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from crosschip.importers.paddle import tensor_types
from crosschip.importers.paddle.messages import ProgramDesc, message_class
from crosschip.ir import Array, ModelError
from crosschip.ir.files import Held, Source, Stored, Window

_SCALARS = {name: struct.Struct(f"<{name}") for name in "?BHiIqfd"}
_DENSE = 1
"""The type code of a dense parameter."""


class Table:
    """A table of a FlatBuffer: optional fields by number.

    Args:
        buffer: the FlatBuffer.
        position: the table's offset in the buffer.
    """

    def __init__(self, buffer: Buffer, position: int) -> None:
        self._buffer = buffer
        self._position = position
        self._entries = position - buffer.scalar("i", position)
        self._count = (buffer.scalar("H", self._entries) - 4) // 2

    def scalar(self, field: int, form: str, default: Any = 0) -> Any:
        """Return a scalar field."""
        position = self._field_position(field)
        return default if position is None else self._buffer.scalar(form, position)

    def text(self, field: int) -> bytes:
        """Return the bytes of a string field."""
        position = self._field_position(field)
        return b"" if position is None else self._buffer.text(self._buffer.follow(position))

    def table(self, field: int) -> Table | None:
        """Return a table field; `None` if it is missing."""
        position = self._field_position(field)
        return None if position is None else Table(self._buffer, self._buffer.follow(position))

    def numbers(self, field: int, form: str) -> Sequence[Any]:
        """Return a field with a list of scalars."""
        position = self._field_position(field)
        return () if position is None else self._buffer.numbers(self._buffer.follow(position), form)

    def texts(self, field: int) -> list[bytes]:
        """Return a field with a list of strings."""
        return [self._buffer.text(position) for position in self._positions(field)]

    def tables(self, field: int) -> Iterator[Table]:
        """Return a field with a list of tables."""
        return (Table(self._buffer, position) for position in self._positions(field))

    def vector(self, field: int) -> tuple[int, int]:
        """Return the offset in the buffer and the size of a byte vector field."""
        position = self._field_position(field)
        return (0, 0) if position is None else self._buffer.vector(self._buffer.follow(position), 1)

    def _field_position(self, field: int) -> int | None:
        if field >= self._count:
            return None
        offset = self._buffer.scalar("H", self._entries + 4 + 2 * field)
        return self._position + offset if offset else None

    def _positions(self, field: int) -> Iterator[int]:
        position = self._field_position(field)
        if position is None:
            return
        begin, count = self._buffer.vector(self._buffer.follow(position), 4)
        for index in range(count):
            yield self._buffer.follow(begin + 4 * index)


class Buffer:
    """A FlatBuffer in a source.

    Vectors must not be shared: their total size is limited to the buffer's, so that a damaged file
    cannot expand to more than its size.

    Args:
        source: the bytes.
        begin: the offset in the source of the buffer's first byte.
        end: the offset after its last byte.
    """

    def __init__(self, source: Source, begin: int, end: int) -> None:
        self._window = Window(source)
        self._begin = begin
        self._size = end - begin
        self._unread = self._size

    def root(self) -> Table:
        """Return the root table."""
        return Table(self, self.follow(0))

    def scalar(self, form: str, position: int) -> Any:
        """Return the scalar at an offset."""
        packed = _SCALARS[form]
        data, index = self._window.at(self._check_range(position, packed.size), packed.size)
        return packed.unpack_from(data, index)[0]

    def follow(self, position: int) -> int:
        """Return the target of the relative offset that is stored at an offset."""
        return position + int(self.scalar("I", position))

    def text(self, position: int) -> bytes:
        """Return the bytes of the length-prefixed string at an offset."""
        begin, count = self.vector(position, 1)
        data, index = self._window.at(self._begin + begin, count)
        return data[index : index + count]

    def numbers(self, position: int, form: str) -> Sequence[Any]:
        """Return the length-prefixed list of scalars at an offset."""
        size = _SCALARS[form].size
        begin, count = self.vector(position, size)
        data, index = self._window.at(self._begin + begin, count * size)
        return struct.unpack_from(f"<{count}{form}", data, index)

    def vector(self, position: int, size: int) -> tuple[int, int]:
        """Return the offset and the number of elements, of `size` bytes each, of a vector."""
        count = int(self.scalar("I", position))
        self._check_range(position + 4, count * size)
        self._unread -= 4 + count * size
        if self._unread < 0:
            raise ModelError("is damaged: a part of it belongs to several others")
        return position + 4, count

    def in_source(self, position: int) -> int:
        """Return the offset in the source of an offset in the buffer."""
        return self._begin + position

    def _check_range(self, position: int, size: int) -> int:
        if not 0 <= position <= self._size - size:
            raise ModelError(f"is damaged: it leads to byte {position} of {self._size}")
        return self._begin + position


def read_bytes(source: Source, begin: int, count: int) -> bytes:
    """Read bytes of a source; raise ModelError if the source is too short."""
    if begin + count > source.size:
        raise ModelError(f"is damaged: it ends at byte {source.size}, before {begin + count}")
    return source.read(begin, begin + count)


def program(content: bytes) -> Any:
    """Convert a program to Paddle's `ProgramDesc` message; raise ModelError if it is damaged."""
    message = message_class(ProgramDesc)()
    for block in Buffer(Held(content), 0, len(content)).root().tables(0):
        block_message = message.blocks.add()  # type: ignore[attr-defined]
        for variable in block.tables(2):
            _variable(block_message.vars.add(), variable)
        for op in block.tables(3):
            _operator(block_message.ops.add(), op)
    return message


def _variable(message: Any, variable: Table) -> None:
    message.name, message.persistable = variable.text(0), variable.scalar(2, "?", False)
    type_ = variable.table(1)
    if type_ is None:
        raise ModelError("is damaged: a variable has no type")
    message.type.type = type_.scalar(0, "i")
    dense = type_.table(2)
    tensor = dense.table(0) if dense else None
    if dense is None or tensor is None:
        return
    message.type.lod_tensor.lod_level = dense.scalar(1, "i")
    message.type.lod_tensor.tensor.data_type = tensor.scalar(0, "i")
    message.type.lod_tensor.tensor.dims.extend(tensor.numbers(1, "q"))


def _operator(message: Any, op: Table) -> None:
    message.type = op.text(0)
    for field, slots in ((1, message.inputs), (2, message.outputs)):
        for slot in op.tables(field):
            message_slot = slots.add()
            message_slot.parameter = slot.text(0)
            message_slot.arguments.extend(slot.texts(1))
    for attribute in op.tables(3):
        _attribute(message.attrs.add(), attribute)


def _attribute(message: Any, attribute: Table) -> None:
    message.name, message.type = attribute.text(0), attribute.scalar(1, "i")
    message.i, message.f, message.s = (
        attribute.scalar(2, "i"),
        attribute.scalar(3, "f"),
        attribute.text(4),
    )
    message.ints.extend(attribute.numbers(5, "i"))
    message.floats.extend(attribute.numbers(6, "f"))
    message.strings.extend(attribute.texts(7))
    message.b = attribute.scalar(8, "?", False)
    message.bools.extend(attribute.numbers(9, "?"))
    message.block_idx, message.l = attribute.scalar(10, "i"), attribute.scalar(11, "q")
    message.longs.extend(attribute.numbers(13, "q"))
    message.float64 = attribute.scalar(14, "d")
    message.float64s.extend(attribute.numbers(15, "d"))


def parameters(source: Source, begin: int, version: int) -> dict[str, Array | Stored]:
    """Return the parameters by name; raise ModelError if they are damaged."""
    if version == 1:
        buffer = Buffer(source, begin, source.size)
        return dict(_parameter(source, buffer, table) for table in buffer.root().tables(0))
    return dict(_parameters_v2(source, begin))


def _parameters_v2(source: Source, begin: int) -> Iterator[tuple[str, Array | Stored]]:
    """Read parameters that are one size-prefixed FlatBuffer each."""
    form, more = struct.unpack("<HH", read_bytes(source, begin, 4))
    if form:
        raise ModelError(f"has parameters of version {form}; only version 0 is known")
    position = begin + 4 + more
    size, count = struct.unpack("<HH", read_bytes(source, position, 4))
    position += 2 + size
    for _ in range(count):
        total, offset = struct.unpack("<II", read_bytes(source, position, 8))
        start, position = position + 4 + offset, position + 4 + total
        if not start <= position <= source.size:
            raise ModelError(f"is damaged: a parameter ends at byte {position} of {source.size}")
        buffer = Buffer(source, start, position)
        yield _parameter(source, buffer, buffer.root())


def _parameter(source: Source, buffer: Buffer, table: Table) -> tuple[str, Array | Stored]:
    name, tensor = table.text(1).decode(), table.table(3)
    if tensor is None or table.scalar(2, "B") != _DENSE:
        raise ModelError(f"parameter {name!r}: is no dense tensor")
    shape = tuple(tensor.numbers(2, "q"))
    dtype = tensor_types.from_code(tensor.scalar(3, "i")).dtype
    position, size = tensor.vector(4)
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize > size:
        raise ModelError(f"parameter {name!r}: {list(shape)} of {dtype} has {size} bytes")
    elements = source.elements(dtype, prod(shape), buffer.in_source(position))
    return name, elements.reshape(shape)
