"""Runs of a program one after the other, which leave tensors to the next where they were made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass


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
