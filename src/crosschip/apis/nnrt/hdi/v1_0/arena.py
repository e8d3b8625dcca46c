"""Device memory for the inputs and outputs of runs on a driver."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.interface import AnyNnrtDevice
from crosschip.apis.nnrt.hdi.v1_0.types import Format, IOTensor, SharedBuffer
from crosschip.apis.nnrt.hdi.v1_0.writer import tensor_of
from crosschip.ir import Array, DeviceError, Operand, TensorType
from crosschip.ir.shape_binding import named_sizes

Driver = AnyNnrtDevice[Any, Any]

_FIRST_GUESS = 4096
"""The initial number of bytes for an output of unknown size."""

_MAX_GUESS = 1 << 30
"""The maximum number of bytes for an output of unknown size, NNRt's limit for tensors."""


def tensors(
    operands: Mapping[str, Operand], format: Format
) -> Sequence[tuple[IOTensor, TensorType]]:
    """Return a model's inputs or outputs as a run's tensors, with their types."""
    pairs = []
    for name, operand in operands.items():
        tensor = tensor_of(operand.type, format)
        pairs.append((IOTensor(name, tensor.dataType, (), format, SharedBuffer()), operand.type))
    return pairs


class _Slot:
    """A tensor of runs, with memory for its elements.

    Attributes:
        type: the type in the model.
        expected: an output's shape in the next run; `None` if unknown.
    """

    def __init__(self, driver: Driver, tensor: IOTensor, type_: TensorType) -> None:
        self._driver = driver
        self._tensor = tensor
        self.type = type_
        self.expected = type_.static_shape
        self._buffer: SharedBuffer | None = None
        self._bytes: Array = np.empty(0, np.uint8)

    def with_memory(self, shape: Sequence[int], size: int) -> IOTensor:
        """Return the tensor, with at least `size` bytes of memory."""
        if self._buffer is None or size > self._bytes.nbytes:
            self.close()
            self._buffer = self._driver.AllocateBuffer(max(size, 1))
            mapped = memory.map_buffer(self._buffer, writable=True)
            self._bytes = mapped[self._buffer.offset :]
        data = msgspec.structs.replace(self._buffer, dataSize=size)
        return msgspec.structs.replace(self._tensor, dimensions=tuple(shape), data=data)

    def write(self, array: Array) -> IOTensor:
        """Write an array to the memory and return the tensor."""
        tensor = self.with_memory(array.shape, array.nbytes)
        np.copyto(self._bytes[: array.nbytes].view(array.dtype).reshape(array.shape), array)
        return tensor

    def prepare_output(self) -> IOTensor:
        """Return an output tensor, with memory for the expected or guessed size."""
        if self.expected is None:
            return self.with_memory((), max(self._bytes.nbytes, _FIRST_GUESS))
        return self.with_memory(self.expected, self._size(self.expected))

    def read(self, shape: Sequence[int]) -> Array:
        """Return a copy of the elements that a run has written.

        Raises:
            DeviceError: the shape does not match the model, or exceeds the memory.
        """
        size = self._size(shape)
        if not self._fits(shape):
            expected = self.type if self.expected is None else list(self.expected)
            raise DeviceError(f"the driver made {list(shape)}, not {expected}")
        if size > self._bytes.nbytes:
            raise DeviceError(f"the driver made {list(shape)}, which it had no room for")
        elements = self._bytes[:size].copy().view(self.type.element_type.dtype)
        return elements.reshape(tuple(shape))

    def grow(self, shape: Sequence[int]) -> bool:
        """Grow the memory of an output of unknown size; return whether it was too small."""
        capacity, size = self._bytes.nbytes, self._size(shape)
        if self.expected is not None or size <= capacity:
            return False
        self.with_memory(shape, size)
        return True

    def double(self) -> bool:
        """Double the memory of an output of unknown size; return whether that was allowed."""
        capacity = self._bytes.nbytes
        if self.expected is not None or capacity >= _MAX_GUESS:
            return False
        self.with_memory((), min(2 * capacity, _MAX_GUESS))
        return True

    def close(self) -> None:
        """Release the memory."""
        if self._buffer is not None:
            self._driver.ReleaseBuffer(self._buffer)
            self._buffer = None

    def _fits(self, shape: Sequence[int]) -> bool:
        if self.expected is not None:
            return tuple(shape) == tuple(self.expected)
        plain = TensorType(self.type.element_type, tuple(shape))
        return plain.fits(TensorType(self.type.element_type, self.type.shape))

    def _size(self, shape: Sequence[int]) -> int:
        if min(shape, default=0) < 0:
            raise DeviceError(f"the driver made an output of the sizes {list(shape)}")
        return math.prod(shape) * self.type.element_type.dtype.itemsize


class Arena:
    """Memory for the inputs and outputs of one run at a time."""

    def __init__(
        self,
        driver: Driver,
        inputs: Sequence[tuple[IOTensor, TensorType]],
        outputs: Sequence[tuple[IOTensor, TensorType]],
    ) -> None:
        self._inputs = [_Slot(driver, *pair) for pair in inputs]
        self._outputs = [_Slot(driver, *pair) for pair in outputs]
        self._open = [slot for slot in self._outputs if slot.expected is None]
        self._last: Sequence[tuple[int, ...]] = ()

    def write_inputs(self, inputs: Sequence[Array]) -> Sequence[IOTensor]:
        """Write a run's inputs and return their tensors."""
        if self._open:
            self._expect([array.shape for array in inputs])
        return [slot.write(array) for slot, array in zip(self._inputs, inputs, strict=True)]

    def output_tensors(self) -> Sequence[IOTensor]:
        """Return a run's output tensors."""
        return [slot.prepare_output() for slot in self._outputs]

    def grow(self, sizes: Sequence[Sequence[int]]) -> bool:
        """Grow output memory to these shapes; return whether any was too small."""
        grown = [slot.grow(shape) for slot, shape in self._pairs(sizes)]
        return any(grown)

    def double(self) -> bool:
        """Double the memory of outputs of unknown size; return whether that was allowed."""
        doubled = [slot.double() for slot in self._outputs]
        return any(doubled)

    def results(self, sizes: Sequence[Sequence[int]]) -> Sequence[Array]:
        """Return copies of the outputs.

        Raises:
            DeviceError: their number differs from the model's, or a shape exceeds its memory.
        """
        return [slot.read(shape) for slot, shape in self._pairs(sizes)]

    def close(self) -> None:
        """Release all memory."""
        for slot in (*self._inputs, *self._outputs):
            slot.close()

    def _expect(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Infer output shapes from input shapes."""
        if shapes != self._last:
            sizes = named_sizes([slot.type for slot in self._inputs], shapes)
            for slot in self._open:
                slot.expected = slot.type.substitute(sizes).static_shape
            self._last = shapes

    def _pairs(self, sizes: Sequence[Sequence[int]]) -> Iterable[tuple[_Slot, Sequence[int]]]:
        if len(sizes) != len(self._outputs):
            raise DeviceError(
                f"the driver made {len(sizes)} outputs, but the model has {len(self._outputs)}"
            )
        return zip(self._outputs, sizes, strict=True)
