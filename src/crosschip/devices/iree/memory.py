"""Memory that compiled modules read and write: the host's, shared, or a chip's, by copies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import iree.runtime as runtime
import ml_dtypes
import numpy as np

from crosschip.devices.iree.module import carrier
from crosschip.devices.kits.stablehlo.weights import SharedWeights
from crosschip.ir import Array

View: TypeAlias = Any
"""The runtime's view of a buffer: a shape and an element type."""

Extent: TypeAlias = tuple[int, int]
"""The first address of memory, and the one after the last."""

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

_SMALL_BYTES = 1 << 16
"""The size up to which copying an array takes less time than sharing its memory."""

_EMPTY = np.empty(0, np.uint8)

_HOST = int(runtime.MemoryType.HOST_LOCAL | runtime.MemoryType.DEVICE_VISIBLE)
_MAPPED = runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING


class Memory(ABC):
    """Transfers to and from the memory of a device of the runtime.

    Args:
        device: the runtime's device.

    Attributes:
        weights: the weights in the memory.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self.weights = SharedWeights(self.put)

    @abstractmethod
    def lend(self, array: Array) -> tuple[View, Array]:
        """Return a view of an array for one run, and the array that must live until its end."""

    @abstractmethod
    def owned(
        self, results: Sequence[tuple[View, np.dtype[Any]]], lent: Sequence[Array], held: Extents
    ) -> list[Array]:
        """Return outputs of a run as arrays that nothing else refers to.

        Args:
            results: the views of the outputs, and their element types.
            lent: the arrays that were lent to the run.
            held: the memory of the weights.
        """

    @abstractmethod
    def extents(self, views: Sequence[View]) -> Extents:
        """Return the memory of weights that the host could write to."""

    def put(self, array: Array) -> View:
        """Copy an array to memory that programs read, as long as the view lives."""
        array = np.require(array, requirements="C").view(carrier(array.dtype))
        return self.device.allocator.allocate_buffer_copy(
            memory_type=runtime.MemoryType.DEVICE_LOCAL,
            allowed_usage=_MAPPED,
            device=self.device,
            buffer=array,
            element_type=_TYPES[array.dtype],
        )


class Extents:
    """Ranges of addresses that do not overlap, with a search among them."""

    def __init__(self, extents: Sequence[Extent] = ()) -> None:
        self._extents = sorted(extents)

    def overlap(self, begin: int, end: int) -> bool:
        """Return whether a range overlaps one of them."""
        index = bisect_left(self._extents, (end,)) - 1
        return index >= 0 and self._extents[index][1] > begin


class HostMemory(Memory):
    """The host's memory: inputs and outputs are shared with the module."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._import = device.allocator.import_host_allocation

    def lend(self, array: Array) -> tuple[View, Array]:
        if array.nbytes <= _SMALL_BYTES:
            return self.put(array), _EMPTY
        source = _importable(array)
        buffer = self._import(source, _HOST, int(_MAPPED))
        return runtime.HalBufferView(buffer, array.shape, _TYPES[carrier(array.dtype)]), source

    def owned(
        self, results: Sequence[tuple[View, np.dtype[Any]]], lent: Sequence[Array], held: Extents
    ) -> list[Array]:
        """Copy outputs in memory of inputs, of weights or of other outputs.

        The runtime returns the buffer of an argument where the model returns it or reshapes it.
        """
        taken = list(map(_extent, lent))
        outputs = []
        for view, dtype in results:
            mapping = view.map()
            elements = mapping.asarray(view.shape, _stored(dtype))
            if elements.nbytes <= _SMALL_BYTES:
                outputs.append(elements.copy().view(dtype))
                continue
            output = _share(elements, mapping).view(dtype)
            begin, end = _extent(output)
            if held.overlap(begin, end) or any(b < end and begin < e for b, e in taken):
                output = output.copy()
            else:
                taken.append((begin, end))
            outputs.append(output)
        return outputs

    def extents(self, views: Sequence[View]) -> Extents:
        def memory(view: View) -> Array:
            nbytes = view.get_buffer().byte_length()
            elements: Array = view.map().asarray((nbytes,), np.dtype(np.uint8))
            return elements

        return Extents([_extent(memory(view)) for view in views])


class ChipMemory(Memory):
    """The memory of a chip: inputs and outputs are copied."""

    def lend(self, array: Array) -> tuple[View, Array]:
        return self.put(array), array

    def owned(
        self, results: Sequence[tuple[View, np.dtype[Any]]], lent: Sequence[Array], held: Extents
    ) -> list[Array]:
        return [
            np.array(runtime.DeviceArray(self.device, view).to_host()).view(dtype)
            for view, dtype in results
        ]

    def extents(self, views: Sequence[View]) -> Extents:
        return Extents()


class _Shared:
    """Memory as an array interface describes it, and what keeps it."""

    __slots__ = ("__array_interface__", "_keep_alive")

    def __init__(self, interface: dict[str, Any], keep_alive: object) -> None:
        self.__array_interface__ = interface
        self._keep_alive = keep_alive


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
    return np.asarray(_Shared({**interface, "data": (address, False)}, array))


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of an output's bytes, of NumPy's own types."""
    stored = carrier(dtype)
    return (
        stored if stored.isbuiltin == 1 and stored.kind != "b" else np.dtype(f"u{stored.itemsize}")
    )


def _share(elements: Array, mapping: object) -> Array:
    """Return an array of the same memory that keeps it."""
    return np.asarray(_Shared(elements.__array_interface__, mapping))


def _extent(array: Array) -> Extent:
    begin: int = array.__array_interface__["data"][0]
    return begin, begin + array.nbytes
