"""A profiler for devices that call one function an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosschip.hal import Profiler, Step
from crosschip.ir import Array


class StepProfiler(Profiler):
    """A profiler that times each operation.

    Args:
        run: returns the outputs for inputs, and the steps of the run.
    """

    def __init__(
        self, run: Callable[[Sequence[Array]], tuple[Sequence[Array], Sequence[Step]]]
    ) -> None:
        self._run = run
        self._steps: list[Sequence[Step]] = []

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        outputs, steps = self._run(inputs)
        self._steps.append(steps)
        return outputs

    def begin(self) -> None:
        self._steps = []

    def steps(self) -> Sequence[Sequence[Step]]:
        return self._steps
