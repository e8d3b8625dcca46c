"""Timings of the steps of a run, for engines that provide them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from crosschip.ir import Array, Operation
from crosschip.ir.closing import Closing
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import INTEGERS


@dataclass(frozen=True, slots=True)
class Step:
    """Step of a run.

    Attributes:
        name: the engine's name of it, such as `Conv` or `ReorderOutput`.
        seconds: its duration, including nested steps.
        operations: the operations of the program's model (or of bodies in it) that it computes,
            wholly or in part; empty for internal steps of the engine.
        start: seconds since the start of the run; `None` if unknown.
        inside: nested steps, for an operation with bodies.
    """

    name: str
    seconds: float
    operations: Sequence[Operation] = ()
    start: float | None = None
    inside: Sequence[Step] = ()


def computes_data(operation: Operation) -> bool:
    """Return whether an operation computes data rather than shapes, which vanish once known.

    For profilers: a data operation without a step of its own was fused into a neighbour's step.
    """
    return operation.outputs[0].type.element_type not in INTEGERS


class Profiler(Closing, ABC):
    """Instrumented copy of a program, which measures its steps; for use in one thread."""

    @abstractmethod
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute what `Program.run` computes.

        Raises:
            DeviceError: the device failed.
        """

    @abstractmethod
    def begin(self) -> None:
        """Start the measurement; runs before it were warm-up.

        Raises:
            DeviceError: the device failed.
        """

    @abstractmethod
    def steps(self) -> Sequence[Sequence[Step]]:
        """Return the steps of each run since `begin`, in order; called once, after the last run.

        An engine that only reports sums over runs divides them evenly. The steps of a run take no
        longer than the run.

        Raises:
            DeviceError: the device failed.
        """
