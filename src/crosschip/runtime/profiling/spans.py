"""Nested time spans of a run."""

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
    """The kind of a span."""

    RUN = "run"
    CHECK = "checking inputs"
    SEGMENT = "segment"
    STEP = "step"
    COPY = "copying"
    WAIT = "waiting"
    BODY = "body"


@dataclass(slots=True)
class Span:
    """A time span of a run.

    Attributes:
        kind: the kind.
        name: the name of the segment, of the operation with the body's, or of the engine's step.
        device: the device; empty for the runtime.
        start: seconds on a clock that all spans share; `None` for a step whose engine does not
            report it.
        seconds: the duration, including nested spans.
        operations: the computed operations.
        inside: the nested spans, in order.
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
        """The duration without nested spans, in seconds."""
        return self.seconds - sum(span.seconds for span in self.inside)

    def all_spans(self) -> Iterator[Span]:
        """Return the span and all nested ones, at any depth."""
        yield self
        for span in self.inside:
            yield from span.all_spans()

    def add_steps(self, steps: Sequence[Step], origin: float) -> None:
        """Add nested spans for the steps that an engine reports.

        Args:
            steps: the steps, in order.
            origin: the start of the run, from which the engine counts.
        """
        for step in steps:
            start = None if step.start is None else origin + step.start
            span = Span(SpanKind.STEP, step.name, self.device, start, step.seconds, step.operations)
            span.add_steps(step.inside, origin)
            self.inside.append(span)


class Recorder:
    """A recorder of spans in one thread.

    Attributes:
        runs: the outermost spans.
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
        """Record a span for the `with` block, nested in the current one."""
        span = Span(kind, name, device, operations=operations)
        (self._open[-1].inside if self._open else self.runs).append(span)
        self._open.append(span)
        span.start = start = perf_counter()
        try:
            yield span
        finally:
            span.seconds = perf_counter() - start
            self._open.pop()
