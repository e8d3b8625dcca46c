"""Declarations of tables: their fields, in the order of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

import numpy as np

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.flatbuffer.reading import Buffer

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Number:
    """The type of a scalar.

    Attributes:
        name: the name in the flatbuffers package.
        code: the code in `struct`.
        size: the number of bytes.
    """

    name: str
    code: str
    size: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the NumPy type, little-endian."""
        return np.dtype("<" + self.code)


BOOL = Number("Bool", "?", 1)
INT8, UINT8 = Number("Int8", "b", 1), Number("Uint8", "B", 1)
INT16, UINT16 = Number("Int16", "h", 2), Number("Uint16", "H", 2)
INT32, UINT32 = Number("Int32", "i", 4), Number("Uint32", "I", 4)
INT64, UINT64 = Number("Int64", "q", 8), Number("Uint64", "Q", 8)
FLOAT32, FLOAT64 = Number("Float32", "f", 4), Number("Float64", "d", 8)


class Field(Generic[Value]):
    """A field of a table; as an attribute of a table, its value.

    Attributes:
        name: the attribute's name.
        number: the field's number in the schema; a union has also the number before it.
        default: the value of a field that a file omits.
    """

    numbers: ClassVar[int] = 1
    """The count of field numbers that it takes."""

    def __init__(self, default: Value) -> None:
        self.name = ""
        self.number = 0
        self.default = default

    def __set_name__(self, owner: type[Table], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type[Table]) -> Field[Value]: ...

    @overload
    def __get__(self, instance: Table, owner: type[Table]) -> Value: ...

    def __get__(self, instance: Table | None, owner: type[Table]) -> Field[Value] | Value:
        if instance is None:
            return self
        values = instance._values
        if self.name not in values:
            values[self.name] = self._read(instance)
        return values[self.name]  # type: ignore[no-any-return]

    def __set__(self, instance: Table, value: Value) -> None:
        instance._values[self.name] = value

    def _read(self, instance: Table) -> Value:
        buffer = instance._buffer
        if buffer is None:
            return self.default
        position = buffer.field(instance._position, self.number)
        return self.default if position is None else self.value(buffer, position)

    def value(self, buffer: Buffer, position: int) -> Value:
        """Return the value at a position of a file.

        Raises:
            ModelFileError: it is not within the file.
        """
        raise NotImplementedError


class Scalar(Field[Any]):
    """A number, boolean or enumeration."""

    def __init__(self, type_: Number, default: Any) -> None:
        super().__init__(default)
        self.type = type_

    def value(self, buffer: Buffer, position: int) -> Any:
        return buffer.scalar(position, self.type)


class String(Field[str | None]):
    """A text."""

    def value(self, buffer: Buffer, position: int) -> str | None:
        return buffer.string(position)


class Vector(Field[Array | None]):
    """Numbers. They are not copied from the file."""

    def __init__(self, type_: Number, alignment: int) -> None:
        super().__init__(None)
        self.type = type_
        self.alignment = max(alignment, type_.size)

    def value(self, buffer: Buffer, position: int) -> Array | None:
        return buffer.vector(position, self.type)


class Strings(Field[Sequence[str]]):
    """Texts."""

    def value(self, buffer: Buffer, position: int) -> Sequence[str]:
        return [buffer.string(each) for each in buffer.elements(position)]


TableType = TypeVar("TableType", bound="Table")


class SubTable(Field[TableType | None]):
    """A table."""

    def __init__(self, type_: type[TableType]) -> None:
        super().__init__(None)
        self.type = type_

    def value(self, buffer: Buffer, position: int) -> TableType | None:
        return buffer.table(self.type, position)


class SubTables(Field[Sequence[TableType]]):
    """Tables."""

    def __init__(self, type_: type[TableType]) -> None:
        super().__init__(())
        self.type = type_

    def value(self, buffer: Buffer, position: int) -> Sequence[TableType]:
        return [buffer.table(self.type, each) for each in buffer.elements(position)]


class Union(Field["Table | None"]):
    """A table of one of several types, preceded by a field with the type's code."""

    numbers = 2

    def __init__(self, types: Mapping[int, type[Table]]) -> None:
        super().__init__(None)
        self.types = types
        self.codes = {type_: code for code, type_ in types.items()}

    def _read(self, instance: Table) -> Table | None:
        buffer = instance._buffer
        if buffer is None:
            return None
        at = buffer.field(instance._position, self.number - 1)
        code = 0 if at is None else int(buffer.scalar(at, UINT8))
        position = buffer.field(instance._position, self.number)
        if not code or position is None or code not in self.types:
            return None
        return buffer.table(self.types[code], position)


class _Deprecated(Field[None]):
    """A field of older schemas, which is neither read nor written."""

    def __init__(self) -> None:
        super().__init__(None)

    def _read(self, instance: Table) -> None:
        return None


class Table:
    """Base class of tables; names without an underscore are fields.

    Args:
        values: the values of fields, by name; others have their defaults.

    Raises:
        TypeError: there is no such field.
    """

    __slots__ = ("_buffer", "_position", "_values")
    _fields: ClassVar[Mapping[str, Field[Any]]] = {}
    _field_numbers: ClassVar[int] = 0

    _buffer: Buffer | None
    _position: int
    _values: dict[str, Any]

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self._fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        self._buffer, self._position, self._values = None, 0, values

    def __init_subclass__(cls) -> None:
        fields, number = {}, 0
        for name, field in vars(cls).items():
            if isinstance(field, Field):
                number += field.numbers
                field.number = number - 1
                fields[name] = field
        cls._fields, cls._field_numbers = fields, number

    def __repr__(self) -> str:
        parts = (f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({', '.join(parts)})"


def scalar(type_: Number, default: Any = 0) -> Scalar:
    """Declare a number, or a boolean; the default `None` makes it optional."""
    return Scalar(type_, default)


def string() -> String:
    """Declare a text."""
    return String(None)


def vector(type_: Number, alignment: int = 1) -> Vector:
    """Declare numbers, whose first byte has at least an alignment in a file that is written."""
    return Vector(type_, alignment)


def strings() -> Strings:
    """Declare a list of texts."""
    return Strings(())


def table(type_: type[TableType]) -> SubTable[TableType]:
    """Declare a table."""
    return SubTable(type_)


def tables(type_: type[TableType]) -> SubTables[TableType]:
    """Declare a list of tables."""
    return SubTables(type_)


def union(types: Mapping[int, type[Table]]) -> Union:
    """Declare a table of one of several types, by the types' codes."""
    return Union(types)


def deprecated() -> _Deprecated:
    """Declare a field of older schemas, which is neither read nor written."""
    return _Deprecated()
