"""Compiled models: a module of IREE in a context, and its weights."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import iree.runtime as runtime
import ml_dtypes
import numpy as np

from crosschip.devices.iree.module import carrier
from crosschip.devices.kits.stablehlo.padded import cut, open_axes
from crosschip.hal import Program
from crosschip.ir import Array, DeviceError, Model

_TYPES: Mapping[np.dtype[Any], Any] = {
    np.dtype(np.bool_): runtime.HalElementType.BOOL_8,
    np.dtype(ml_dtypes.bfloat16): runtime.HalElementType.BFLOAT_16,
    **{
        np.dtype(f"{letter}{size}"): getattr(runtime.HalElementType, f"{name}_{8 * size}")
        for letter, name, sizes in (
            ("i", "SINT", (1, 2, 4, 8)),
            ("u", "UINT", (1, 2, 4, 8)),
            ("f", "FLOAT", (2, 4, 8)),
        )
        for size in sizes
    },
}

_ALIGNMENT = 64
"""The alignment of memory that modules read, in bytes; they crash on other memory."""

_HOST = int(runtime.MemoryType.HOST_LOCAL | runtime.MemoryType.DEVICE_VISIBLE)
_USAGE = int(runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING)


class View:
    """An array in memory that a device reads.

    Attributes:
        device: the runtime's device.
        value: the runtime's view of the memory.
    """

    __slots__ = ("__weakref__", "device", "value")

    def __init__(self, device: Any, value: Any) -> None:
        self.device = device
        self.value = value

    @property
    def extent(self) -> tuple[int, int]:
        """The first address of the memory, and the one after the last."""
        size = self.value.get_buffer().byte_length()
        return _extent(self.value.map().asarray((size,), np.dtype(np.uint8)))

    @classmethod
    def of(cls, device: Any, array: Array) -> View:
        """Return an array in memory that a device reads, copied."""
        array = np.require(array, requirements="C").view(carrier(array.dtype))
        value = device.allocator.allocate_buffer_copy(
            memory_type=runtime.MemoryType.DEVICE_LOCAL,
            allowed_usage=runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING,
            device=device,
            buffer=array,
            element_type=_TYPES[array.dtype],
        )
        return cls(device, value)


class _Extents:
    """Ranges of addresses that do not overlap, with a search among them."""

    def __init__(self, extents: Sequence[tuple[int, int]]) -> None:
        self._extents = sorted(extents)

    def overlap(self, begin: int, end: int) -> bool:
        """Return whether a range overlaps one of them."""
        index = bisect_left(self._extents, (end,)) - 1
        return index >= 0 and self._extents[index][1] > begin


class _Memory:
    """Memory as an array interface describes it, and what keeps it."""

    __slots__ = ("__array_interface__", "_keep_alive")

    def __init__(self, interface: dict[str, Any], *keep_alive: object) -> None:
        self.__array_interface__ = interface
        self._keep_alive = keep_alive


class IreeProgram(Program):
    """A model of static shapes, or one operation with data-dependent output sizes.

    The module pads such sizes and returns the actual size as an additional output; the padding is
    removed on the host.

    Args:
        device: the runtime's device.
        context: the runtime's context of the module.
        function: the function of the module.
        weights: its first arguments.
        model: the source model.
        rules: the error messages, one per element of the last output.
        saved: the program as bytes.
    """

    def __init__(
        self,
        device: Any,
        context: Any,
        function: Any,
        weights: Sequence[View],
        model: Model,
        rules: Sequence[str],
        saved: bytes,
    ) -> None:
        self._import = device.allocator.import_host_allocation
        self._device = device
        self._context = context
        self._function = function
        self._weights = weights
        self._held = _Extents([weight.extent for weight in weights])
        self._padded = open_axes(model)
        self._messages = tuple(rules)
        self._saved = saved
        self._inputs = [_TYPES[carrier(o.type.element_type.dtype)] for o in model.inputs.values()]
        self._outputs = [np.dtype(o.type.element_type.dtype) for o in model.outputs.values()]
        if self._padded:
            self._outputs.append(np.dtype(np.int64))
        if rules:
            self._outputs.append(np.dtype(np.bool_))

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        arguments = runtime.VmVariantList(len(self._weights) + len(inputs))
        for weight in self._weights:
            arguments.push_ref(weight.value)
        sources = list(map(_importable, inputs))
        for array, element_type in zip(sources, self._inputs, strict=True):
            buffer = self._import(array, _HOST, _USAGE)
            arguments.push_ref(runtime.HalBufferView(buffer, array.shape, element_type))
        results = runtime.VmVariantList(len(self._outputs))
        try:
            self._context.invoke(self._function, arguments, results)
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise DeviceError(f"iree failed while running: {error}") from error
        outputs = [_array(results, index, dtype) for index, dtype in enumerate(self._outputs)]
        return self._finish(self._owned(outputs, sources))

    def save(self) -> bytes:
        return bytes(self._saved)

    def close(self) -> None:
        vars(self).clear()

    def _owned(self, outputs: list[Array], inputs: Sequence[Array]) -> list[Array]:
        """Copy outputs in memory of inputs, of weights or of other outputs.

        The runtime returns the buffer of an argument where the model returns it or reshapes it.
        """
        taken = [_extent(array) for array in inputs]
        owned = []
        for output in outputs:
            begin, end = _extent(output)
            if self._held.overlap(begin, end) or any(b < end and begin < e for b, e in taken):
                output = output.copy()
            else:
                taken.append((begin, end))
            owned.append(output)
        return owned

    def _finish(self, outputs: list[Array]) -> Sequence[Array]:
        """Check the rules, and remove padding."""
        if self._messages:
            holds = outputs.pop()
            if not holds.all():
                raise DeviceError(f"iree: {self._messages[int(holds.argmin())]}")
        if not self._padded:
            return outputs
        count = int(outputs.pop())
        return [
            output if axis is None else cut(output, axis, count)
            for output, axis in zip(outputs, self._padded, strict=True)
        ]


class ForeignProgram(Program):
    """A program for another machine, which can be saved, and not run.

    Args:
        saved: the program as bytes.
        reason: why it does not run here.
    """

    def __init__(self, saved: bytes, reason: str) -> None:
        self._saved = saved
        self._reason = reason

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        raise DeviceError(f"iree: {self._reason}; save it and run it there")

    def save(self) -> bytes:
        return bytes(self._saved)


def _importable(array: Array) -> Array:
    """Return a writable array of the same memory, or of a copy if that is not aligned.

    The runtime imports no read-only arrays; modules do not write to their inputs.
    """
    interface = array.__array_interface__
    address = interface["data"][0]
    if address % _ALIGNMENT:
        memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        copy: Array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        return copy
    if array.flags.writeable:
        return array
    return np.asarray(_Memory({**interface, "data": (address, False)}, array))


def _extent(array: Array) -> tuple[int, int]:
    """Return the first address of a contiguous array, and the one after its last byte."""
    begin: int = array.__array_interface__["data"][0]
    return begin, begin + array.nbytes


def _array(results: Any, index: int, dtype: np.dtype[Any]) -> Array:
    """Return an output in the memory that the run allocated."""
    view = results.get_as_object(index, runtime.HalBufferView)
    stored = carrier(dtype)
    mapping = view.map()
    elements = mapping.asarray(view.shape, np.dtype(np.uint8) if stored.kind == "b" else stored)
    memory = _Memory({**elements.__array_interface__, "typestr": f"|V{dtype.itemsize}"}, mapping)
    return np.asarray(memory).view(dtype)
