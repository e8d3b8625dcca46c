"""Reader of parameter files; large values stay in the file until they are needed.

A parameter is a record of little-endian fields: a version (u32, 0); the number of LoD levels (u64)
and, for each, its size in bytes (u64) and data; another version (u32, 0); the size (i32) of a
protobuf `TensorDesc`, this message, and the elements. `.pdiparams` and `__params__` are the records
of all parameters in the order of their names; otherwise there is one file per parameter.

Source: SerializeToStream in paddle/fluid/framework/lod_tensor.cc of Paddle 2.6.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path, PurePath

from crosschip.importers.paddle import messages, tensor_types
from crosschip.importers.paddle.program import (
    MAX_LEVELS,
    ParameterUse,
    Program,
    Variable,
    prefix_error,
)
from crosschip.ir import (
    Array,
    ElementType,
    ModelError,
    ModelFileError,
    TensorType,
    UnsupportedError,
)
from crosschip.ir.files import DataFile, Held, Source, Stored, Window
from crosschip.ir.reading import kind

_HEAD, _LEVEL, _TENSOR_HEAD = struct.Struct("<IQ"), struct.Struct("<Q"), struct.Struct("<Ii")
"""The fields of a record before its LoD levels, before each level, and before its message."""

_QUANTIZED = (ElementType.INT8, ElementType.INT16)

_IN_MEMORY = "the parameters in memory"


def read(path: Path | bytes, program: Program) -> dict[str, Array | Stored]:
    """Read the parameters that a program needs.

    Parameters that no operator reads may differ from their declaration, as in Paddle: they are
    skipped, or returned with the type in the file if they are outputs.

    Args:
        path: the file of all parameters or its content, or the folder with one file per parameter.
        program: the program that declares the parameters.

    Returns:
        Read-only arrays, or their locations in the file, by name.

    Raises:
        ModelFileError: a file is missing or damaged, or does not belong to the program; the
            message names the parameter.
        UnsupportedError: a parameter is not a dense tensor.
    """
    declared, uses = program.parameters, program.parameter_uses()
    if isinstance(path, bytes):
        return _read_records(_Records(_IN_MEMORY, Held(path)), declared, uses)
    path_kind = kind(path)
    if path_kind != "folder":
        return _read_file(path, declared, uses) if declared or path_kind else {}
    values: dict[str, Array | Stored] = {}
    for name, variable in declared.items():
        if name not in uses:
            continue
        # Read at once: there may be more files than a process can have open.
        (content,) = _read_file(_file_of(path, name), {name: variable}, uses).values()
        values[name] = content.read() if isinstance(content, Stored) else content
    return values


def _read_file(
    file: Path, declared: Mapping[str, Variable], uses: Mapping[str, ParameterUse]
) -> dict[str, Array | Stored]:
    return _read_records(_Records(str(file), _open(file)), declared, uses)


def _read_records(
    records: _Records, declared: Mapping[str, Variable], uses: Mapping[str, ParameterUse]
) -> dict[str, Array | Stored]:
    names = sorted(declared)
    values: dict[str, Array | Stored] = {}
    for name in names:
        if name in uses:
            values[name] = records.next(declared[name], uses[name])
        else:
            records.skip(name)
    if records.left:
        last = f"after the last parameter {names[-1]!r}" if names else "of a model without any"
        raise ModelFileError(
            f"{records.where}: {records.left} bytes are left {last}; "
            f"the file does not belong to the program"
        )
    return values


def _file_of(folder: Path, name: str) -> Path:
    inside = PurePath(name)
    if inside.is_absolute() or ".." in inside.parts or "\0" in name:
        raise ModelFileError(f"{folder}: the parameter {name!r} would be outside the folder")
    return folder / inside


class _Records:
    """A cursor over the records of a file.

    Attributes:
        where: the file's path or description, for messages.
        left: the number of unread bytes.
    """

    def __init__(self, where: str, source: Source) -> None:
        self.where = where
        self._source = source
        self._window = Window(self._source)
        self._at = 0

    @property
    def left(self) -> int:
        return self._source.size - self._at

    def next(self, parameter: Variable, use: ParameterUse) -> Array | Stored:
        """Read the next record; raise if an operator reads it and it differs from `parameter`."""
        with self._named(parameter.name):
            return self._array(parameter, use)

    def skip(self, name: str) -> None:
        """Skip the record of a parameter."""
        with self._named(name):
            levels = self._levels()
            if levels > MAX_LEVELS:
                raise ModelError(f"has {levels} levels of detail (LoD)")
            for _ in range(levels):
                (size,) = _LEVEL.unpack(self._take(_LEVEL.size))
                self._skip(size)
            self._skip(_size(*self._type()))

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Add the names of the file and the parameter to errors."""
        try:
            yield
        except OSError as error:
            raise ModelFileError(f"{self.where}: {error.strerror or error}") from None
        except ModelError as error:
            raise ModelFileError(f"{self.where}: parameter {name!r}: {error}") from None
        except UnsupportedError as error:
            raise prefix_error(f"{self.where}: parameter {name!r}", error) from None

    def _array(self, parameter: Variable, use: ParameterUse) -> Array | Stored:
        if levels := self._levels():
            raise UnsupportedError(f"has {levels} levels of detail (LoD); it is not a dense tensor")
        element_type, shape = self._type()
        if _squeeze(shape) == _squeeze(parameter.shape):
            shape = parameter.shape  # Paddle's quantization saves scales with other axes of size 1
        as_declared = shape == parameter.shape and _can_store(parameter.element_type, element_type)
        if use is ParameterUse.OPERAND and not as_declared:
            raise ModelError(
                f"is {TensorType(element_type, shape)}, but the program has it as "
                f"{TensorType(parameter.element_type, parameter.shape)}; "
                f"the file does not belong to the program"
            )
        start, size = self._at, _size(element_type, shape)
        self._skip(size)
        return self._window.elements(element_type.dtype, prod(shape), start).reshape(shape)

    def _levels(self) -> int:
        """Read the head of a record; return the number of LoD levels."""
        version, levels = _HEAD.unpack(self._take(_HEAD.size))
        _check_version(version)
        return int(levels)

    def _type(self) -> tuple[ElementType, tuple[int, ...]]:
        """Read the element type and shape, which follow the LoD levels."""
        version, size = _TENSOR_HEAD.unpack(self._take(_TENSOR_HEAD.size))
        _check_version(version)
        return tensor_types.from_desc(messages.parse(messages.TensorDesc, self._take(size)))

    def _take(self, size: int) -> bytes:
        start = self._at
        self._skip(size)
        data, index = self._window.at(start, size)
        return data[index : index + size]

    def _skip(self, size: int) -> None:
        if not 0 <= size <= self.left:
            raise ModelError(f"needs {size} bytes more, but the file has {self.left} left")
        self._at += size


def _size(element_type: ElementType, shape: tuple[int, ...]) -> int:
    """Return the size in bytes of a tensor."""
    if -1 in shape:
        raise ModelError(f"has no definite shape: {list(shape)}")
    return prod(shape) * element_type.dtype.itemsize


def _squeeze(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


def _can_store(declared: ElementType, stored: ElementType) -> bool:
    """Return whether a file may store a type for the declared one: weights may be quantized."""
    return stored is declared or (declared is ElementType.FLOAT32 and stored in _QUANTIZED)


def _check_version(version: int) -> None:
    if version:
        raise ModelError(f"has a record of version {version}; only version 0 is known")


def _open(file: Path) -> DataFile:
    try:
        return DataFile(file)
    except FileNotFoundError:
        raise ModelFileError(f"{file}: there is no such file; the model needs it") from None
    except OSError as error:
        raise ModelFileError(f"{file}: cannot be read: {error.strerror}") from None
