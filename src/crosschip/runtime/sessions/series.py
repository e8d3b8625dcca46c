"""The programs of a placed model, run again and again, with what they hand on to themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from crosschip.hal import Buffer, Carried
from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.copies import Copies
from crosschip.runtime.execution import Plan, Value
from crosschip.runtime.outline import Outline, Part
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.sessions.guarded import GuardedSession, session_of


@dataclass(frozen=True, slots=True)
class _Home:
    """The place where a kept input is: in a session of the program that makes and reads it."""

    session: GuardedSession
    place: int


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
        names, made = list(placement.model.inputs), list(placement.model.outputs)
        self._pairs = {names.index(i): made.index(o) for i, o in pairs.items()}
        self._kept = set(self._pairs.values())
        self._homes: dict[int, _Home] = {}
        self._sessions: list[GuardedSession] = []
        free = [(i, o) for i, o in self._pairs.items() if names[i] not in checked]
        inner = [
            self._opened(program, segment, placement, free)
            for segment, program in zip(placement.segments, programs, strict=True)
        ]
        self._plan = Plan(placement, inner, copies)
        self._held: dict[int, Value] = {}
        self._made: dict[int, Value] = {}

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of what the next run reads for a kept input, by the index of the input."""
        home = self._homes.get(index)
        return tuple(self._held[index].shape) if home is None else home.session.shape(home.place)

    def read(self, index: int) -> Array:
        """What the next run reads for a kept input, by the index of the input."""
        home = self._homes.get(index)
        if home is not None:
            return home.session.read(home.place)
        held = self._held[index]
        return held.array().copy() if isinstance(held, Buffer) else held.copy()

    def write(self, index: int, array: Array) -> None:
        """Have the next run read a copy of an array for a kept input, by the input's index."""
        home = self._homes.get(index)
        if home is not None:
            home.session.write(home.place, array)
        else:
            self._held[index] = array.copy()

    def held(self, index: int) -> Value | None:
        """What is handed on for a kept input; `None` if it stays with its program."""
        return self._held.get(index)

    def run(self, inputs: list[Any]) -> list[Array]:
        """The outputs that are not kept, in order.

        Args:
            inputs: for each of the model's; anything for those that are kept.
        """
        for index, value in self._held.items():
            inputs[index] = value
        made = self._plan.execute_keeping(inputs, self._kept)
        self._made = {i: made[o] for i, o in self._pairs.items() if i not in self._homes}
        return [cast(Array, v) for index, v in enumerate(made) if index not in self._kept]

    def advance(self) -> None:
        """Let the next run read what the last one made."""
        for session in self._sessions:
            session.advance()
        self._held.update(self._made)

    def close(self) -> None:
        """Release what is kept."""
        self._held.clear()
        self._made.clear()
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
        self._homes.update((input, _Home(session, n)) for n, input in enumerate(carried))
        return session
