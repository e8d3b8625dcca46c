"""NNAdapter's functions that run a compiled model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crosschip.apis.buffers import byte_view
from crosschip.apis.nnadapter import operands as types
from crosschip.apis.nnadapter.compilation import NNAdapterCompilation, result_of
from crosschip.apis.nnadapter.results import (
    Handle,
    invalid,
    invalid_dimensions,
    live,
    returns_code,
    returns_nothing,
    returns_value,
)
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.ir import Array

Access = Callable[[Any, NNAdapterOperandType, Any], Any]
"""`access(memory, type, device_buffer)` returns the buffer of an input or output.

For an input it writes the shape into the type and returns the elements; for an output it reads the
shape from the type and returns the buffer to write to. `memory` is the argument that was set with
the function; `device_buffer` is `None`, as elements are in host memory.
"""


class NNAdapterExecution(Handle):
    """A repeatable run of a compiled model.

    Attributes:
        compilation: the finished compilation.
        inputs: memory and access function of each input that has been set, by index.
        outputs: memory and access function of each output that has been set, by index.
    """

    def __init__(self, compilation: NNAdapterCompilation) -> None:
        super().__init__()
        self.compilation = compilation
        self.inputs: dict[int, tuple[Any, Access]] = {}
        self.outputs: dict[int, tuple[Any, Access]] = {}


@returns_value
def NNAdapterExecution_create(compilation: NNAdapterCompilation) -> NNAdapterExecution:
    """Create a run of a finished compilation."""
    result_of(compilation)
    return NNAdapterExecution(compilation)


@returns_nothing
def NNAdapterExecution_destroy(execution: NNAdapterExecution | None) -> None:
    """Release a run; `None` is ignored."""
    if execution is not None:
        live(execution, NNAdapterExecution).destroy()


@returns_code
def NNAdapterExecution_setInput(
    execution: NNAdapterExecution, index: int, memory: Any, access: Access
) -> None:
    """Set an input's memory and access function; replaces an earlier call's."""
    execution = live(execution, NNAdapterExecution)
    signature = result_of(execution.compilation).signature
    _set(execution.inputs, index, len(signature.inputs), memory, access)


@returns_code
def NNAdapterExecution_setOutput(
    execution: NNAdapterExecution, index: int, memory: Any, access: Access
) -> None:
    """Set an output's memory and access function; replaces an earlier call's."""
    execution = live(execution, NNAdapterExecution)
    signature = result_of(execution.compilation).signature
    _set(execution.outputs, index, len(signature.outputs), memory, access)


@returns_code
def NNAdapterExecution_compute(execution: NNAdapterExecution) -> None:
    """Run the model; return after the outputs have been written."""
    execution = live(execution, NNAdapterExecution)
    compiled, signature = result_of(execution.compilation)
    _check_set("input", execution.inputs, len(signature.inputs))
    _check_set("output", execution.outputs, len(signature.outputs))
    arrays = [
        _read(index, *execution.inputs[index], type_)
        for index, type_ in enumerate(signature.inputs)
    ]
    if not signature.allows([array.shape for array in arrays]):
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise invalid_dimensions(f"the shapes {shapes} are none of those that the inputs allow")
    outputs = compiled.run(dict(zip(compiled.inputs, arrays, strict=True)))
    for index, (type_, array) in enumerate(zip(signature.outputs, outputs.values(), strict=True)):
        _write(index, *execution.outputs[index], type_, array)


def _set(
    accesses: dict[int, tuple[Any, Access]], index: int, count: int, memory: Any, access: Access
) -> None:
    if not isinstance(index, int) or not 0 <= index < count:
        raise invalid(f"the index is {index!r}, but there are {count}")
    if not callable(access):
        raise invalid(f"the access function is {access!r}")
    accesses[index] = (memory, access)


def _check_set(kind: str, accesses: Mapping[int, object], count: int) -> None:
    missing = [index for index in range(count) if index not in accesses]
    if missing:
        raise invalid(f"{kind} {missing[0]} has not been set")


def _read(index: int, memory: Any, access: Access, declared: NNAdapterOperandType) -> Array:
    """Return an input's elements, shared with the program's buffer."""
    type_ = declared.copy()
    buffer = access(memory, type_, None)
    shape = tuple(type_.dimensions.data)
    if not types.fits(shape, declared.dimensions.data):
        raise invalid_dimensions(
            f"input {index} has the sizes {list(shape)}, which do not fit "
            f"{declared.dimensions.data}"
        )
    dtype = types.element_type(declared.precision).dtype
    content = _first_bytes(f"input {index}", buffer, math.prod(shape) * dtype.itemsize)
    return (content != 0 if dtype == np.bool_ else content.view(dtype)).reshape(shape)


def _write(
    index: int, memory: Any, access: Access, declared: NNAdapterOperandType, array: Array
) -> None:
    """Request an output's buffer and write the elements to it."""
    type_ = declared.copy()
    type_.dimensions.data = list(array.shape)
    type_.dimensions.dynamic_data = []
    buffer = access(memory, type_, None)
    content = _first_bytes(f"output {index}", buffer, array.nbytes)
    if not content.flags.writeable:
        raise invalid(f"output {index}: its buffer is read-only")
    np.copyto(content, np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def _first_bytes(name: str, buffer: Any, size: int) -> Array:
    """Return the first `size` bytes of a buffer."""
    content = byte_view(buffer)
    if content.size < size:
        raise invalid(f"{name}: its buffer has {content.size} bytes, but {size} are needed")
    return content[:size]
