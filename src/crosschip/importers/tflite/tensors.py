"""Tensors of a TensorFlow Lite file: their types, and the elements of constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.flatbuffer.schemas.tflite import (
    BlockwiseQuantization,
    Buffer,
    Model,
    QuantizationParameters,
    Tensor,
)
from crosschip.flatbuffer.schemas.tflite.enumerations import TensorType as Code
from crosschip.importers.tflite.sparsity import dense
from crosschip.ir import (
    Arithmetic,
    Array,
    Dim,
    ElementType,
    ModelFileError,
    Operand,
    Quantization,
    TensorType,
    UnsupportedError,
    unknown,
)
from crosschip.ir.budget import spend
from crosschip.ir.types import MAX_RANK, QUANTIZABLE

_ELEMENT_TYPES = {
    Code.FLOAT32: ElementType.FLOAT32,
    Code.FLOAT16: ElementType.FLOAT16,
    Code.INT32: ElementType.INT32,
    Code.UINT8: ElementType.UINT8,
    Code.INT64: ElementType.INT64,
    Code.BOOL: ElementType.BOOL,
    Code.INT16: ElementType.INT16,
    Code.INT8: ElementType.INT8,
    Code.FLOAT64: ElementType.FLOAT64,
    Code.UINT64: ElementType.UINT64,
    Code.UINT32: ElementType.UINT32,
    Code.UINT16: ElementType.UINT16,
    Code.INT4: ElementType.INT4,
    Code.BFLOAT16: ElementType.BFLOAT16,
    Code.INT2: ElementType.INT2,
    Code.UINT4: ElementType.UINT4,
    Code.FLOAT8_E4M3FN: ElementType.FLOAT8E4M3FN,
    Code.FLOAT8_E5M2: ElementType.FLOAT8E5M2,
}

_PACKED_BITS = {ElementType.INT4: 4, ElementType.UINT4: 4, ElementType.INT2: 2}
"""The bit widths of types that are packed in a file, the first element in the lowest bits."""

_SPLIT = {Code.COMPLEX64: ElementType.FLOAT32, Code.COMPLEX128: ElementType.FLOAT64}
"""Complex numbers are pairs along a last axis of size 2: the real and the imaginary part."""


def element_type(tensor: Tensor) -> ElementType:
    """Return the element type of a tensor.

    Raises:
        UnsupportedError: no operand has the type; strings and resources are none.
        ModelFileError: there is no such type.
    """
    if tensor.type in _SPLIT:
        return _SPLIT[tensor.type]
    if tensor.type not in _ELEMENT_TYPES:
        raise UnsupportedError(
            f"tensor {tensor.name!r} is of type {type_name(tensor)}, which is not supported"
        )
    return _ELEMENT_TYPES[tensor.type]


def type_name(tensor: Tensor) -> str:
    """Return the name of a tensor's type in the schema."""
    try:
        return Code(tensor.type).name
    except ValueError:
        raise ModelFileError(
            f"tensor {tensor.name!r}: no type has the number {tensor.type}"
        ) from None


def is_complex(tensor: Tensor) -> bool:
    """Return whether a tensor's elements are complex numbers."""
    return tensor.type in _SPLIT


def is_resource(tensor: Tensor) -> bool:
    """Return whether a tensor is a handle: of a variable or a table."""
    return tensor.type in (Code.RESOURCE, Code.VARIANT)


def declared_type(tensor: Tensor) -> TensorType:
    """Return the type that a file declares for a tensor that is computed or an input.

    Sizes that the signature of its shape leaves open are dynamic.
    """
    shape: tuple[Dim, ...] = shape_of(tensor)
    signature = [] if tensor.shape_signature is None else tensor.shape_signature.tolist()
    if len(signature) == len(shape):
        shape = tuple(
            unknown() if sign < 0 else size for sign, size in zip(signature, shape, strict=True)
        )
    if is_complex(tensor):
        shape = (*shape, 2)
    kind = element_type(tensor)
    return TensorType(kind, shape, quantization_of(tensor, kind))


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the shape in the file."""
    shape: tuple[int, ...] = (
        () if tensor.shape is None else tuple(tensor.shape[: MAX_RANK + 1].tolist())
    )
    if len(shape) > MAX_RANK or min(shape, default=0) < 0:
        raise ModelFileError(f"tensor {tensor.name!r}: {list(shape)} is not a shape of a tensor")
    return shape


def quantization_of(tensor: Tensor, kind: ElementType) -> Quantization | None:
    """Return the quantization of a tensor; `None` if it has none.

    Floating-point tensors may have parameters of an earlier quantization, which mean nothing.

    Raises:
        ModelFileError: scales, zero points and shape do not fit.
    """
    parameters = tensor.quantization
    if parameters is None or parameters.scale is None or not len(parameters.scale):
        return None
    scale = parameters.scale.tolist()
    if kind not in QUANTIZABLE or (len(scale) == 1 and scale[0] == 0):
        return None
    zero_point = [] if parameters.zero_point is None else parameters.zero_point.tolist()
    axis = parameters.quantized_dimension if len(scale) > 1 else None
    zero_points = tuple(zero_point[: len(scale)] or [0])
    try:
        return Quantization(tuple(scale), zero_points, axis, Arithmetic.FIXED_POINT)
    except ValueError as error:
        raise ModelFileError(f"tensor {tensor.name!r}: {error}") from None


def blocks_of(tensor: Tensor) -> BlockwiseQuantization | None:
    """Return the blockwise quantization of a tensor; `None` if it has none."""
    parameters: QuantizationParameters | None = tensor.quantization
    details = None if parameters is None else parameters.details
    return details if isinstance(details, BlockwiseQuantization) else None


class TensorReader:
    """Reader of the constants of one file.

    Args:
        model: the root of the file.
        data: the file's bytes, for buffers that follow the root's tables.
    """

    def __init__(self, model: Model, data: memoryview) -> None:
        self._buffers: Sequence[Buffer] = model.buffers
        self._data = data
        if model.external_buffers:
            self._external = {each.id for each in model.external_buffers}
        else:
            self._external = set()

    def bytes(self, index: int) -> Array:
        """Return the bytes of a buffer, without a copy.

        Raises:
            ModelFileError: there is no such buffer, or it ends beyond the file.
        """
        if not 0 <= index < len(self._buffers):
            raise ModelFileError(f"there is no buffer {index}, but {len(self._buffers)} in all")
        buffer = self._buffers[index]
        if buffer.offset > 1:
            if buffer.offset + buffer.size > len(self._data):
                raise ModelFileError(f"buffer {index} ends after the file; download it again")
            return np.frombuffer(self._data, np.uint8, buffer.size, buffer.offset)
        return np.zeros(0, np.uint8) if buffer.data is None else buffer.data

    def is_constant(self, tensor: Tensor) -> bool:
        """Return whether a file has the elements of a tensor."""
        if tensor.external_buffer:
            raise UnsupportedError(
                f"tensor {tensor.name!r} is in another file; write the model as one file"
            )
        return bool(tensor.buffer) and bool(len(self.bytes(tensor.buffer)))

    def constant(self, tensor: Tensor, name: str) -> Operand:
        """Return the operand for a tensor whose elements are in the file.

        Raises:
            ModelFileError: the number of bytes does not fit the shape.
            UnsupportedError: no operand holds elements of the type.
        """
        kind, shape = element_type(tensor), shape_of(tensor)
        if is_complex(tensor):
            shape = (*shape, 2)
        raw, count = self.bytes(tensor.buffer), math.prod(shape)
        if tensor.sparsity is not None:
            spend(bytes=count * kind.dtype.itemsize)
            values = _elements(raw, kind, len(raw) // kind.dtype.itemsize, tensor)
            array = dense(values, tensor.sparsity, shape, tensor.name)
        else:
            array = _elements(raw, kind, count, tensor).reshape(shape)
        return Operand(name, TensorType(kind, shape, quantization_of(tensor, kind)), array)


def _elements(raw: Array, kind: ElementType, count: int, tensor: Tensor) -> Array:
    """Return the elements of a tensor from its bytes."""
    bits = _PACKED_BITS.get(kind)
    needed = count * kind.dtype.itemsize if bits is None else -(-count * bits // 8)
    if len(raw) != needed:
        raise ModelFileError(
            f"tensor {tensor.name!r} has {len(raw)} bytes, but its shape needs {needed}"
        )
    if bits is not None:
        return _unpack(raw, bits, count).view(kind.dtype)
    if kind is ElementType.BOOL:
        return np.not_equal(raw, 0)
    dtype: np.dtype[Any] = kind.dtype
    # Buffers of damaged files may lie at any byte.
    aligned = raw if raw.ctypes.data % dtype.itemsize == 0 else raw.copy()
    return aligned.view(dtype)


def _unpack(packed: Array, bits: int, count: int) -> Array:
    """Unpack elements of `bits` bits, lowest bits first, to one byte each."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (packed[:, None] >> shifts & (1 << bits) - 1).astype(np.uint8).reshape(-1)[:count]
