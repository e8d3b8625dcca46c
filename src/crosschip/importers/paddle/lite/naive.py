"""Reader of programs and parameters in sequences of fields (format version 0).

Strings and lists are prefixed with the number of bytes or elements (u64). All fields are present,
also those without a meaning for the object.

Source: lite/model_parser/naive_buffer/proto/framework.nb.h of Paddle Lite 2.14.
"""

from __future__ import annotations

import struct
from math import prod
from typing import Any

from crosschip.importers.paddle import tensor_types
from crosschip.importers.paddle.messages import ProgramDesc, message_class
from crosschip.ir import Array, ModelError
from crosschip.ir.files import Held, Source, Stored, Window

_SCALARS = {name: struct.Struct(f"<{name}") for name in "?IQfiq"}

_TYPES = (0, 1, 2, 3, 4, 5, 6, 19, 20, 21, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18)
"""Paddle's code of each type code in the file."""


class Fields:
    """A cursor over fields.

    Args:
        source: the bytes.
        begin: the offset of the first field.
    """

    def __init__(self, source: Source, begin: int) -> None:
        self._window = Window(source)
        self._source = source
        self._position = begin

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return self._source.size - self._position

    def scalar(self, form: str) -> Any:
        """Read a scalar."""
        packed = _SCALARS[form]
        data, index = self._window.at(self.skip(packed.size), packed.size)
        return packed.unpack_from(data, index)[0]

    def type(self) -> int:
        """Read a type; return Paddle's code."""
        number = self.scalar("i")
        if not 0 <= number < len(_TYPES):
            raise ModelError(f"is damaged: there is no type {number}")
        return _TYPES[number]

    def text(self) -> bytes:
        """Read the bytes of a string."""
        count = self.scalar("Q")
        data, index = self._window.at(self.skip(count), count)
        return data[index : index + count]

    def count(self) -> int:
        """Read the number of elements of a list; elements have at least one byte."""
        count: int = self.scalar("Q")
        if count > self.left:
            raise ModelError(f"is damaged: a list of {count} with {self.left} bytes left")
        return count

    def numbers(self, form: str) -> list[Any]:
        """Read a list of scalars."""
        return [self.scalar(form) for _ in range(self.count())]

    def texts(self) -> list[bytes]:
        """Read a list of strings."""
        return [self.text() for _ in range(self.count())]

    def tensor(self) -> tuple[int, list[int]]:
        """Read the element type code and the shape of a tensor."""
        return self.type(), self.numbers("q")

    def skip(self, size: int) -> int:
        """Advance by a number of bytes; return the offset of the first."""
        if not 0 <= size <= self.left:
            raise ModelError(f"is damaged: it needs {size} bytes more, but has {self.left} left")
        begin = self._position
        self._position += size
        return begin


def program(content: bytes) -> Any:
    """Convert a program to Paddle's `ProgramDesc` message; raise ModelError if it is damaged."""
    message: Any = message_class(ProgramDesc)()
    fields = Fields(Held(content), 0)
    for _ in range(fields.count()):
        block = message.blocks.add()
        fields.scalar("i"), fields.scalar("i")  # indices of the block and its parent
        for _ in range(fields.count()):
            _variable(fields, block.vars.add())
        for _ in range(fields.count()):
            _operator(fields, block.ops.add())
        fields.scalar("i")  # index of the forward block
    return message


def _variable(fields: Fields, message: Any) -> None:
    message.name, message.type.type = fields.text(), fields.type()
    fields.tensor()  # SelectedRows
    tensor = message.type.lod_tensor.tensor
    tensor.data_type, sizes = fields.tensor()
    tensor.dims.extend(sizes)
    message.type.lod_tensor.lod_level = fields.scalar("i")
    fields.tensor(), fields.scalar("i")  # LoDTensorArray
    for _ in range(fields.count()):  # Reader
        fields.tensor(), fields.scalar("i")
    for _ in range(fields.count()):  # Tuple
        fields.type()
    message.persistable = fields.scalar("?")


def _operator(fields: Fields, message: Any) -> None:
    message.type = fields.text()
    for slots in (message.inputs, message.outputs):
        for _ in range(fields.count()):
            slot = slots.add()
            slot.parameter = fields.text()
            slot.arguments.extend(fields.texts())
    for _ in range(fields.count()):
        _attribute(fields, message.attrs.add())
    fields.scalar("?")  # is_target


def _attribute(fields: Fields, message: Any) -> None:
    message.name, message.type = fields.text(), fields.scalar("i")
    message.i, message.f, message.s = fields.scalar("i"), fields.scalar("f"), fields.text()
    message.ints.extend(fields.numbers("i"))
    message.floats.extend(fields.numbers("f"))
    message.strings.extend(fields.texts())
    message.b = fields.scalar("?")
    message.bools.extend(fields.numbers("?"))
    message.block_idx, message.l = fields.scalar("i"), fields.scalar("q")
    fields.numbers("i")  # blocks_idx
    message.longs.extend(fields.numbers("q"))


def parameters(source: Source, begin: int, version: int) -> dict[str, Array | Stored]:
    """Return the parameters by name; raise ModelError if they are damaged."""
    fields = Fields(source, begin)
    return dict(_parameter(source, fields) for _ in range(fields.count()))


def _parameter(source: Source, fields: Fields) -> tuple[str, Array | Stored]:
    name = fields.text().decode()
    fields.scalar("I"), fields.scalar("Q")  # model version, LoD level
    for _ in range(fields.count()):
        fields.numbers("Q")
    form = fields.scalar("I")
    if form:
        raise ModelError(f"parameter {name!r}: is of version {form}; only version 0 is known")
    type_, sizes = fields.tensor()
    dtype, shape = tensor_types.from_code(type_).dtype, tensor_types.shape(sizes)
    size = fields.count()
    if -1 in shape or prod(shape) * dtype.itemsize != size:
        raise ModelError(f"parameter {name!r}: {sizes} of {dtype} has {size} bytes")
    elements = source.elements(dtype, prod(shape), fields.skip(size))
    return name, elements.reshape(shape)
