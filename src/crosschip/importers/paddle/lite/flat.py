"""Reads programs and parameters that are FlatBuffers.

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
"""The kind of a parameter that is a tensor."""


class Table:
    """A table of a FlatBuffer: fields by number, of which any may be missing.

    Args:
        buffer: what it is in.
        place: where in the buffer.
    """

    def __init__(self, buffer: Buffer, place: int) -> None:
        self._buffer = buffer
        self._place = place
        self._entries = place - buffer.scalar("i", place)
        self._count = (buffer.scalar("H", self._entries) - 4) // 2

    def scalar(self, field: int, form: str, default: Any = 0) -> Any:
        """A number."""
        place = self._at(field)
        return default if place is None else self._buffer.scalar(form, place)

    def text(self, field: int) -> bytes:
        """The bytes of a text."""
        place = self._at(field)
        return b"" if place is None else self._buffer.text(self._buffer.follow(place))

    def table(self, field: int) -> Table | None:
        """Another table."""
        place = self._at(field)
        return None if place is None else Table(self._buffer, self._buffer.follow(place))

    def numbers(self, field: int, form: str) -> Sequence[Any]:
        """A list of numbers."""
        place = self._at(field)
        return () if place is None else self._buffer.numbers(self._buffer.follow(place), form)

    def texts(self, field: int) -> list[bytes]:
        """A list of texts."""
        return [self._buffer.text(place) for place in self._places(field)]

    def tables(self, field: int) -> Iterator[Table]:
        """A list of tables."""
        return (Table(self._buffer, place) for place in self._places(field))

    def vector(self, field: int) -> tuple[int, int]:
        """The place in the source and the number of elements of a list of bytes."""
        place = self._at(field)
        return (0, 0) if place is None else self._buffer.vector(self._buffer.follow(place), 1)

    def _at(self, field: int) -> int | None:
        if field >= self._count:
            return None
        offset = self._buffer.scalar("H", self._entries + 4 + 2 * field)
        return self._place + offset if offset else None

    def _places(self, field: int) -> Iterator[int]:
        place = self._at(field)
        if place is None:
            return
        begin, count = self._buffer.vector(self._buffer.follow(place), 4)
        for index in range(count):
            yield self._buffer.follow(begin + 4 * index)


class Buffer:
    """A FlatBuffer in a source.

    No part of it belongs to two others, so that reading it whole takes no more than it has.

    Args:
        source: the bytes.
        begin: where it begins there.
        end: where it ends.
    """

    def __init__(self, source: Source, begin: int, end: int) -> None:
        self._window = Window(source)
        self._begin = begin
        self._size = end - begin
        self._left = self._size

    def root(self) -> Table:
        """The table that all others are found from."""
        return Table(self, self.follow(0))

    def scalar(self, form: str, place: int) -> Any:
        """A number."""
        packed = _SCALARS[form]
        held, index = self._window.at(self._checked(place, packed.size), packed.size)
        return packed.unpack_from(held, index)[0]

    def follow(self, place: int) -> int:
        """The place that the offset at a place leads to."""
        return place + int(self.scalar("I", place))

    def text(self, place: int) -> bytes:
        """The bytes of a text, which its length stands before."""
        begin, count = self.vector(place, 1)
        held, index = self._window.at(self._begin + begin, count)
        return held[index : index + count]

    def numbers(self, place: int, form: str) -> Sequence[Any]:
        """A list of numbers, which its length stands before."""
        size = _SCALARS[form].size
        begin, count = self.vector(place, size)
        held, index = self._window.at(self._begin + begin, count * size)
        return struct.unpack_from(f"<{count}{form}", held, index)

    def vector(self, place: int, size: int) -> tuple[int, int]:
        """The place and the number of the elements of a list, which are of some bytes each."""
        count = int(self.scalar("I", place))
        self._checked(place + 4, count * size)
        self._left -= 4 + count * size
        if self._left < 0:
            raise ModelError("is damaged: a part of it belongs to several others")
        return place + 4, count

    def in_source(self, place: int) -> int:
        """The place in the source."""
        return self._begin + place

    def _checked(self, place: int, size: int) -> int:
        if not 0 <= place <= self._size - size:
            raise ModelError(f"is damaged: it leads to byte {place} of {self._size}")
        return self._begin + place


def read_bytes(source: Source, begin: int, count: int) -> bytes:
    """Some bytes of a source.

    Raises:
        ModelError: it ends before.
    """
    if begin + count > source.size:
        raise ModelError(f"is damaged: it ends at byte {source.size}, before {begin + count}")
    return source.read(begin, begin + count)


def program(content: bytes) -> Any:
    """The program as the message that Paddle has for it.

    Raises:
        ModelError: it is damaged.
    """
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
            each = slots.add()
            each.parameter = slot.text(0)
            each.arguments.extend(slot.texts(1))
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
    """The parameters, by name.

    Raises:
        ModelError: they are damaged.
    """
    if version == 1:
        buffer = Buffer(source, begin, source.size)
        return dict(_parameter(source, buffer, table) for table in buffer.root().tables(0))
    return dict(_one_by_one(source, begin))


def _one_by_one(source: Source, begin: int) -> Iterator[tuple[str, Array | Stored]]:
    """Parameters of which each is a FlatBuffer, with its size before it."""
    form, more = struct.unpack("<HH", read_bytes(source, begin, 4))
    if form:
        raise ModelError(f"has parameters of version {form}; only version 0 is known")
    place = begin + 4 + more
    size, count = struct.unpack("<HH", read_bytes(source, place, 4))
    place += 2 + size
    for _ in range(count):
        total, offset = struct.unpack("<II", read_bytes(source, place, 8))
        start, place = place + 4 + offset, place + 4 + total
        if not start <= place <= source.size:
            raise ModelError(f"is damaged: a parameter ends at byte {place} of {source.size}")
        buffer = Buffer(source, start, place)
        yield _parameter(source, buffer, buffer.root())


def _parameter(source: Source, buffer: Buffer, table: Table) -> tuple[str, Array | Stored]:
    name, tensor = table.text(1).decode(), table.table(3)
    if tensor is None or table.scalar(2, "B") != _DENSE:
        raise ModelError(f"parameter {name!r}: is no dense tensor")
    shape = tuple(tensor.numbers(2, "q"))
    dtype = tensor_types.from_code(tensor.scalar(3, "i")).dtype
    place, size = tensor.vector(4)
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize > size:
        raise ModelError(f"parameter {name!r}: {list(shape)} of {dtype} has {size} bytes")
    elements = source.elements(dtype, prod(shape), buffer.in_source(place))
    return name, elements.reshape(shape)
