"""Conversion of ONNX tensors to arrays: typed fields, raw bytes, and lazily read external data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.importers.onnx.wire import OWN_FILE
from crosschip.ir import Array, ElementType, ModelFileError, TensorType, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ir.file_queries import resolve_path
from crosschip.ir.files import DataFile, Held, Source, Stored
from crosschip.ir.types import MAX_RANK
from crosschip.onnx_messages import ELEMENT_TYPES, SparseTensorProto, TensorProto

_MAX_BYTES = 2**63


def text(value: str) -> str:
    """Return a string of a protobuf message; the library returns bytes if it is not UTF-8."""
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "backslashreplace")


def texts(values: Iterable[str]) -> list[str]:
    """Return the strings of a repeated field."""
    return [value if isinstance(value, str) else text(value) for value in values]


def element_type(code: int) -> ElementType:
    """Return the element type of a numeric ONNX data type.

    Raises:
        UnsupportedError: there is none.
    """
    if code not in ELEMENT_TYPES:
        exists = code in TensorProto.DataType.values()
        name = TensorProto.DataType.Name(code) if exists else f"number {code}"
        raise UnsupportedError(f"no element type corresponds to the ONNX data type {name}")
    return ELEMENT_TYPES[code]


def element_type_or_string(code: int) -> ElementType:
    """Return the element type of an ONNX data type, strings included."""
    return ElementType.STRING if code == TensorProto.STRING else element_type(code)


class TensorReader:
    """Reader of the tensors of one model.

    Args:
        model: the content of the model file.
        path: the model file, for external data in its folder; `None` if there is none.
        external: external data in memory, by location.
    """

    def __init__(self, model: Source, path: Path | None, external: Mapping[str, bytes]) -> None:
        self._folder = None if path is None else path.parent
        self._allowed: Sequence[Path] = ()
        if path is not None:
            self._allowed = Path(resolve_path(path.parent)), Path(resolve_path(path)).parent
        self._sources: dict[str, Source] = {OWN_FILE: model}
        self._sources |= {location: Held(content) for location, content in external.items()}

    def array(self, tensor: TensorProto) -> Array:
        """Read the elements of a tensor."""
        return _read(self.content(tensor))

    def content(self, tensor: TensorProto) -> Array | Stored:
        """Return the elements of a tensor, or their location in a file.

        Raises:
            ModelFileError: the data are missing or do not fit the shape.
            UnsupportedError: no operand can hold the data type.
        """
        kind, shape = element_type(tensor.data_type), _shape(tensor)
        if math.prod([size or 1 for size in shape]) * kind.dtype.itemsize >= _MAX_BYTES:
            raise ModelFileError(f"a tensor of shape {list(shape)} does not fit into memory")
        return self._elements(tensor, kind, math.prod(shape)).reshape(shape)

    def strings(self, tensor: TensorProto) -> TensorType:
        """Return the type of a string tensor after checking its data.

        Raises:
            ModelFileError: the strings are missing, or their number does not fit the shape.
        """
        shape = _shape(tensor)
        if tensor.data_location == TensorProto.EXTERNAL or tensor.HasField("raw_data"):
            raise ModelFileError("strings must be in the field for strings")
        _check_size(len(tensor.string_data), math.prod(shape), "strings")
        return TensorType(ElementType.STRING, shape)

    def dense(self, tensor: SparseTensorProto) -> Array:
        """Read a sparse tensor as a dense array.

        Raises:
            ModelFileError: values, indices and shape do not fit.
            UnsupportedError: no operand can hold the data type.
            BudgetError: the dense array is too large.
        """
        shape, values, indices = tuple(tensor.dims), self.array(tensor.values), np.zeros((0, 1))
        if tensor.HasField("indices"):
            indices = self.array(tensor.indices)
        if any(size < 0 for size in shape) or values.ndim != 1:
            raise ModelFileError(f"{list(shape)} is not a shape, or its values are not a list")
        count = math.prod(shape)
        spend(bytes=count * values.itemsize)
        if tensor.HasField("indices") and indices.dtype != np.int64:
            raise ModelFileError(f"the indices of its values are {indices.dtype}, not int64")
        positions = indices.reshape(len(values), -1) if indices.size else indices.reshape(0, 1)
        if positions.shape[1] == len(shape) > 1:
            steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
            fits = bool(((positions >= 0) & (positions < np.array(shape))).all())
            positions = (positions * np.array(steps)).sum(axis=1, keepdims=True)
        else:
            fits = bool(((positions >= 0) & (positions < count)).all())
        if not fits or positions.shape != (len(values), 1):
            raise ModelFileError(f"the indices of its values are not in {list(shape)}")
        elements = np.zeros(count, values.dtype)
        elements[positions[:, 0].astype(np.int64)] = values
        return elements.reshape(shape)

    def _elements(self, tensor: TensorProto, kind: ElementType, count: int) -> Array | Stored:
        if kind is ElementType.BOOL:
            return np.not_equal(_read(self._read_stored(tensor, np.dtype(np.uint8), count)), 0)
        bits = _PACKED_BITS.get(kind)
        if bits is None:
            return self._read_stored(tensor, kind.dtype, count)
        packed = _read(self._read_stored(tensor, np.dtype(np.uint8), -(-count * bits // 8)))
        return _unpack(packed, bits, count).view(kind.dtype)

    def _read_stored(self, tensor: TensorProto, dtype: np.dtype[Any], count: int) -> Array | Stored:
        if tensor.HasField("segment"):
            raise UnsupportedError("the tensor is stored in segments, which no ONNX runtime reads")
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._read_external(tensor, dtype, count)
        if tensor.HasField("raw_data"):
            raw = tensor.raw_data
            _check_size(len(raw), count * dtype.itemsize, "bytes of raw data")
            return _read(Held(raw).elements(dtype, count, 0))
        return _typed_elements(tensor, dtype, count)

    def _read_external(
        self, tensor: TensorProto, dtype: np.dtype[Any], count: int
    ) -> Array | Stored:
        entries = {text(entry.key): text(entry.value) for entry in tensor.external_data}
        location = entries.get("location")
        if not location:
            raise ModelFileError("external data have no location")
        where = "raw data" if location == OWN_FILE else f"external data {location!r}"
        try:
            source = self._source(location)
            offset = _parse_number(entries.get("offset", "0"))
            length = _parse_number(entries.get("length", str(max(0, source.size - offset))))
            if offset + length > source.size:
                raise ModelFileError(f"{offset} + {length} is beyond its end at {source.size}")
            _check_size(length, count * dtype.itemsize, "bytes")
            return source.elements(dtype, count, offset)
        except ModelFileError as error:
            raise ModelFileError(f"{where}: {error}") from None
        except OSError as error:
            raise ModelFileError(f"{where}: {error.strerror or error}") from None

    def _source(self, location: str) -> Source:
        if location not in self._sources:
            if self._folder is None:
                raise ModelFileError("can only be found if the model is loaded from a path")
            path = Path(location)
            if "\0" in location or path.is_absolute() or ".." in path.parts:
                raise ModelFileError("is not a place in the model's folder")
            path = Path(resolve_path(self._folder / path))
            if not any(path.is_relative_to(folder) for folder in self._allowed):
                raise ModelFileError("is a link to a place outside of the model's folder")
            try:
                self._sources[location] = DataFile(path)
            except FileNotFoundError:
                raise ModelFileError("there is no such file; put it beside the model") from None
        return self._sources[location]


def _read(content: Array | Stored) -> Array:
    return content.read() if isinstance(content, Stored) else content


_PACKED_BITS = {
    ElementType.FLOAT4E2M1: 4,
    ElementType.INT4: 4,
    ElementType.UINT4: 4,
    ElementType.INT2: 2,
    ElementType.UINT2: 2,
}
"""The bit widths of types that are packed in a file, the first element in the lowest bits."""

_INT32_CODED = frozenset(
    {
        ElementType.INT32,
        ElementType.INT16,
        ElementType.INT8,
        ElementType.UINT16,
        ElementType.UINT8,
        ElementType.BOOL,
    }
)


def _typed_elements(tensor: TensorProto, dtype: np.dtype[Any], count: int) -> Array:
    """Return the elements from the data type's own field."""
    kind = ElementType.of(dtype)
    if kind is ElementType.FLOAT32:
        return _to_array(tensor.float_data, np.float32, count)
    if kind is ElementType.FLOAT64:
        return _to_array(tensor.double_data, np.float64, count)
    if kind is ElementType.INT64:
        return _to_array(tensor.int64_data, np.int64, count)
    if kind in (ElementType.UINT32, ElementType.UINT64):
        return _to_array(tensor.uint64_data, np.uint64, count).astype(dtype)
    values = _to_array(tensor.int32_data, np.int32, count)
    if kind in _INT32_CODED:
        return values.astype(dtype)
    return values.astype(np.uint8 if dtype.itemsize == 1 else np.uint16).view(dtype)


def _unpack(packed: Array, bits: int, count: int) -> Array:
    """Unpack elements of `bits` bits, lowest bits first, to one byte each."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (packed[:, None] >> shifts & (1 << bits) - 1).astype(np.uint8).reshape(-1)[:count]


def _to_array(values: Any, dtype: type[np.generic], count: int) -> Array:
    _check_size(len(values), count, "elements")
    return np.array(values, dtype)


def _shape(tensor: TensorProto) -> tuple[int, ...]:
    shape = tuple(tensor.dims)
    if len(shape) > MAX_RANK or min(shape, default=0) < 0:
        raise ModelFileError(f"{list(shape[:MAX_RANK])} is not a shape of a tensor")
    return shape


def _parse_number(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise ModelFileError(f"{digits[:40]!r} is not an offset or a length")
    return int(digits)


def _check_size(actual: int, needed: int, what: str) -> None:
    if actual != needed:
        raise ModelFileError(f"the tensor has {actual} {what}, but its shape needs {needed}")
