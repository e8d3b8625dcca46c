"""The guard of a program's session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crosschip.hal import Buffer, Carried, Event, Program, ProgramSession, Submission
from crosschip.ir import Array, Dim, Model
from crosschip.runtime.guard.calls import call
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.statistics import SegmentStatistics


class GuardedSession(SegmentProgram):
    """A session of a program as a program whose carried inputs and outputs are `None`.

    Args:
        program: the program.
        session: the session.
        carried: the outputs that the session carries to inputs of the next run.
    """

    submits = False

    def __init__(
        self, program: GuardedProgram, session: ProgramSession, carried: Sequence[Carried]
    ) -> None:
        model = program.model
        carried_inputs, carried_outputs = (
            {pair.input for pair in carried},
            {pair.output for pair in carried},
        )
        inputs = [item for i, item in enumerate(model.inputs.items()) if i not in carried_inputs]
        outputs = [item for i, item in enumerate(model.outputs.items()) if i not in carried_outputs]
        input_indices = [i for i in range(len(model.inputs)) if i not in carried_inputs]
        output_indices = [i for i in range(len(model.outputs)) if i not in carried_outputs]
        rules = range(len(model.outputs), len(model.outputs) + len(program.program.rules))
        self.name = program.name
        self.copies = program.copies
        self._program = program
        self._session = session
        self._input_indices, self._output_indices, self._outputs = (
            input_indices,
            output_indices,
            len(model.outputs),
        )
        partial_program = _UncarriedProgram(
            session,
            input_indices,
            len(model.inputs),
            [*output_indices, *rules],
            program.program.rules,
        )
        of_rest = Model(model.name, dict(inputs), [], dict(outputs))
        self._run = program.with_program(partial_program, of_rest).run

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        results = self._run([inputs[index] for index in self._input_indices])
        self._program.count_run()
        outputs: list[Any] = [None] * self._outputs
        for index, array in zip(self._output_indices, results, strict=True):
            outputs[index] = array
        return outputs

    def advance(self) -> None:
        """Make the carried outputs of the last run the inputs of the next one."""
        call(self.name, "handing on", self._session.advance)

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of a carried tensor for the next run, by its index in `carried`."""
        return self._session.shape(index)

    def read(self, index: int) -> Array:
        """Return the value of a carried tensor for the next run."""
        array: Array = call(self.name, "reading state", self._session.read, index)
        return array

    def write(self, index: int, array: Array) -> None:
        """Set the value of a carried tensor for the next run to a copy of an array."""
        call(self.name, "writing state", self._session.write, index, array)

    def owns(self, buffer: Buffer) -> bool:
        return False

    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        raise NotImplementedError("programs that submit have no sessions")

    def prepare(self, sizes: Mapping[str, Dim]) -> None:
        return

    def statistics(self) -> Iterable[SegmentStatistics]:
        return ()

    def close(self) -> None:
        call(self.name, "closing a session", self._session.close)


class _UncarriedProgram(Program):
    """A session as a program with only the inputs and outputs that are not carried.

    Args:
        session: the session.
        input_indices: the indices of the inputs that are not carried.
        count: the number of all inputs.
        output_indices: the indices of the outputs that are not carried, and of those for rules.
        rules: the rules.
    """

    def __init__(
        self,
        session: ProgramSession,
        input_indices: Sequence[int],
        count: int,
        output_indices: Sequence[int],
        rules: Sequence[str],
    ) -> None:
        self.rules = rules
        self._run = session.run
        self._input_indices = input_indices
        self._count = count
        self._output_indices = output_indices

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        arrays: list[Array | None] = [None] * self._count
        for index, array in zip(self._input_indices, inputs, strict=True):
            arrays[index] = array
        outputs: Sequence[Any] = self._run(arrays)
        return [outputs[index] for index in self._output_indices]


def session_of(program: SegmentProgram, carried: Sequence[Carried]) -> GuardedSession | None:
    """Open a session of a program; `None` if the program has none."""
    if not isinstance(program, GuardedProgram) or program.submits or not carried:
        return None
    session = call(program.name, "opening a session", program.program.session, carried)
    return None if session is None else GuardedSession(program, session, carried)
