"""Functions that set inputs and outputs one by one; `OH_NNExecutor_RunSync` stands for them now."""

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
from crosschip.apis.nnrt.tensor import MOST_BYTES
from crosschip.apis.nnrt.types import OH_NN_Memory, OH_NN_Tensor
from crosschip.ir import Array, Operand


@returns_code
def OH_NNExecutor_SetInput(
    executor: OH_NNExecutor, inputIndex: int, tensor: OH_NN_Tensor, dataBuffer: Any
) -> None:
    """Set an input, which is copied."""
    executor = live(executor, OH_NNExecutor)
    _, operand = at(executor.built.model.inputs, inputIndex)
    executor.inputs[inputIndex] = _array(operand, tensor, dataBuffer).copy()


@returns_code
def OH_NNExecutor_SetOutput(executor: OH_NNExecutor, outputIndex: int, dataBuffer: Any) -> None:
    """Set the memory that an output is written to."""
    executor = live(executor, OH_NNExecutor)
    _, operand = at(executor.built.model.outputs, outputIndex)
    executor.outputs[outputIndex] = _place(operand, dataBuffer)


@returns_code
def OH_NNExecutor_Run(executor: OH_NNExecutor) -> None:
    """Run with the inputs and outputs that have been set."""
    executor = live(executor, OH_NNExecutor)
    model = executor.built.model
    for kind, places, operands in (
        ("input", executor.inputs, model.inputs),
        ("output", executor.outputs, model.outputs),
    ):
        missing = [index for index in range(len(operands)) if index not in places]
        if missing:
            raise invalid(f"{kind} {missing[0]} has not been set")
    arrays = {name: executor.inputs[index] for index, name in enumerate(model.inputs)}
    outputs = executor.built.run(arrays)
    for index, (name, array) in enumerate(outputs.items()):
        place = executor.outputs[index]
        if place.size < array.nbytes:
            raise invalid(f"{name}: takes {array.nbytes} bytes, but there are {place.size}")
        place[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    executor.shapes = [array.shape for array in outputs.values()]


@returns_handle
def OH_NNExecutor_AllocateInputMemory(
    executor: OH_NNExecutor, inputIndex: int, length: int
) -> OH_NN_Memory:
    """Memory for an input."""
    executor = live(executor, OH_NNExecutor)
    at(executor.built.model.inputs, inputIndex)
    return _allocated(executor, ("input", inputIndex), length)


@returns_handle
def OH_NNExecutor_AllocateOutputMemory(
    executor: OH_NNExecutor, outputIndex: int, length: int
) -> OH_NN_Memory:
    """Memory for an output."""
    executor = live(executor, OH_NNExecutor)
    at(executor.built.model.outputs, outputIndex)
    return _allocated(executor, ("output", outputIndex), length)


@returns_nothing
def OH_NNExecutor_DestroyInputMemory(
    executor: OH_NNExecutor, inputIndex: int, memory: OH_NN_Memory
) -> None:
    """Release memory of an input; that of another stays."""
    _freed(live(executor, OH_NNExecutor), ("input", inputIndex), memory)


@returns_nothing
def OH_NNExecutor_DestroyOutputMemory(
    executor: OH_NNExecutor, outputIndex: int, memory: OH_NN_Memory
) -> None:
    """Release memory of an output; that of another stays."""
    _freed(live(executor, OH_NNExecutor), ("output", outputIndex), memory)


@returns_code
def OH_NNExecutor_SetInputWithMemory(
    executor: OH_NNExecutor, inputIndex: int, tensor: OH_NN_Tensor, memory: OH_NN_Memory
) -> None:
    """Set an input to memory of it, which is read when the model runs."""
    executor = live(executor, OH_NNExecutor)
    _, operand = at(executor.built.model.inputs, inputIndex)
    held = _owned(executor, ("input", inputIndex), memory)
    executor.inputs[inputIndex] = _array(operand, tensor, held.data)


@returns_code
def OH_NNExecutor_SetOutputWithMemory(
    executor: OH_NNExecutor, outputIndex: int, memory: OH_NN_Memory
) -> None:
    """Set an output to memory of it."""
    executor = live(executor, OH_NNExecutor)
    _, operand = at(executor.built.model.outputs, outputIndex)
    held = _owned(executor, ("output", outputIndex), memory)
    executor.outputs[outputIndex] = _place(operand, held.data)


def _array(operand: Operand, tensor: OH_NN_Tensor, buffer: Any) -> Array:
    """Return an input in a buffer, which may be longer."""
    if not isinstance(tensor, OH_NN_Tensor):
        raise invalid(f"{tensor!r} is no OH_NN_Tensor")
    shape = tuple(tensor.dimensions)
    wanted = operand.type.shape or ()
    fits = len(shape) == len(wanted) and all(
        size > 0 and (size == known or not isinstance(known, int))
        for size, known in zip(shape, wanted, strict=True)
    )
    if not fits or tensor.dataType != data_type(operand.type.element_type):
        raise invalid(f"{list(shape)} of {tensor.dataType!r} is not {operand.type}")
    if tensor.type != OH_NN_TensorType.OH_NN_TENSOR:
        raise invalid(f"the input has the type {tensor.type!r}, but inputs are OH_NN_TENSOR")
    dtype, held = element_type(tensor.dataType).dtype, byte_view(buffer)
    size = math.prod(shape) * dtype.itemsize
    if held.size < size:
        raise invalid(f"the buffer has {held.size} bytes, but {size} are needed")
    return held[:size].view(dtype).reshape(shape)


def _place(operand: Operand, buffer: Any) -> Array:
    """Return the bytes of a buffer that an output is written to."""
    held, shape = byte_view(buffer), operand.type.static_shape
    needed = 1 if shape is None else math.prod(shape) * operand.type.element_type.dtype.itemsize
    if held.size < needed or not held.flags.writeable:
        raise invalid(f"the buffer has {held.size} bytes, or is read-only; {needed} are needed")
    return held


def _allocated(own: OH_NNExecutor, key: tuple[str, int], length: int) -> OH_NN_Memory:
    if not isinstance(length, int) or length <= 0:
        raise invalid(f"the length is {length!r}")
    if as_reference() and length > MOST_BYTES:
        raise invalid(f"the length is {length}, but the source allocates {MOST_BYTES} at most")
    memory = OH_NN_Memory(memoryview(bytearray(length)))
    own.memories.setdefault(key, []).append(memory)
    return memory


def _owned(own: OH_NNExecutor, key: tuple[str, int], memory: OH_NN_Memory) -> OH_NN_Memory:
    if not any(memory is known for known in own.memories.get(key, ())):
        raise invalid(f"this is no memory of {key[0]} {key[1]}")
    return memory


def _freed(own: OH_NNExecutor, key: tuple[str, int], memory: OH_NN_Memory) -> None:
    held = _owned(own, key, memory)
    own.memories[key] = [known for known in own.memories[key] if known is not held]
