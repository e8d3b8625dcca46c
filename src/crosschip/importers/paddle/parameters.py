"""Reads parameter files: large values stay in the file until somebody asks for them.

A parameter is a record: a version (u32, 0), the levels of detail (u64 how many; for each, u64 how
many bytes, and these), another version (u32, 0), the size (i32) of a protobuf `TensorDesc`, this
message, and the elements; all numbers are little-endian. `.pdiparams` and `__params__` are the
records of all parameters in the order of their names; else there is a file a parameter.

Source: SerializeToStream in paddle/fluid/framework/lod_tensor.cc of Paddle 2.6.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path, PurePath

from crosschip.importers.paddle import messages, tensor_types
from crosschip.importers.paddle.program import Variable, within
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

_HEAD, _TENSOR_HEAD = struct.Struct("<IQ"), struct.Struct("<Ii")
"""The parts of a record before its levels of detail, and before its message."""

_QUANTIZED = (ElementType.INT8, ElementType.INT16)

_IN_MEMORY = "the parameters in memory"


def read(path: Path | bytes, parameters: Mapping[str, Variable]) -> dict[str, Array | Stored]:
    """Find parameters.

    Args:
        path: the file that holds all of them or the folder with a file for each; or the content
            of the one file.
        parameters: those that the program declares.

    Returns:
        Read-only arrays by name, or where in the file they are.

    Raises:
        ModelFileError: a file is missing or damaged, or does not belong to the program; the
            message names the parameter.
        UnsupportedError: a parameter is not a dense tensor.
    """
    if isinstance(path, bytes):
        return _read_records(_Records(_IN_MEMORY, Held(path)), parameters)
    there = kind(path)
    if there != "folder":
        return _read_file(path, parameters) if parameters or there else {}
    values: dict[str, Array | Stored] = {}
    for name, variable in parameters.items():
        # There may be more of these files than a process may have open: nothing stays in them.
        (content,) = _read_file(_file_of(path, name), {name: variable}).values()
        values[name] = content.read() if isinstance(content, Stored) else content
    return values


def _read_file(file: Path, parameters: Mapping[str, Variable]) -> dict[str, Array | Stored]:
    return _read_records(_Records(str(file), _opened(file)), parameters)


def _read_records(
    records: _Records, parameters: Mapping[str, Variable]
) -> dict[str, Array | Stored]:
    names = sorted(parameters)
    values = {name: records.next(parameters[name]) for name in names}
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
    """The records of a file, one after the other.

    Attributes:
        where: the file's path, or other words for messages.
        left: how many bytes have not been read.
    """

    def __init__(self, where: str, source: Source) -> None:
        self.where = where
        self._source = source
        self._window = Window(self._source)
        self._at = 0

    @property
    def left(self) -> int:
        return self._source.size - self._at

    def next(self, parameter: Variable) -> Array | Stored:
        """The next array, which must be the parameter."""
        try:
            return self._array(parameter)
        except OSError as error:
            raise ModelFileError(f"{self.where}: {error.strerror or error}") from None
        except ModelError as error:
            raise ModelFileError(f"{self.where}: parameter {parameter.name!r}: {error}") from None
        except UnsupportedError as error:
            raise within(f"{self.where}: parameter {parameter.name!r}", error) from None

    def _array(self, parameter: Variable) -> Array | Stored:
        version, levels = _HEAD.unpack(self._take(_HEAD.size))
        _expect_known(version)
        if levels:
            raise UnsupportedError(f"has {levels} levels of detail (LoD); it is not a dense tensor")
        version, size = _TENSOR_HEAD.unpack(self._take(_TENSOR_HEAD.size))
        _expect_known(version)
        desc = messages.parse(messages.TensorDesc, self._take(size))
        element_type, shape = tensor_types.from_desc(desc)
        if _squeezed(shape) == _squeezed(parameter.shape):
            shape = parameter.shape  # Paddle's quantization saves scales with other axes of size 1
        as_declared = shape == parameter.shape and _may_hold(parameter.element_type, element_type)
        if not (as_declared or parameter.is_made):
            raise ModelError(
                f"is {TensorType(element_type, shape)}, but the program has it as "
                f"{TensorType(parameter.element_type, parameter.shape)}; "
                f"the file does not belong to the program"
            )
        if -1 in shape:
            raise ModelError(f"has no definite shape: {list(shape)}")
        start, count, dtype = self._at, prod(shape), element_type.dtype
        self._skip(count * dtype.itemsize)
        return self._window.elements(dtype, count, start).reshape(shape)

    def _take(self, size: int) -> bytes:
        start = self._at
        self._skip(size)
        held, index = self._window.at(start, size)
        return held[index : index + size]

    def _skip(self, size: int) -> None:
        if not 0 <= size <= self.left:
            raise ModelError(f"needs {size} bytes more, but the file has {self.left} left")
        self._at += size


def _squeezed(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


def _may_hold(declared: ElementType, found: ElementType) -> bool:
    """Tell whether a parameter may be of a type: quantized programs have reals of integers."""
    return found is declared or (declared is ElementType.FLOAT32 and found in _QUANTIZED)


def _expect_known(version: int) -> None:
    if version:
        raise ModelError(f"has a record of version {version}; only version 0 is known")


def _opened(file: Path) -> DataFile:
    try:
        return DataFile(file)
    except FileNotFoundError:
        raise ModelFileError(f"{file}: there is no such file; the model needs it") from None
    except OSError as error:
        raise ModelFileError(f"{file}: cannot be read: {error.strerror}") from None
