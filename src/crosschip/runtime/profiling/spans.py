"""The events of a run, and their times: spans, each with those that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from enum import StrEnum
from time import perf_counter

from crosschip.hal import Step
from crosschip.ir import Operation
from crosschip.ir.dataclass import dataclass


class SpanKind(StrEnum):
    """The sort of thing that happened."""

    RUN = "run"
    CHECK = "checking inputs"
    SEGMENT = "segment"
    STEP = "step"
    COPY = "copying"
    WAIT = "waiting"
    BODY = "body"


@dataclass(slots=True)
class Span:
    """A stretch of time.

    Attributes:
        kind: what happened.
        name: the segment's, the operation's with the body's, or the engine's word for its step.
        device: who did it; empty for the runtime.
        start: seconds on a clock that all spans share; `None` for a step of an engine that does not
            tell when it began.
        seconds: how long it took, with all that is inside.
        operations: what was computed.
        inside: what it holds, in order.
    """

    kind: SpanKind
    name: str
    device: str = ""
    start: float | None = None
    seconds: float = 0.0
    operations: Sequence[Operation] = ()
    inside: list[Span] = field(default_factory=list)

    @property
    def own_seconds(self) -> float:
        """The seconds that it took without what is inside."""
        return self.seconds - sum(span.seconds for span in self.inside)

    def all_spans(self) -> Iterator[Span]:
        """The span and all that it holds, at any depth."""
        yield self
        for span in self.inside:
            yield from span.all_spans()

    def add_steps(self, steps: Sequence[Step], origin: float) -> None:
        """Add what an engine tells of its steps.

        Args:
            steps: in order.
            origin: when the run began from which the engine counts.
        """
        for step in steps:
            start = None if step.start is None else origin + step.start
            span = Span(SpanKind.STEP, step.name, self.device, start, step.seconds, step.operations)
            span.add_steps(step.inside, origin)
            self.inside.append(span)


class Recorder:
    """The spans of runs as they happen, in one thread.

    Attributes:
        runs: what is in no other span.
    """

    def __init__(self) -> None:
        self.runs: list[Span] = []
        self._open: list[Span] = []

    @contextmanager
    def span(
        self,
        kind: SpanKind,
        name: str = "",
        device: str = "",
        operations: Sequence[Operation] = (),
    ) -> Iterator[Span]:
        """A span from now to the end of the `with` block, inside of the one with_program it."""
        span = Span(kind, name, device, operations=operations)
        (self._open[-1].inside if self._open else self.runs).append(span)
        self._open.append(span)
        span.start = start = perf_counter()
        try:
            yield span
        finally:
            span.seconds = perf_counter() - start
            self._open.pop()
