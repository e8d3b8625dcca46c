"""NNRt's deprecated functions, which set inputs and outputs one at a time.

`OH_NNExecutor_RunSync` replaces them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crosschip.apis.buffers import byte_view
from crosschip.apis.nnrt.conformance import as_reference
from crosschip.apis.nnrt.descriptions import data_type, element_type
from crosschip.apis.nnrt.enumerations import OH_NN_TensorType
from crosschip.apis.nnrt.executor import OH_NNExecutor, at
from crosschip.apis.nnrt.results import (
    invalid,
    live,
    returns_code,
    returns_handle,
    returns_nothing,
)
from crosschip.apis.nnrt.tensor import MAX_BYTES
from crosschip.apis.nnrt.types import OH_NN_Memory, OH_NN_Tensor
from crosschip.ir import Array, Operand


@returns_code
def OH_NNExecutor_SetInput(
    executor: OH_NNExecutor, inputIndex: int, tensor: OH_NN_Tensor, dataBuffer: Any
) -> None:
    """Set an input; its elements are copied."""
    executor = live(executor, OH_NNExecutor)
    _, operand = at(executor.built.model.inputs, inputIndex)
    executor.inputs[inputIndex] = _array(operand, tensor, dataBuffer).copy()


@returns_code
def OH_NNExecutor_SetOutput(executor: OH_NNExecutor, outputIndex: int, dataBuffer: Any) -> None:
    """Set an output's buffer."""
    executor = live(executor, OH_NNExecutor)
    _, operand = at(executor.built.model.outputs, outputIndex)
    executor.outputs[outputIndex] = _output_bytes(operand, dataBuffer)


@returns_code
def OH_NNExecutor_Run(executor: OH_NNExecutor) -> None:
    """Run with the inputs and outputs that have been set."""
    executor = live(executor, OH_NNExecutor)
    model = executor.built.model
    for kind, tensors, operands in (
        ("input", executor.inputs, model.inputs),
        ("output", executor.outputs, model.outputs),
    ):
        missing = [index for index in range(len(operands)) if index not in tensors]
        if missing:
            raise invalid(f"{kind} {missing[0]} has not been set")
    arrays = {name: executor.inputs[index] for index, name in enumerate(model.inputs)}
    outputs = executor.built.run(arrays)
    for index, (name, array) in enumerate(outputs.items()):
        buffer = executor.outputs[index]
        if buffer.size < array.nbytes:
            raise invalid(f"{name}: takes {array.nbytes} bytes, but there are {buffer.size}")
        buffer[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    executor.shapes = [array.shape for array in outputs.values()]


@returns_handle
def OH_NNExecutor_AllocateInputMemory(
    executor: OH_NNExecutor, inputIndex: int, length: int
) -> OH_NN_Memory:
    """Allocate memory for an input."""
    executor = live(executor, OH_NNExecutor)
    at(executor.built.model.inputs, inputIndex)
    return _allocate(executor, ("input", inputIndex), length)


@returns_handle
def OH_NNExecutor_AllocateOutputMemory(
    executor: OH_NNExecutor, outputIndex: int, length: int
) -> OH_NN_Memory:
    """Allocate memory for an output."""
    executor = live(executor, OH_NNExecutor)
    at(executor.built.model.outputs, outputIndex)
    return _allocate(executor, ("output", outputIndex), length)


@returns_nothing
def OH_NNExecutor_DestroyInputMemory(
    executor: OH_NNExecutor, inputIndex: int, memory: OH_NN_Memory
) -> None:
    """Release memory that was allocated for this input."""
    _free(live(executor, OH_NNExecutor), ("input", inputIndex), memory)


@returns_nothing
def OH_NNExecutor_DestroyOutputMemory(
    executor: OH_NNExecutor, outputIndex: int, memory: OH_NN_Memory
) -> None:
    """Release memory that was allocated for this output."""
    _free(live(executor, OH_NNExecutor), ("output", outputIndex), memory)


@returns_code
def OH_NNExecutor_SetInputWithMemory(
    executor: OH_NNExecutor, inputIndex: int, tensor: OH_NN_Tensor, memory: OH_NN_Memory
) -> None:
    """Set an input to allocated memory, which is read when the model runs."""
    executor = live(executor, OH_NNExecutor)
    _, operand = at(executor.built.model.inputs, inputIndex)
    allocated = _check_allocated(executor, ("input", inputIndex), memory)
    executor.inputs[inputIndex] = _array(operand, tensor, allocated.data)


@returns_code
def OH_NNExecutor_SetOutputWithMemory(
    executor: OH_NNExecutor, outputIndex: int, memory: OH_NN_Memory
) -> None:
    """Set an output to allocated memory."""
    executor = live(executor, OH_NNExecutor)
    _, operand = at(executor.built.model.outputs, outputIndex)
    allocated = _check_allocated(executor, ("output", outputIndex), memory)
    executor.outputs[outputIndex] = _output_bytes(operand, allocated.data)


def _array(operand: Operand, tensor: OH_NN_Tensor, buffer: Any) -> Array:
    """Return an input's elements in a buffer, which may be longer."""
    if not isinstance(tensor, OH_NN_Tensor):
        raise invalid(f"{tensor!r} is no OH_NN_Tensor")
    shape = tuple(tensor.dimensions)
    declared = operand.type.shape or ()
    fits = len(shape) == len(declared) and all(
        size > 0 and (size == declared_size or not isinstance(declared_size, int))
        for size, declared_size in zip(shape, declared, strict=True)
    )
    if not fits or tensor.dataType != data_type(operand.type.element_type):
        raise invalid(f"{list(shape)} of {tensor.dataType!r} is not {operand.type}")
    if tensor.type != OH_NN_TensorType.OH_NN_TENSOR:
        raise invalid(f"the input has the type {tensor.type!r}, but inputs are OH_NN_TENSOR")
    dtype, content = element_type(tensor.dataType).dtype, byte_view(buffer)
    size = math.prod(shape) * dtype.itemsize
    if content.size < size:
        raise invalid(f"the buffer has {content.size} bytes, but {size} are needed")
    return content[:size].view(dtype).reshape(shape)


def _output_bytes(operand: Operand, buffer: Any) -> Array:
    """Return an output's buffer as bytes."""
    content, shape = byte_view(buffer), operand.type.static_shape
    required = 1 if shape is None else math.prod(shape) * operand.type.element_type.dtype.itemsize
    if content.size < required or not content.flags.writeable:
        raise invalid(
            f"the buffer has {content.size} bytes, or is read-only; {required} are needed"
        )
    return content


def _allocate(executor: OH_NNExecutor, key: tuple[str, int], length: int) -> OH_NN_Memory:
    if not isinstance(length, int) or length <= 0:
        raise invalid(f"the length is {length!r}")
    if as_reference() and length > MAX_BYTES:
        raise invalid(f"the length is {length}, but the source allocates {MAX_BYTES} at most")
    memory = OH_NN_Memory(memoryview(bytearray(length)))
    executor.memories.setdefault(key, []).append(memory)
    return memory


def _check_allocated(
    executor: OH_NNExecutor, key: tuple[str, int], memory: OH_NN_Memory
) -> OH_NN_Memory:
    if not any(memory is other for other in executor.memories.get(key, ())):
        raise invalid(f"this is no memory of {key[0]} {key[1]}")
    return memory


def _free(executor: OH_NNExecutor, key: tuple[str, int], memory: OH_NN_Memory) -> None:
    memory = _check_allocated(executor, key, memory)
    executor.memories[key] = [other for other in executor.memories[key] if other is not memory]
