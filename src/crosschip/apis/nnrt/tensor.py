"""Functions about tensors: a description, and memory for the elements."""

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

MOST_BYTES = 1 << 30
"""How many bytes of memory a tensor has at most; what the source allocates at once."""

_EXHAUSTED = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""What the system says when there is no more memory, or there are no more files or mappings."""


class NN_Tensor(Handle):
    """A tensor.

    Attributes:
        desc: its description.
        descriptor: the file that its memory is, which is the tensor's own.
        size: how many bytes of that it may use.
        offset: where in the file its elements begin.
        memory: the bytes from there on.
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
        """The elements, in the shape that the description has.

        Raises:
            Failure: that has been changed to one that the memory does not hold.
        """
        if self.desc.size > len(self.memory):
            text = f"takes {self.desc.size} bytes, but there are {len(self.memory)}"
            raise Failure(Code.OH_NN_FAILED, text)
        dtype = element_type(self.desc.data_type).dtype
        held = np.frombuffer(self.memory, dtype, self.desc.size // dtype.itemsize)
        return held.reshape(self.desc.shape or ())


@returns_handle
def OH_NNTensor_Create(deviceID: int, tensorDesc: NN_TensorDesc) -> NN_Tensor:
    """Make a tensor with memory for its elements; the description is copied."""
    desc = _checked(deviceID, tensorDesc)
    return NN_Tensor(desc, _file(desc.size), desc.size)


@returns_handle
def OH_NNTensor_CreateWithSize(deviceID: int, tensorDesc: NN_TensorDesc, size: int) -> NN_Tensor:
    """Make a tensor with memory of some size, which is enough for its elements."""
    desc = _checked(deviceID, tensorDesc)
    if not desc.size <= size <= MOST_BYTES:
        raise invalid(f"the size is {size}, but must be from {desc.size} to {MOST_BYTES}")
    return NN_Tensor(desc, _file(size), size)


@returns_handle
def OH_NNTensor_CreateWithFd(
    deviceID: int, tensorDesc: NN_TensorDesc, fd: int, size: int, offset: int
) -> NN_Tensor:
    """Make a tensor in a file of the program's, which it may close.

    Args:
        deviceID: the device.
        tensorDesc: the description.
        fd: the file.
        size: how many bytes of it are used, from its beginning.
        offset: where in it the elements begin.
    """
    desc = _checked(deviceID, tensorDesc)
    if fd < 0 or not 0 <= offset <= size <= MOST_BYTES or size - offset < desc.size:
        raise invalid(f"the file is {fd}, its size {size}, the offset {offset}")
    return NN_Tensor(desc, os.dup(fd), size, offset)


@returns_code
def OH_NNTensor_Destroy(tensor: NN_Tensor) -> None:
    """Release a tensor."""
    live(tensor, NN_Tensor).destroy()


@returns_handle
def OH_NNTensor_GetTensorDesc(tensor: NN_Tensor) -> NN_TensorDesc:
    """Return the description of a tensor, which is the tensor's own."""
    return live(tensor, NN_Tensor).desc


@returns_handle
def OH_NNTensor_GetDataBuffer(tensor: NN_Tensor) -> memoryview:
    """Return the memory of a tensor, to be read and written."""
    return live(tensor, NN_Tensor).memory


@returns_value
def OH_NNTensor_GetFd(tensor: NN_Tensor) -> int:
    """Return the file that the memory is."""
    return live(tensor, NN_Tensor).descriptor


@returns_value
def OH_NNTensor_GetSize(tensor: NN_Tensor) -> int:
    """Return the number of bytes of the file that may be used."""
    return live(tensor, NN_Tensor).size


@returns_value
def OH_NNTensor_GetOffset(tensor: NN_Tensor) -> int:
    """Return the place in the file where the elements begin, in bytes."""
    return live(tensor, NN_Tensor).offset


def _checked(deviceID: int, tensorDesc: NN_TensorDesc) -> NN_TensorDesc:
    name_of(deviceID)
    desc = live(tensorDesc, NN_TensorDesc).copy()
    if not 0 < desc.size <= MOST_BYTES:
        raise invalid(f"{desc.shape} of {desc.data_type.name} takes {desc.size} bytes")
    return desc


def _file(size: int) -> int:
    """Return a file in memory, or a temporary one where there are none.

    Raises:
        Failure: there is no more memory, or there are no more files.
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
