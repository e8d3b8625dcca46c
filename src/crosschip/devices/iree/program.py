"""Compiled models: a module of IREE in a context, and its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

    __slots__ = ("__weakref__", "_array", "device", "value")

    def __init__(self, device: Any, array: Array, value: Any) -> None:
        self.device = device
        self._array = array  # keeps the memory
        self.value = value

    @classmethod
    def of(cls, device: Any, array: Array) -> View:
        """Return an array in memory that a device reads, copied."""
        array = np.ascontiguousarray(array).view(carrier(array.dtype))
        value = device.allocator.allocate_buffer_copy(
            memory_type=runtime.MemoryType.DEVICE_LOCAL,
            allowed_usage=runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING,
            device=device,
            buffer=array,
            element_type=_TYPES[array.dtype],
        )
        return cls(device, array, value)


class _Writable:
    """The memory of a read-only array, declared writable: the runtime imports no other."""

    __slots__ = ("__array_interface__", "_array")

    def __init__(self, array: Array, interface: dict[str, Any]) -> None:
        self._array = array  # keeps the memory
        self.__array_interface__ = interface


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
        for array, element_type in zip(inputs, self._inputs, strict=True):
            buffer = self._import(_importable(array), _HOST, _USAGE)
            arguments.push_ref(runtime.HalBufferView(buffer, array.shape, element_type))
        results = runtime.VmVariantList(len(self._outputs))
        try:
            self._context.invoke(self._function, arguments, results)
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise DeviceError(f"iree failed while running: {error}") from error
        outputs = [_array(results, index, dtype) for index, dtype in enumerate(self._outputs)]
        return self._finish(outputs)

    def save(self) -> bytes:
        return bytes(self._saved)

    def close(self) -> None:
        vars(self).clear()

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
    """Return a writable array of the same memory, or of a copy if that is not aligned."""
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
    return np.asarray(_Writable(array, {**interface, "data": (address, False)}))


def _array(results: Any, index: int, dtype: np.dtype[Any]) -> Array:
    view = results.get_as_object(index, runtime.HalBufferView)
    stored = carrier(dtype)
    raw = np.dtype(np.uint8) if stored == np.bool_ else stored
    return view.map().asarray(view.shape, raw).view(dtype)
