"""The arguments of a run, as C has them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from crosschip.devices.kits.native.interface import codes, foreign
from crosschip.devices.kits.native.memory import NativeBuffer
from crosschip.ir import Array, DeviceError, ElementType, Model

Place = Array | NativeBuffer
"""The place of a tensor: on the host, or in the driver's memory."""


class Arguments:
    """The arguments of one run at a time, used again for the next.

    Args:
        model: the model that runs.

    Attributes:
        passed: what the driver's functions take: numbers and arrays of `crosschip_argument`.
    """

    def __init__(self, model: Model) -> None:
        ffi = foreign()
        inputs = [operand.type for operand in model.inputs.values()]
        self._outputs = [(name, operand.type) for name, operand in model.outputs.items()]
        self._read = ffi.new("crosschip_argument[]", max(1, len(inputs)))
        self._output_arguments = ffi.new("crosschip_argument[]", max(1, len(self._outputs)))
        self._places: list[Place | None] = []
        self._shapes: dict[tuple[int, ...], Any] = {}
        self._handle = ffi.new_handle(self)
        self.passed = (len(inputs), self._read, len(self._outputs), self._output_arguments)
        for argument, type_ in zip(self._read, inputs, strict=False):
            _describe(argument, type_.element_type)
        for argument, (_, type_) in zip(self._output_arguments, self._outputs, strict=False):
            _describe(argument, type_.element_type)
            argument.access, argument.owner = _access(), self._handle

    def set(self, inputs: Sequence[Place], outputs: Sequence[Place | None]) -> None:
        """Set what is read, and where to write; new memory where that is `None`."""
        for argument, place in zip(self._read, inputs, strict=False):
            self._fill(argument, place)
        self._places = [
            self._allocated(index) if place is None else place
            for index, place in enumerate(outputs)
        ]
        for argument, target in zip(self._output_arguments, self._places, strict=False):
            if target is None:
                argument.rank, argument.length = -1, 0
                argument.shape = argument.data = argument.memory = foreign().NULL
            else:
                self._fill(argument, target)

    def results(self) -> list[Place]:
        """The places of the outputs, after the run.

        Raises:
            DeviceError: the driver has not asked for the memory of one.
        """
        outputs = [place for place in self._places if place is not None]
        if len(outputs) < len(self._places):
            name = self._outputs[self._places.index(None)][0]
            raise DeviceError(
                f"the driver has not called access for output {name!r}, whose sizes show only in "
                "the run"
            )
        return outputs

    def memory_for(self, argument: Any, shape: tuple[int, ...]) -> Any:
        """The memory of an output, now that its sizes are known."""
        ffi = foreign()
        index = (argument - ffi.addressof(self._output_arguments, 0)) if self._outputs else 0
        held = self._places[index]
        if held is None or held.shape != shape:
            held = np.empty(shape, self._outputs[index][1].element_type.dtype)
            self._places[index] = held
            self._fill(argument, held)
        return argument.data

    def _allocated(self, index: int) -> Array | None:
        type_ = self._outputs[index][1]
        shape = type_.static_shape
        return None if shape is None else np.empty(shape, type_.element_type.dtype)

    def _fill(self, argument: Any, place: Place) -> None:
        ffi = foreign()
        shape = self._shapes.get(place.shape)
        if shape is None:
            shape = self._shapes[place.shape] = ffi.new("int64_t[]", list(place.shape) or [0])
        argument.rank, argument.shape = len(place.shape), shape
        if isinstance(place, NativeBuffer):
            argument.data, argument.memory, argument.length = ffi.NULL, place.memory, place.length
        else:
            argument.data = ffi.cast("void *", place.ctypes.data)
            argument.memory, argument.length = ffi.NULL, place.nbytes


def _describe(argument: Any, element_type: ElementType) -> None:
    argument.size = foreign().sizeof("crosschip_argument")
    argument.type = codes(ElementType)[element_type]


@lru_cache(maxsize=1)
def _access() -> Any:
    """The function that drivers ask for memory with; it gives none where anything goes wrong."""
    ffi = foreign()

    def access(argument: Any, rank: int, shape: Any) -> Any:
        arguments: Arguments = ffi.from_handle(argument.owner)
        try:
            return arguments.memory_for(argument, tuple(ffi.unpack(shape, rank)) if rank else ())
        except (MemoryError, ValueError):
            return ffi.NULL

    signature = "void *(crosschip_argument *, int32_t, const int64_t *)"
    return ffi.callback(signature, access, error=ffi.NULL)
