"""Runs of a program one after the other, which leave tensors to the next where they were made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache

import numpy as np

from crosschip.ir import Array, ElementType, Model, Shape, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import substitute
from crosschip.ir.sizing import SizeReader, names_are_proven

_ALIGNMENT = 64
"""The bytes of a processor's cache line."""
_SPARE = 4
"""Memory that becomes too small is replaced by such as is larger than needed by one in so many."""
_LEAST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Carried:
    """A tensor that a run leaves to the next one, which has one type as both.

    Attributes:
        output: the index of the output that it is of one run.
        input: the index of the input that it is of the next.
    """

    output: int
    input: int


class ProgramSession(ABC):
    """Runs of a program one after the other. Some of its outputs become inputs of the next run.

    They stay in memory that the program can read where it wrote it. A session is used by one thread
    at a time; of one program there may be several sessions, whose runs may overlap.
    """

    @abstractmethod
    def run(self, inputs: Sequence[Array | None]) -> Sequence[Array | None]:
        """Compute the outputs; what is carried stays what it was until `advance`.

        Args:
            inputs: as for `Program.run`; `None` for those that are carried.

        Returns:
            As `Program.run`; `None` for those that are carried.

        Raises:
            DeviceError: the device failed.
        """

    @abstractmethod
    def advance(self) -> None:
        """Let the next run read what the last one made, which did not fail."""

    @abstractmethod
    def shape(self, place: int) -> tuple[int, ...]:
        """The shape of what the next run reads for a carried tensor, by its place among these."""

    @abstractmethod
    def read(self, place: int) -> Array:
        """What the next run reads for a carried tensor: the caller's own."""

    @abstractmethod
    def write(self, place: int, array: Array) -> None:
        """Have the next run read a copy of an array, of the carried tensor's type and any shape.

        Raises:
            DeviceError: the device does not have so much memory.
        """

    @abstractmethod
    def close(self) -> None:
        """Release what the session holds."""


class Rooms:
    """Memory of the host for a carried tensor: what one run reads, and the next one writes.

    Args:
        element_type: of the tensor.
    """

    def __init__(self, element_type: ElementType) -> None:
        self._dtype = element_type.dtype
        self._rooms = [np.empty(0, np.uint8)] * 2
        self._current = 0
        self.array: Array = np.empty(0, self._dtype)

    def place(self, shape: tuple[int, ...]) -> Array:
        """An array of a shape in the memory that nobody reads."""
        count = 1
        for size in shape:
            count *= size
        wanted = count * self._dtype.itemsize
        room = self._rooms[1 - self._current]
        if room.nbytes < wanted:
            room = self._rooms[1 - self._current] = _aligned(wanted + wanted // _SPARE)
        made: Array = room[:wanted].view(self._dtype).reshape(shape)
        return made

    def turn(self, array: Array) -> None:
        """Read an array of `place`, or of any other memory, from now on."""
        self._current = 1 - self._current
        self.array = array

    def write(self, array: Array) -> None:
        """Read a copy of an array from now on."""
        place = self.place(array.shape)
        np.copyto(place, array, casting="no")
        self.turn(place)


class OutputShapes:
    """The shapes of a model's outputs, where those of its inputs determine them.

    Args:
        model: the model.
    """

    def __init__(self, model: Model) -> None:
        self._reader = SizeReader([operand.type for operand in model.inputs.values()])
        self._proven = cache(lambda: names_are_proven(model))
        self._numbers: dict[Shape, int] = {}
        self._number_of = [self._number(operand.type) for operand in model.outputs.values()]

    def of(self, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...] | None]:
        """For each output its shape; `None` if that shows only once it is made."""
        sizes = self._reader.read(shapes)
        found = [
            tuple([size if isinstance(size, int) else substitute(size, sizes) for size in shape])
            for shape in self._numbers
        ]
        return [None if number is None else found[number] for number in self._number_of]  # type: ignore[misc]  # sizes that are known are numbers

    def _number(self, type_: TensorType) -> int | None:
        if type_.static_shape is None and not self._proven():
            return None
        if type_.shape is None or not all(map(self._reader.knows, type_.shape)):
            return None
        return self._numbers.setdefault(type_.shape, len(self._numbers))


def _aligned(count: int) -> Array:
    """So many bytes and some more, from the beginning of a cache line."""
    count = max(count, _LEAST_BYTES)
    room = np.empty(count + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + count]
