"""Consecutive runs of the programs of a placed model, with the state between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from crosschip.hal import Buffer, Carried
from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.copies import Copies
from crosschip.runtime.execution import Plan
from crosschip.runtime.outline import Outline, Part
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.sessions.guarded import GuardedSession, session_of


@dataclass(frozen=True, slots=True)
class _StateLocation:
    """The location of a state input in a session of the program that writes and reads it."""

    session: GuardedSession
    index: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the input in the next run."""
        return self.session.shape(self.index)


class Series:
    """Consecutive runs of a placed model, by one thread at a time.

    State that one program writes and it alone reads stays in a session of the program, if it has
    sessions. Other state is passed on as an array or buffer.

    Args:
        placement: the outline of the placement.
        programs: the program of each segment, in order.
        copies: counts the copies.
        pairs: the output for each state input, by name.
        checked: the names of the inputs whose elements a run checks.
    """

    def __init__(
        self,
        placement: Outline,
        programs: Sequence[SegmentProgram],
        copies: Copies,
        pairs: Mapping[str, str],
        checked: Collection[str],
    ) -> None:
        input_names, output_names = list(placement.model.inputs), list(placement.model.outputs)
        numbers = {input_names.index(i): output_names.index(o) for i, o in pairs.items()}
        self._free_inputs = [index for index in range(len(input_names)) if index not in numbers]
        # For each input, its value in the next run, or the location of the value.
        self._inputs: list[Any] = [None] * len(input_names)
        self._sessions: list[GuardedSession] = []
        free = [(i, o) for i, o in numbers.items() if input_names[i] not in checked]
        inner = [
            self._open_session(program, segment, placement, free)
            for segment, program in zip(placement.segments, programs, strict=True)
        ]
        self._plan = Plan(placement, inner, copies)
        self._execute = self._plan.execute_keeping(set(numbers.values()))
        # The state outside of sessions: the inputs, and their outputs.
        self._state_inputs = [index for index in numbers if self._inputs[index] is None]
        self._state_outputs = [numbers[index] for index in self._state_inputs]
        self._results: Sequence[Any] = ()

    def read(self, index: int) -> Array:
        """Return the value of a state input in the next run, by its index."""
        current = self._inputs[index]
        if isinstance(current, _StateLocation):
            return current.session.read(current.index)
        array: Array = current.array() if isinstance(current, Buffer) else current
        return array.copy()

    def write(self, index: int, array: Array) -> None:
        """Set the value of a state input in the next run, which must not change, by its index."""
        current = self._inputs[index]
        if isinstance(current, _StateLocation):
            current.session.write(current.index, array)
        else:
            self._inputs[index] = array

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        """Return all inputs of the next run: arrays, buffers, and locations with shapes.

        Args:
            values: the inputs that are not state, in order.
        """
        inputs = self._inputs.copy()
        for index, value in zip(self._free_inputs, values, strict=True):
            inputs[index] = value
        return inputs

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Compute all outputs, including state, from the result of `inputs`."""
        outputs = self._results = self._execute(inputs)
        return outputs

    def advance(self) -> None:
        """Make the state outputs of the last run the inputs of the next one."""
        for session in self._sessions:
            session.advance()
        outputs, self._results = self._results, ()
        self._plan.keep(
            self._state_inputs, self._inputs, [outputs[index] for index in self._state_outputs]
        )

    def close(self) -> None:
        """Release the state."""
        self._inputs.clear()
        for session in self._sessions:
            session.close()

    def _open_session(
        self,
        program: SegmentProgram,
        segment: Part,
        placement: Outline,
        pairs: Sequence[tuple[int, int]],
    ) -> SegmentProgram:
        """Open a session of a program for state that it alone reads; else return the program."""
        inputs = list(placement.model.inputs.values())
        outputs = list(placement.model.outputs.values())
        read = Counter(o for other in placement.segments for o in other.inputs)
        read.update(outputs)
        carried: dict[int, Carried] = {}
        for input, output in pairs:
            reads, makes = inputs[input], outputs[output]
            is_own = reads in segment.inputs and makes in segment.outputs
            if is_own and read[reads] == read[makes] == 1:
                candidate = Carried(segment.outputs.index(makes), segment.inputs.index(reads))
                if all(candidate.output != other.output for other in carried.values()):
                    carried[input] = candidate
        session = session_of(program, list(carried.values()))
        if session is None:
            return program
        self._sessions.append(session)
        for index, input in enumerate(carried):
            self._inputs[input] = _StateLocation(session, index)
        return session
