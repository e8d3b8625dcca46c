"""Control flow that the runtime runs as the program of a segment."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Array, Model
from crosschip.runtime.control import RUNTIME, ControlProgram, Execute
from crosschip.runtime.copies import Copies
from crosschip.runtime.execution import Plan
from crosschip.runtime.guard.calls import call
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.programs import Abandoned, Awaited


class ControlSegment(GuardedProgram):
    """A program of control flow that can be cancelled between two runs of its bodies.

    Args:
        program: the program.
        model: the model of the segment.
        plans: the compiled bodies.
    """

    def __init__(self, program: ControlProgram, model: Model, plans: Sequence[Plan]) -> None:
        super().__init__(RUNTIME, None, program, model, 1, program.programs)
        self._control = program
        self._plans = tuple(plans)

    def count_copies(self, copies: Copies) -> None:
        super().count_copies(copies)
        self._control.copies = copies
        for plan in self._plans:
            plan.count_copies(copies)

    def run_while(
        self,
        inputs: Sequence[Array],
        awaited: Awaited,
        places: Sequence[Array | None] | None = None,
    ) -> Sequence[Array]:
        bodies = [_while(plan, awaited) for plan in self._plans]
        outputs = call(self.name, "running", self._control.run, inputs, bodies)
        return self._checked(inputs, outputs)


def _while(plan: Plan, awaited: Awaited) -> Execute:
    """A body that raises `Abandoned` instead of running once no caller waits for the result."""

    def run(arrays: Sequence[Array]) -> Sequence[Array]:
        if not awaited():
            raise Abandoned
        return plan.execute_while(arrays, awaited)

    return run
