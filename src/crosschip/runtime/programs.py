"""Programs of segments as the rest of the runtime uses them, however they come about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from crosschip.hal import Buffer, Event, Submission
from crosschip.ir import Array, Dim
from crosschip.runtime.copies import Copies

if TYPE_CHECKING:
    from crosschip.runtime.statistics import SegmentStatistics

Awaited = Callable[[], bool]
"""Tells whether somebody still waits for what a run makes."""


class Abandoned(Exception):
    """A run has been given up, since nobody waits for what it makes."""


class SegmentProgram(ABC):
    """Runs a segment on its device.

    Attributes:
        name: the device's.
        submits: whether it takes on work and goes on.
        copies: where it is counted what had to be copied.
        compilers: the names of the devices that may yet compile parts of it, in the order of
            preference; none if all is compiled.
    """

    name: str
    submits: bool
    copies: Copies
    compilers: Sequence[str] = ()

    def count_copies(self, copies: Copies) -> None:
        """Have copies counted there from now on, those within the program, too."""
        self.copies = copies

    @abstractmethod
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute the outputs, an array or other value for each of the model's, of its type.

        Raises:
            CompileError: the device did not compile for the shapes of the inputs.
            DeviceError: the device failed, or returned something else.
        """

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        """`run`, with outputs in these arrays where the program can write there.

        Args:
            inputs: as for `run`.
            places: for each output an array of any shape and layout, or `None`.

        Returns:
            As `run`; for a place that has been written, that array.

        Raises:
            CompileError, DeviceError: as for `run`.
        """
        return self.run(inputs)

    def run_while(
        self,
        inputs: Sequence[Array],
        awaited: Awaited,
        places: Sequence[Array | None] | None = None,
    ) -> Sequence[Array]:
        """`run`, or `run_into` if there are places, given up where it can be interrupted.

        Args:
            inputs: as for `run`.
            awaited: is asked before each part of the run, if it has parts.
            places: as for `run_into`.

        Raises:
            Abandoned: nobody waits for the outputs any more.
            CompileError, DeviceError: as for `run`.
        """
        return self.run(inputs) if places is None else self.run_into(inputs, places)

    @abstractmethod
    def owns(self, buffer: Buffer) -> bool:
        """Tell whether a buffer is memory of the device that the program runs on."""

    @abstractmethod
    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        """Take on a run.

        Raises:
            CompileError: the device did not compile for the shapes of the inputs.
            DeviceError: the device did not take it on, or returned something else.
        """

    def check_rules(self, outputs: Sequence[Buffer]) -> None:
        """Check the outputs of a finished submission that report broken rules, if there are such.

        Raises:
            DeviceError: a rule was broken.
        """
        return

    @abstractmethod
    def prepare(self, sizes: Mapping[str, Dim]) -> None:
        """Compile for named sizes, where that is done for each shape and these determine all.

        Raises:
            CompileError: the device did not.
        """

    def save(self) -> bytes | None:
        """The bytes from which the device loads the program; `None` if there are none.

        Raises:
            DeviceError: the device fails to save it.
        """
        return None

    @abstractmethod
    def statistics(self) -> Iterable[SegmentStatistics]:
        """The figures about the segment, and about those of its bodies."""

    @abstractmethod
    def close(self) -> None:
        """Release the program; if that fails, it is a warning."""
