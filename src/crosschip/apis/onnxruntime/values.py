"""Values of ONNX Runtime: tensors, sequences and maps in host memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.apis.onnxruntime.errors import Fail, InvalidArgument, NotImplemented
from crosschip.apis.onnxruntime.types import code_of, dtype_of, name_of_array
from crosschip.ir import Array

if TYPE_CHECKING:
    from crosschip.apis.onnxruntime.sparse import SparseTensor

CPU = "cpu"


class OrtDevice:
    """A memory: here always the processor's."""

    def __init__(self, name: str = CPU, identifier: int = 0) -> None:
        self._name, self._identifier = name, identifier

    @staticmethod
    def make(device_name: str, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
        """Return a device by its name."""
        return OrtDevice(device_name.lower(), device_id)

    @staticmethod
    def cpu() -> int:
        """Return the code of the processor."""
        return 0

    @staticmethod
    def cuda() -> int:
        """Return the code of CUDA devices."""
        return 1

    @staticmethod
    def cann() -> int:
        """Return the code of CANN devices."""
        return 3

    @staticmethod
    def dml() -> int:
        """Return the code of DirectML devices."""
        return 4

    @staticmethod
    def webgpu() -> int:
        """Return the code of WebGPU devices."""
        return 1

    @staticmethod
    def default_memory() -> int:
        """Return the code of the default memory."""
        return 0

    def device_type(self) -> str:
        """Return the name of the device's kind."""
        return self._name

    def device_id(self) -> int:
        """Return the number of the device."""
        return self._identifier

    def device_mem_type(self) -> int:
        """Return the code of the kind of memory."""
        return 0

    def device_vendor_id(self) -> int:
        """Return the code of the vendor."""
        return 0


def require_processor(device_type: str) -> None:
    """Raise unless a name stands for host memory.

    Raises:
        NotImplemented: it stands for another memory.
    """
    if device_type.lower() != CPU:
        raise NotImplemented.of(
            f"memory of {device_type!r}: crosschip.apis.onnxruntime has values in host memory "
            f"only; use crosschip.compile with `keep` and `allocate` for device memory"
        )


class OrtValue:
    """A value: a tensor, a list (sequence), a dictionary (map) or nothing (optional)."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, device_type: str = CPU, device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Return a tensor that shares an array's memory."""
        require_processor(device_type)
        return cls(np.ascontiguousarray(numpy_obj))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> OrtValue:
        """Return a tensor of ONNX's element type with the bytes of an array."""
        dtype = dtype_of(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            raise InvalidArgument.of(f"{data.dtype} and {dtype} have elements of different sizes")
        return cls(np.ascontiguousarray(data).view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: object,
        device_type: str = CPU,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """Return a tensor with undefined elements."""
        require_processor(device_type)
        return cls(np.empty(tuple(shape), dtype_of(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Return a tensor that shares the memory of an object with `__dlpack__`."""
        return cls(np.from_dlpack(data))

    def _get_c_value(self) -> OrtValue:
        """Return the value without Python's wrapper, which is the same here."""
        return self

    def numpy(self) -> Array:
        """Return the tensor as an array, which shares its memory.

        Raises:
            Fail: the value is no tensor.
        """
        return self._array("numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._value, dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self._array("__dlpack__()").__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self._array("data_ptr()").ctypes.data)

    def device_name(self) -> str:
        """Return the name of the memory's device."""
        return CPU

    def shape(self) -> list[int]:
        """Return the shape."""
        return list(self._array("shape()").shape)

    def data_type(self) -> str:
        """Return the name of the type, such as `tensor(float)`."""
        value = self._value
        if isinstance(value, np.ndarray):
            return name_of_array(value)
        if isinstance(value, list):
            item = OrtValue(value[0] if value else np.zeros(0, np.float32))
            return f"seq({item.data_type()})"
        return "map" if isinstance(value, dict) else ""

    def element_type(self) -> int:
        """Return ONNX's code of the element type."""
        return code_of(self._array("element_type()").dtype)

    def tensor_size_in_bytes(self) -> int:
        """Return the number of bytes of the elements."""
        return int(self._array("tensor_size_in_bytes()").nbytes)

    def has_value(self) -> bool:
        """Return whether there is a value."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Return whether the value is a tensor."""
        return isinstance(self._value, np.ndarray)

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        """Return a value with a sparse tensor."""
        return cls(sparse_tensor)

    def as_sparse_tensor(self) -> SparseTensor:
        """Return the sparse tensor.

        Raises:
            Fail: the value is none.
        """
        if not self.is_sparse_tensor():
            raise Fail.of("as_sparse_tensor() is for sparse tensors only")
        tensor: SparseTensor = self._value
        return tensor

    def is_sparse_tensor(self) -> bool:
        """Return whether the value is a sparse tensor."""
        return hasattr(self._value, "dense_shape")

    def is_tensor_sequence(self) -> bool:
        """Return whether the value is a sequence of tensors."""
        value = self._value
        return isinstance(value, list) and all(isinstance(item, np.ndarray) for item in value)

    def update_inplace(self, data: Any) -> None:
        """Copy the elements of an array or value of the same shape and type.

        Raises:
            ValueError: the shape or type differs.
            TypeError: the argument is neither.
        """
        source = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(source, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        target = self._array("update_inplace()")
        if source.shape != target.shape or source.dtype != target.dtype:
            raise RuntimeError(
                f"The input is {source.dtype} of shape {source.shape}, but the OrtValue is "
                f"{target.dtype} of shape {target.shape}"
            )
        np.copyto(target, source)

    @property
    def value(self) -> Any:
        """The value: an array, list, dictionary or `None`."""
        return self._value

    def _array(self, what: str) -> Array:
        if not isinstance(self._value, np.ndarray):
            raise Fail.of(f"{what} is for tensors only; this value is {type(self._value).__name__}")
        return self._value


class OrtValueVector(list[OrtValue]):
    """A list of values."""

    push_back = list.append

    def reserve(self, size: int) -> None:
        """Do nothing: the list grows by itself."""

    def shrink_to_fit(self) -> None:
        """Do nothing."""


def array_at(address: int, shape: Sequence[int], element_type: object) -> Array:
    """Return an array of the elements at an address.

    The caller keeps the memory alive.
    """
    dtype = dtype_of(element_type)
    nbytes = prod(shape) * dtype.itemsize
    buffer = memoryview((ctypes.c_char * nbytes).from_address(address)) if nbytes else b""
    return np.frombuffer(buffer, dtype).reshape(tuple(shape))


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copy tensors to others of the same shapes and types."""
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(source)
