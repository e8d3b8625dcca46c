"""The programs of a placed model, run again and again, with what they hand on to themselves."""

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
class _Home:
    """The place where a kept input is: in a session of the program that makes and reads it."""

    session: GuardedSession
    place: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what the next run reads."""
        return self.session.shape(self.place)


class Series:
    """Runs of a placed model one after the other, by one thread at a time.

    What one program makes and it alone reads stays with it, if it has a way to. Anything else is
    handed on as the array or the buffer that it came as.

    Args:
        placement: the outline of what the programs were compiled from.
        programs: one for each segment, in order.
        copies: where it is counted what has to be copied.
        pairs: for the name of each input that is kept that of the output that it becomes.
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
        # For each input what the next run reads, or where that is.
        self._inputs: list[Any] = [None] * len(input_names)
        self._sessions: list[GuardedSession] = []
        free = [(i, o) for i, o in numbers.items() if input_names[i] not in checked]
        inner = [
            self._opened(program, segment, placement, free)
            for segment, program in zip(placement.segments, programs, strict=True)
        ]
        self._plan = Plan(placement, inner, copies)
        self._execute = self._plan.keeping(set(numbers.values()))
        # What is handed on: inputs, and the outputs that they become of.
        self._reads = [index for index in numbers if self._inputs[index] is None]
        self._makes = [numbers[index] for index in self._reads]
        self._results: Sequence[Any] = ()

    def read(self, index: int) -> Array:
        """What the next run reads for a kept input, by the index of the input."""
        held = self._inputs[index]
        if isinstance(held, _Home):
            return held.session.read(held.place)
        array: Array = held.array() if isinstance(held, Buffer) else held
        return array.copy()

    def write(self, index: int, array: Array) -> None:
        """Have the next run read an array, which nobody changes, for a kept input, by its index."""
        held = self._inputs[index]
        if isinstance(held, _Home):
            held.session.write(held.place, array)
        else:
            self._inputs[index] = array

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        """What the next run reads: arrays, buffers, and for what stays with its program its shape.

        Args:
            values: the inputs that are not kept, in order.
        """
        inputs = self._inputs.copy()
        for index, value in zip(self._free_inputs, values, strict=True):
            inputs[index] = value
        return inputs

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """All outputs, those that are kept in their places too, from `inputs`."""
        outputs = self._results = self._execute(inputs)
        return outputs

    def advance(self) -> None:
        """Let the next run read what the last one made."""
        for session in self._sessions:
            session.advance()
        outputs, self._results = self._results, ()
        self._plan.keep(self._reads, self._inputs, [outputs[index] for index in self._makes])

    def close(self) -> None:
        """Release what is kept."""
        self._inputs.clear()
        for session in self._sessions:
            session.close()

    def _opened(
        self,
        program: SegmentProgram,
        segment: Part,
        placement: Outline,
        pairs: Sequence[tuple[int, int]],
    ) -> SegmentProgram:
        """A session of a program for what it makes and it alone reads, or the program itself."""
        inputs = list(placement.model.inputs.values())
        outputs = list(placement.model.outputs.values())
        read = Counter(o for other in placement.segments for o in other.inputs)
        read.update(outputs)
        carried: dict[int, Carried] = {}
        for input, output in pairs:
            reads, makes = inputs[input], outputs[output]
            is_own = reads in segment.inputs and makes in segment.outputs
            if is_own and read[reads] == read[makes] == 1:
                one = Carried(segment.outputs.index(makes), segment.inputs.index(reads))
                if all(one.output != other.output for other in carried.values()):
                    carried[input] = one
        session = session_of(program, list(carried.values()))
        if session is None:
            return program
        self._sessions.append(session)
        for place, input in enumerate(carried):
            self._inputs[input] = _Home(session, place)
        return session
