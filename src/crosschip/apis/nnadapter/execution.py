"""Functions that run what has been compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crosschip.apis.buffers import octets
from crosschip.apis.nnadapter import operands as types
from crosschip.apis.nnadapter.compilation import NNAdapterCompilation, finished
from crosschip.apis.nnadapter.results import (
    Handle,
    invalid,
    live,
    misshapen,
    returns_code,
    returns_nothing,
    returns_value,
)
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.ir import Array

Access = Callable[[Any, NNAdapterOperandType, Any], Any]
"""`access(memory, type, device_buffer)` gives a buffer for an input or output.

For an input it writes its sizes into the type and returns its elements; for an output the type has
the sizes, and it returns where to write the elements. `memory` is what was set with it, and the
device buffer is `None`: elements are in the host's memory.
"""


class NNAdapterExecution(Handle):
    """A run of what has been compiled, that can be repeated.

    Attributes:
        compilation: what has been compiled.
        inputs: the memory and the access function of each input that has been set, by index.
        outputs: those of the outputs.
    """

    def __init__(self, compilation: NNAdapterCompilation) -> None:
        super().__init__()
        self.compilation = compilation
        self.inputs: dict[int, tuple[Any, Access]] = {}
        self.outputs: dict[int, tuple[Any, Access]] = {}


@returns_value
def NNAdapterExecution_create(compilation: NNAdapterCompilation) -> NNAdapterExecution:
    """Make a run of what has been compiled."""
    finished(compilation)
    return NNAdapterExecution(compilation)


@returns_nothing
def NNAdapterExecution_destroy(execution: NNAdapterExecution | None) -> None:
    """Release a run; `None` is nothing to release."""
    if execution is not None:
        live(execution, NNAdapterExecution).destroy()


@returns_code
def NNAdapterExecution_setInput(
    execution: NNAdapterExecution, index: int, memory: Any, access: Access
) -> None:
    """Say how to get at an input; the last call for an index holds."""
    own = live(execution, NNAdapterExecution)
    signature = finished(own.compilation).signature
    _set(own.inputs, index, len(signature.inputs), memory, access)


@returns_code
def NNAdapterExecution_setOutput(
    execution: NNAdapterExecution, index: int, memory: Any, access: Access
) -> None:
    """Say how to get at the place of an output; the last call for an index holds."""
    own = live(execution, NNAdapterExecution)
    signature = finished(own.compilation).signature
    _set(own.outputs, index, len(signature.outputs), memory, access)


@returns_code
def NNAdapterExecution_compute(execution: NNAdapterExecution) -> None:
    """Run, and return when the outputs have been written."""
    own = live(execution, NNAdapterExecution)
    compiled, signature = finished(own.compilation)
    _check_set("input", own.inputs, len(signature.inputs))
    _check_set("output", own.outputs, len(signature.outputs))
    arrays = [
        _read(index, *own.inputs[index], type_) for index, type_ in enumerate(signature.inputs)
    ]
    if not signature.allows([array.shape for array in arrays]):
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise misshapen(f"the shapes {shapes} are none of those that the inputs allow")
    outputs = compiled.run(dict(zip(compiled.inputs, arrays, strict=True)))
    for index, (type_, array) in enumerate(zip(signature.outputs, outputs.values(), strict=True)):
        _write(index, *own.outputs[index], type_, array)


def _set(
    places: dict[int, tuple[Any, Access]], index: int, count: int, memory: Any, access: Access
) -> None:
    if not isinstance(index, int) or not 0 <= index < count:
        raise invalid(f"the index is {index!r}, but there are {count}")
    if not callable(access):
        raise invalid(f"the access function is {access!r}")
    places[index] = (memory, access)


def _check_set(kind: str, places: Mapping[int, object], count: int) -> None:
    missing = [index for index in range(count) if index not in places]
    if missing:
        raise invalid(f"{kind} {missing[0]} has not been set")


def _read(index: int, memory: Any, access: Access, declared: NNAdapterOperandType) -> Array:
    """The elements of an input, shared with the program's buffer."""
    type_ = declared.copy()
    buffer = access(memory, type_, None)
    shape = tuple(type_.dimensions.data)
    if not types.fits(shape, declared.dimensions.data):
        raise misshapen(
            f"input {index} has the sizes {list(shape)}, which do not fit "
            f"{declared.dimensions.data}"
        )
    dtype = types.element_type(declared.precision).dtype
    held = _first(f"input {index}", buffer, math.prod(shape) * dtype.itemsize)
    return (held != 0 if dtype == np.bool_ else held.view(dtype)).reshape(shape)


def _write(
    index: int, memory: Any, access: Access, declared: NNAdapterOperandType, array: Array
) -> None:
    """Ask for the place of an output, and write it there."""
    type_ = declared.copy()
    type_.dimensions.data = list(array.shape)
    type_.dimensions.dynamic_data = []
    buffer = access(memory, type_, None)
    held = _first(f"output {index}", buffer, array.nbytes)
    if not held.flags.writeable:
        raise invalid(f"output {index}: its buffer is read-only")
    np.copyto(held, np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def _first(what: str, buffer: Any, size: int) -> Array:
    """As many bytes of a buffer as are needed."""
    held = octets(buffer)
    if held.size < size:
        raise invalid(f"{what}: its buffer has {held.size} bytes, but {size} are needed")
    return held[:size]
