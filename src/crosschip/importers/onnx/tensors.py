"""From ONNX tensors to arrays: typed fields, raw bytes, and data in files, read when needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
    """A string of a protobuf message, which the library hands out as bytes if it is not UTF-8."""
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "backslashreplace")


def texts(values: Iterable[str]) -> list[str]:
    """The strings of a repeated field."""
    return [value if isinstance(value, str) else text(value) for value in values]


def element_type(code: int) -> ElementType:
    """The element type of an ONNX data type of numbers.

    Raises:
        UnsupportedError: there is none.
    """
    if code not in ELEMENT_TYPES:
        known = code in TensorProto.DataType.values()
        name = TensorProto.DataType.Name(code) if known else f"number {code}"
        raise UnsupportedError(f"no element type corresponds to the ONNX data type {name}")
    return ELEMENT_TYPES[code]


def operand_type(code: int) -> ElementType:
    """Like `element_type`, for what an operand is declared to hold, which strings may be, too."""
    return ElementType.STRING if code == TensorProto.STRING else element_type(code)


class TensorReader:
    """Reads the tensors of one model.

    Args:
        model: what the model itself is read from.
        path: the model file, beside which external data are; `None` if there is none.
    """

    def __init__(self, model: Source, path: Path | None) -> None:
        self._folder = None if path is None else path.parent
        self._allowed: Sequence[Path] = ()
        if path is not None:
            self._allowed = Path(resolve_path(path.parent)), Path(resolve_path(path)).parent
        self._sources: dict[str, Source] = {OWN_FILE: model}

    def array(self, tensor: TensorProto) -> Array:
        """The elements of a tensor, as `content` finds them."""
        return _read(self.content(tensor))

    def content(self, tensor: TensorProto) -> Array | Stored:
        """The elements of a tensor, or where in a file they are.

        Raises:
            ModelFileError: its data do not fit its shape, or are not where it says.
            UnsupportedError: it is of a type that no operand can hold.
        """
        kind, shape = element_type(tensor.data_type), _shape(tensor)
        if math.prod([size or 1 for size in shape]) * kind.dtype.itemsize >= _MAX_BYTES:
            raise ModelFileError(f"a tensor of shape {list(shape)} does not fit into memory")
        return self._elements(tensor, kind, math.prod(shape)).reshape(shape)

    def strings(self, tensor: TensorProto) -> TensorType:
        """The type of a tensor of strings, which are in the tensor itself.

        Raises:
            ModelFileError: they are not there, or are more or fewer than its shape needs.
        """
        shape = _shape(tensor)
        if tensor.data_location == TensorProto.EXTERNAL or tensor.HasField("raw_data"):
            raise ModelFileError("strings must be in the field for strings")
        _check_size(len(tensor.string_data), math.prod(shape), "strings")
        return TensorType(ElementType.STRING, shape)

    def dense(self, tensor: SparseTensorProto) -> Array:
        """The elements of a tensor that is stored without its zeros.

        Raises:
            ModelFileError: its values, indices and shape do not fit.
            UnsupportedError: it is of a type that no operand can hold.
            BudgetError: it is too large with its zeros.
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
        places = indices.reshape(len(values), -1) if indices.size else indices.reshape(0, 1)
        if places.shape[1] == len(shape) > 1:
            steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
            fits = bool(((places >= 0) & (places < np.array(shape))).all())
            places = (places * np.array(steps)).sum(axis=1, keepdims=True)
        else:
            fits = bool(((places >= 0) & (places < count)).all())
        if not fits or places.shape != (len(values), 1):
            raise ModelFileError(f"the indices of its values are not in {list(shape)}")
        elements = np.zeros(count, values.dtype)
        elements[places[:, 0].astype(np.int64)] = values
        return elements.reshape(shape)

    def _elements(self, tensor: TensorProto, kind: ElementType, count: int) -> Array | Stored:
        if kind is ElementType.BOOL:
            return np.not_equal(_read(self._stored(tensor, np.dtype(np.uint8), count)), 0)
        bits = _PACKED_BITS.get(kind)
        if bits is None:
            return self._stored(tensor, kind.dtype, count)
        packed = _read(self._stored(tensor, np.dtype(np.uint8), -(-count * bits // 8)))
        return _unpacked(packed, bits, count).view(kind.dtype)

    def _stored(self, tensor: TensorProto, dtype: np.dtype[Any], count: int) -> Array | Stored:
        if tensor.HasField("segment"):
            raise UnsupportedError("the tensor is stored in segments, which no ONNX runtime reads")
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, dtype, count)
        if tensor.HasField("raw_data"):
            raw = tensor.raw_data
            _check_size(len(raw), count * dtype.itemsize, "bytes of raw data")
            return _read(Held(raw).elements(dtype, count, 0))
        return _typed_elements(tensor, dtype, count)

    def _external(self, tensor: TensorProto, dtype: np.dtype[Any], count: int) -> Array | Stored:
        entries = {text(entry.key): text(entry.value) for entry in tensor.external_data}
        location = entries.get("location")
        if not location:
            raise ModelFileError("external data have no location")
        where = "raw data" if location == OWN_FILE else f"external data {location!r}"
        try:
            source = self._source(location)
            offset = _number(entries.get("offset", "0"))
            length = _number(entries.get("length", str(max(0, source.size - offset))))
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
"""Types of which several elements share a byte in a file, the first in the lowest bits."""

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
    """The elements from the field that ONNX has for tensors of the type."""
    kind = ElementType.of(dtype)
    if kind is ElementType.FLOAT32:
        return _listed(tensor.float_data, np.float32, count)
    if kind is ElementType.FLOAT64:
        return _listed(tensor.double_data, np.float64, count)
    if kind is ElementType.INT64:
        return _listed(tensor.int64_data, np.int64, count)
    if kind in (ElementType.UINT32, ElementType.UINT64):
        return _listed(tensor.uint64_data, np.uint64, count).astype(dtype)
    values = _listed(tensor.int32_data, np.int32, count)
    if kind in _INT32_CODED:
        return values.astype(dtype)
    return values.astype(np.uint8 if dtype.itemsize == 1 else np.uint16).view(dtype)


def _unpacked(packed: Array, bits: int, count: int) -> Array:
    """The bits of each element in a byte of its own."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (packed[:, None] >> shifts & (1 << bits) - 1).astype(np.uint8).reshape(-1)[:count]


def _listed(values: Any, dtype: type[np.generic], count: int) -> Array:
    _check_size(len(values), count, "elements")
    return np.array(values, dtype)


def _shape(tensor: TensorProto) -> tuple[int, ...]:
    shape = tuple(tensor.dims)
    if len(shape) > MAX_RANK or min(shape, default=0) < 0:
        raise ModelFileError(f"{list(shape[:MAX_RANK])} is not a shape of a tensor")
    return shape


def _number(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise ModelFileError(f"{digits[:40]!r} is not an offset or a length")
    return int(digits)


def _check_size(actual: int, needed: int, what: str) -> None:
    if actual != needed:
        raise ModelFileError(f"the tensor has {actual} {what}, but its shape needs {needed}")
