"""The interface of the programs of segments."""

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
"""Returns whether a caller still waits for the outputs of a run."""


class Abandoned(Exception):
    """The cancellation of a run because no caller waits for its outputs."""


class SegmentProgram(ABC):
    """The program of a segment.

    Attributes:
        name: the name of the device.
        submits: whether it accepts asynchronous submissions.
        copies: counts the copies.
        compilers: the names of the devices that may still compile parts of it, in the order of
            preference; empty if all is compiled.
    """

    name: str
    submits: bool
    copies: Copies
    compilers: Sequence[str] = ()

    def count_copies(self, copies: Copies) -> None:
        """Set the counter of copies, also for nested programs."""
        self.copies = copies

    @abstractmethod
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute the outputs: an array or other value for each output of the model.

        Raises:
            CompileError: the device did not compile for the shapes of the inputs.
            DeviceError: the device failed, or returned something else.
        """

    def run_into(self, inputs: Sequence[Array], targets: Sequence[Array | None]) -> Sequence[Array]:
        """Compute the outputs, writing them to given arrays where the program can.

        Args:
            inputs: as for `run`.
            targets: for each output an array of any shape and layout, or `None`.

        Returns:
            The outputs; an array of `targets` that was written is returned itself.

        Raises:
            CompileError, DeviceError: as for `run`.
        """
        return self.run(inputs)

    def run_while(
        self,
        inputs: Sequence[Array],
        awaited: Awaited,
        targets: Sequence[Array | None] | None = None,
    ) -> Sequence[Array]:
        """Compute the outputs as `run` or `run_into`, and cancel if no caller waits for them.

        Args:
            inputs: as for `run`.
            awaited: called before each part of the run; returns whether a caller waits.
            targets: as for `run_into`.

        Raises:
            Abandoned: no caller waits for the outputs any more.
            CompileError, DeviceError: as for `run`.
        """
        return self.run(inputs) if targets is None else self.run_into(inputs, targets)

    @abstractmethod
    def owns(self, buffer: Buffer) -> bool:
        """Return whether a buffer is memory of the program's device."""

    @abstractmethod
    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        """Submit a run.

        Raises:
            CompileError: the device did not compile for the shapes of the inputs.
            DeviceError: the device did not accept it, or returned something else.
        """

    def check_rules(self, outputs: Sequence[Buffer]) -> None:
        """Check the outputs of a finished submission that report broken rules, if there are any.

        Raises:
            DeviceError: a rule was broken.
        """
        return

    @abstractmethod
    def prepare(self, sizes: Mapping[str, Dim]) -> None:
        """Compile for named sizes, if programs are per shape and the sizes determine all shapes.

        Raises:
            CompileError: the device failed to compile.
        """

    def save(self) -> bytes | None:
        """Return the bytes from which the device loads the program; `None` if it cannot be saved.

        Raises:
            DeviceError: the device failed to save it.
        """
        return None

    @abstractmethod
    def statistics(self) -> Iterable[SegmentStatistics]:
        """Return the statistics of the segment and of its bodies."""

    @abstractmethod
    def close(self) -> None:
        """Release the program; log a warning if that fails."""
