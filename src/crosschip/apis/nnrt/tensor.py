"""NNRt's functions for tensors: a description, and memory for the elements."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile

import numpy as np

from crosschip.apis.nnrt.descriptions import NN_TensorDesc, element_type
from crosschip.apis.nnrt.device import name_of
from crosschip.apis.nnrt.enumerations import OH_NN_ReturnCode as Code
from crosschip.apis.nnrt.results import (
    Failure,
    Handle,
    invalid,
    live,
    returns_code,
    returns_handle,
    returns_value,
)
from crosschip.ir import Array

MAX_BYTES = 1 << 30
"""The maximum number of bytes of a tensor, as in the reference implementation."""

_EXHAUSTED = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""The errors of exhausted memory, file descriptors or mappings."""


class NN_Tensor(Handle):
    """A tensor in shared memory.

    Attributes:
        desc: the description.
        descriptor: the memory's file descriptor, owned by the tensor.
        size: the number of usable bytes of the file.
        offset: the byte offset of the elements in the file.
        memory: the bytes from the offset on.
    """

    def __init__(self, desc: NN_TensorDesc, descriptor: int, size: int, offset: int = 0) -> None:
        super().__init__()
        self.desc = desc
        self.descriptor = descriptor
        self.size = size
        self.offset = offset
        try:
            self.memory = memoryview(mmap.mmap(descriptor, size))[offset:]
        except (OSError, ValueError) as error:
            os.close(descriptor)
            if isinstance(error, OSError) and error.errno in _EXHAUSTED:
                message = f"no memory for {size} bytes: {error.strerror}"
                raise Failure(Code.OH_NN_MEMORY_ERROR, message) from None
            raise invalid(f"the file does not hold {size} bytes: {error}") from None

    def destroy(self) -> None:
        super().destroy()
        self.memory = memoryview(b"")
        os.close(self.descriptor)

    @property
    def array(self) -> Array:
        """The elements, in the description's shape.

        Raises:
            Failure: the shape has been changed to one that the memory cannot hold.
        """
        if self.desc.size > len(self.memory):
            text = f"takes {self.desc.size} bytes, but there are {len(self.memory)}"
            raise Failure(Code.OH_NN_FAILED, text)
        dtype = element_type(self.desc.data_type).dtype
        elements = np.frombuffer(self.memory, dtype, self.desc.size // dtype.itemsize)
        return elements.reshape(self.desc.shape or ())


@returns_handle
def OH_NNTensor_Create(deviceID: int, tensorDesc: NN_TensorDesc) -> NN_Tensor:
    """Create a tensor with memory for its elements; the description is copied."""
    desc = _check_description(deviceID, tensorDesc)
    return NN_Tensor(desc, _create_file(desc.size), desc.size)


@returns_handle
def OH_NNTensor_CreateWithSize(deviceID: int, tensorDesc: NN_TensorDesc, size: int) -> NN_Tensor:
    """Create a tensor with `size` bytes of memory, at least as many as its elements take."""
    desc = _check_description(deviceID, tensorDesc)
    if not desc.size <= size <= MAX_BYTES:
        raise invalid(f"the size is {size}, but must be from {desc.size} to {MAX_BYTES}")
    return NN_Tensor(desc, _create_file(size), size)


@returns_handle
def OH_NNTensor_CreateWithFd(
    deviceID: int, tensorDesc: NN_TensorDesc, fd: int, size: int, offset: int
) -> NN_Tensor:
    """Create a tensor in the program's file, whose descriptor is duplicated.

    Args:
        deviceID: the device.
        tensorDesc: the description.
        fd: the file's descriptor.
        size: the number of bytes of the file to use, from its beginning.
        offset: the byte offset of the elements.
    """
    desc = _check_description(deviceID, tensorDesc)
    if fd < 0 or not 0 <= offset <= size <= MAX_BYTES or size - offset < desc.size:
        raise invalid(f"the file is {fd}, its size {size}, the offset {offset}")
    return NN_Tensor(desc, os.dup(fd), size, offset)


@returns_code
def OH_NNTensor_Destroy(tensor: NN_Tensor) -> None:
    """Release a tensor."""
    live(tensor, NN_Tensor).destroy()


@returns_handle
def OH_NNTensor_GetTensorDesc(tensor: NN_Tensor) -> NN_TensorDesc:
    """Return the tensor's own description."""
    return live(tensor, NN_Tensor).desc


@returns_handle
def OH_NNTensor_GetDataBuffer(tensor: NN_Tensor) -> memoryview:
    """Return the tensor's writable memory."""
    return live(tensor, NN_Tensor).memory


@returns_value
def OH_NNTensor_GetFd(tensor: NN_Tensor) -> int:
    """Return the memory's file descriptor."""
    return live(tensor, NN_Tensor).descriptor


@returns_value
def OH_NNTensor_GetSize(tensor: NN_Tensor) -> int:
    """Return the number of usable bytes of the file."""
    return live(tensor, NN_Tensor).size


@returns_value
def OH_NNTensor_GetOffset(tensor: NN_Tensor) -> int:
    """Return the byte offset of the elements in the file."""
    return live(tensor, NN_Tensor).offset


def _check_description(deviceID: int, tensorDesc: NN_TensorDesc) -> NN_TensorDesc:
    name_of(deviceID)
    desc = live(tensorDesc, NN_TensorDesc).copy()
    if not 0 < desc.size <= MAX_BYTES:
        raise invalid(f"{desc.shape} of {desc.data_type.name} takes {desc.size} bytes")
    return desc


def _create_file(size: int) -> int:
    """Create an anonymous memory file, or a temporary file where the system has none.

    Raises:
        Failure: memory or file descriptors are exhausted.
    """
    try:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("nnrt")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, size)
    except OSError as error:
        message = f"no memory for {size} bytes: {error.strerror}"
        raise Failure(Code.OH_NN_MEMORY_ERROR, message) from None
    return descriptor
