"""The time that steps of a run take, from engines that tell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from crosschip.ir import Array, Operation
from crosschip.ir.closing import Closing
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import INTEGERS


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a run.

    Attributes:
        name: the engine's own word for it, as in `Conv` or `ReorderOutput`.
        seconds: the time that it took, with all that is inside.
        operations: those of the program's model, or of bodies in it, that it computes, wholly or in
            part; none for what is the engine's own.
        start: seconds from the beginning of the run; `None` if the engine does not tell.
        inside: the steps that it ran itself, for an operation with bodies.
    """

    name: str
    seconds: float
    operations: Sequence[Operation] = ()
    start: float | None = None
    inside: Sequence[Step] = ()


def computes_data(operation: Operation) -> bool:
    """Tell an operation on data from one on shapes, of which nothing is left once they are known.

    For profilers: an operation on data that no step is named after was made part of a neighbour's.
    """
    return operation.outputs[0].type.element_type not in INTEGERS


class Profiler(Closing, ABC):
    """A program once more, made to tell how long its steps take. One thread uses it."""

    @abstractmethod
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute what `Program.run` computes.

        Raises:
            DeviceError: the device failed.
        """

    @abstractmethod
    def begin(self) -> None:
        """Count from now on; what was run before has only warmed up.

        Raises:
            DeviceError: the device failed.
        """

    @abstractmethod
    def steps(self) -> Sequence[Sequence[Step]]:
        """For each run since `begin` its steps, in order; called once, after the last run.

        An engine that tells no more than means over runs gives each of them its part of the sum.
        All steps of a run take no longer than the run.

        Raises:
            DeviceError: the device failed.
        """
