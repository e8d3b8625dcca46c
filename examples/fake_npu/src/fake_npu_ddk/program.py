"""A compiled program: what to compute, in which order, and where everything lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from fake_npu_ddk.operators import Operator, Settings
from fake_npu_ddk.tensors import Tensor


class Place(IntEnum):
    """The memory that a tensor lies in."""

    INPUT = 0
    """That of the caller; the offset is the number of the input."""
    OUTPUT = 1
    """That of the caller; the offset is the number of the output."""
    WEIGHTS = 2
    """The constants of the program."""
    ARENA = 3
    """What the program needs while it runs."""


@dataclass(frozen=True, slots=True)
class Located:
    """A tensor and where it lies."""

    tensor: Tensor
    place: Place
    offset: int


@dataclass(frozen=True, slots=True)
class Step:
    """One use of an operator; tensors are numbers.

    Attributes:
        rows: how many rows of the output the chip computes at once.
    """

    operator: Operator
    inputs: tuple[int, ...]
    output: int
    settings: Settings
    rows: int


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled graph.

    Attributes:
        tensors: all tensors, by number.
        steps: what to compute, in order.
        arena: the bytes that it needs while it runs.
        weights: the constants, as they lie in the chip's memory.
    """

    tensors: Sequence[Located]
    steps: Sequence[Step]
    arena: int
    weights: bytes

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that come with a run, in order."""
        return self._at(Place.INPUT)

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that a run makes, in order."""
        return self._at(Place.OUTPUT)

    def _at(self, place: Place) -> list[Tensor]:
        found = [located for located in self.tensors if located.place is place]
        return [located.tensor for located in sorted(found, key=lambda located: located.offset)]
