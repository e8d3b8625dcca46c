"""Memory for the inputs and outputs of runs on a driver."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.interface import AnyNnrtDevice
from crosschip.apis.nnrt.hdi.v1_0.types import Format, IOTensor, SharedBuffer
from crosschip.apis.nnrt.hdi.v1_0.writing import tensor_of
from crosschip.ir import Array, DeviceError, Operand, TensorType
from crosschip.ir.binding import named_sizes

Driver = AnyNnrtDevice[Any, Any]

_FIRST_GUESS = 4096
"""The bytes for an output whose size shows in a run only, until it is known better."""

_MOST_GUESS = 1 << 30
"""The bytes for it at most: NNRt has no larger tensors."""


def tensors(
    operands: Mapping[str, Operand], format: Format
) -> Sequence[tuple[IOTensor, TensorType]]:
    """Inputs or outputs of a model as tensors of runs, each with its type."""
    pairs = []
    for name, operand in operands.items():
        tensor = tensor_of(operand.type, format)
        pairs.append((IOTensor(name, tensor.dataType, (), format, SharedBuffer()), operand.type))
    return pairs


class _Place:
    """An input or output of runs: a tensor, and memory for its elements.

    Attributes:
        type: its type in the model.
        expected: the sizes of an output in the next run, as far as they are known.
    """

    def __init__(self, driver: Driver, tensor: IOTensor, type_: TensorType) -> None:
        self._driver = driver
        self._tensor = tensor
        self.type = type_
        self.expected = type_.static_shape
        self._buffer: SharedBuffer | None = None
        self._bytes: Array = np.empty(0, np.uint8)

    def of(self, shape: Sequence[int], size: int) -> IOTensor:
        """Return the tensor, with memory for so many bytes."""
        if self._buffer is None or size > self._bytes.nbytes:
            self.close()
            self._buffer = self._driver.AllocateBuffer(max(size, 1))
            whole = memory.mapped(self._buffer, writable=True)
            self._bytes = whole[self._buffer.offset :]
        data = msgspec.structs.replace(self._buffer, dataSize=size)
        return msgspec.structs.replace(self._tensor, dimensions=tuple(shape), data=data)

    def write(self, array: Array) -> IOTensor:
        """Return the tensor, with the elements of an array in its memory."""
        tensor = self.of(array.shape, array.nbytes)
        np.copyto(self._bytes[: array.nbytes].view(array.dtype).reshape(array.shape), array)
        return tensor

    def room(self) -> IOTensor:
        """Return the tensor, with memory for what will be written as far as its size is known."""
        if self.expected is None:
            return self.of((), max(self._bytes.nbytes, _FIRST_GUESS))
        return self.of(self.expected, self._size(self.expected))

    def read(self, shape: Sequence[int]) -> Array:
        """Return the elements that a run has written.

        Raises:
            DeviceError: they are not such an output, or take more than the room for it.
        """
        size = self._size(shape)
        if not self._fits(shape):
            expected = self.type if self.expected is None else list(self.expected)
            raise DeviceError(f"the driver made {list(shape)}, not {expected}")
        if size > self._bytes.nbytes:
            raise DeviceError(f"the driver made {list(shape)}, which it had no room for")
        held = self._bytes[:size].copy().view(self.type.element_type.dtype)
        return held.reshape(tuple(shape))

    def grow(self, shape: Sequence[int]) -> bool:
        """Make room for an output of these sizes if they were not known; whether there was less."""
        had, size = self._bytes.nbytes, self._size(shape)
        if self.expected is not None or size <= had:
            return False
        self.of(shape, size)
        return True

    def double(self) -> bool:
        """Double the room for an output of unknown sizes; whether that was allowed."""
        had = self._bytes.nbytes
        if self.expected is not None or had >= _MOST_GUESS:
            return False
        self.of((), min(2 * had, _MOST_GUESS))
        return True

    def close(self) -> None:
        """Give the memory back."""
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
        self._inputs = [_Place(driver, *one) for one in inputs]
        self._outputs = [_Place(driver, *one) for one in outputs]
        self._open = [place for place in self._outputs if place.expected is None]
        self._last: Sequence[tuple[int, ...]] = ()

    def written(self, inputs: Sequence[Array]) -> Sequence[IOTensor]:
        """Return the inputs of a run, with their elements."""
        if self._open:
            self._expect([array.shape for array in inputs])
        return [place.write(array) for place, array in zip(self._inputs, inputs, strict=True)]

    def places(self) -> Sequence[IOTensor]:
        """Return the outputs, with room for them."""
        return [place.room() for place in self._outputs]

    def grow(self, sizes: Sequence[Sequence[int]]) -> bool:
        """Make room for outputs of these sizes; whether there was less."""
        grown = [place.grow(shape) for place, shape in self._each(sizes)]
        return any(grown)

    def double(self) -> bool:
        """Double the room of outputs whose sizes are not known; whether that was allowed."""
        doubled = [place.double() for place in self._outputs]
        return any(doubled)

    def results(self, sizes: Sequence[Sequence[int]]) -> Sequence[Array]:
        """Copies of the outputs.

        Raises:
            DeviceError: they are not as many as the model's, or do not fit their memory.
        """
        return [place.read(shape) for place, shape in self._each(sizes)]

    def close(self) -> None:
        """Give all memory back."""
        for place in (*self._inputs, *self._outputs):
            place.close()

    def _expect(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Infer the sizes of outputs from those of inputs."""
        if shapes != self._last:
            sizes = named_sizes([place.type for place in self._inputs], shapes)
            for place in self._open:
                place.expected = place.type.substitute(sizes).static_shape
            self._last = shapes

    def _each(self, sizes: Sequence[Sequence[int]]) -> Iterable[tuple[_Place, Sequence[int]]]:
        if len(sizes) != len(self._outputs):
            raise DeviceError(
                f"the driver made {len(sizes)} outputs, but the model has {len(self._outputs)}"
            )
        return zip(self._outputs, sizes, strict=True)
