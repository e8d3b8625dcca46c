"""Arguments of runs as C structures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from crosschip.devices.kits.native.interface import codes, foreign
from crosschip.devices.kits.native.memory import NativeBuffer
from crosschip.ir import Array, DeviceError, ElementType, Model

Memory = Array | NativeBuffer
"""The memory of a tensor: on the host, or of the driver."""


class Arguments:
    """The arguments of a run; an object serves one run at a time.

    Args:
        model: the model that runs.

    Attributes:
        passed: the arguments of the driver's functions: counts and arrays of `crosschip_argument`.
    """

    def __init__(self, model: Model) -> None:
        ffi = foreign()
        inputs = [operand.type for operand in model.inputs.values()]
        self._outputs = [(name, operand.type) for name, operand in model.outputs.items()]
        self._read = ffi.new("crosschip_argument[]", max(1, len(inputs)))
        self._output_arguments = ffi.new("crosschip_argument[]", max(1, len(self._outputs)))
        self._output_memory: list[Memory | None] = []
        self._shapes: dict[tuple[int, ...], Any] = {}
        self._handle = ffi.new_handle(self)
        self.passed = (len(inputs), self._read, len(self._outputs), self._output_arguments)
        for argument, type_ in zip(self._read, inputs, strict=False):
            _describe(argument, type_.element_type)
        for argument, (_, type_) in zip(self._output_arguments, self._outputs, strict=False):
            _describe(argument, type_.element_type)
            argument.access, argument.owner = _access(), self._handle

    def set(self, inputs: Sequence[Memory], outputs: Sequence[Memory | None]) -> None:
        """Set the inputs and the memory of outputs; allocate memory for `None`."""
        for argument, memory in zip(self._read, inputs, strict=False):
            self._fill(argument, memory)
        self._output_memory = [
            self._allocate(index) if memory is None else memory
            for index, memory in enumerate(outputs)
        ]
        for argument, target in zip(self._output_arguments, self._output_memory, strict=False):
            if target is None:
                argument.rank, argument.length = -1, 0
                argument.shape = argument.data = argument.memory = foreign().NULL
            else:
                self._fill(argument, target)

    def results(self) -> list[Memory]:
        """Return the memory of the outputs after a run.

        Raises:
            DeviceError: the driver has not requested the memory of a data-dependent output.
        """
        outputs = [memory for memory in self._output_memory if memory is not None]
        if len(outputs) < len(self._output_memory):
            name = self._outputs[self._output_memory.index(None)][0]
            raise DeviceError(
                f"the driver has not called access for output {name!r}, whose sizes show only in "
                "the run"
            )
        return outputs

    def memory_for(self, argument: Any, shape: tuple[int, ...]) -> Any:
        """Return the memory of an output whose shape the driver has computed."""
        ffi = foreign()
        index = (argument - ffi.addressof(self._output_arguments, 0)) if self._outputs else 0
        memory = self._output_memory[index]
        if memory is None or memory.shape != shape:
            memory = np.empty(shape, self._outputs[index][1].element_type.dtype)
            self._output_memory[index] = memory
            self._fill(argument, memory)
        return argument.data

    def _allocate(self, index: int) -> Array | None:
        type_ = self._outputs[index][1]
        shape = type_.static_shape
        return None if shape is None else np.empty(shape, type_.element_type.dtype)

    def _fill(self, argument: Any, memory: Memory) -> None:
        ffi = foreign()
        shape = self._shapes.get(memory.shape)
        if shape is None:
            shape = self._shapes[memory.shape] = ffi.new("int64_t[]", list(memory.shape) or [0])
        argument.rank, argument.shape = len(memory.shape), shape
        if isinstance(memory, NativeBuffer):
            argument.data, argument.memory, argument.length = ffi.NULL, memory.memory, memory.length
        else:
            argument.data = ffi.cast("void *", memory.ctypes.data)
            argument.memory, argument.length = ffi.NULL, memory.nbytes


def _describe(argument: Any, element_type: ElementType) -> None:
    argument.size = foreign().sizeof("crosschip_argument")
    argument.type = codes(ElementType)[element_type]


@lru_cache(maxsize=1)
def _access() -> Any:
    """Return the C function that devices call to allocate the memory of outputs."""
    ffi = foreign()

    def access(argument: Any, rank: int, shape: Any) -> Any:
        arguments: Arguments = ffi.from_handle(argument.owner)
        try:
            return arguments.memory_for(argument, tuple(ffi.unpack(shape, rank)) if rank else ())
        except (MemoryError, ValueError):
            return ffi.NULL

    signature = "void *(crosschip_argument *, int32_t, const int64_t *)"
    return ffi.callback(signature, access, error=ffi.NULL)
