"""The mean times of runs of a model, by segment, step and operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from crosschip.drawing.tables import Table, to_html, to_text
from crosschip.ir import Operation, Origin
from crosschip.ir.dataclass import dataclass
from crosschip.ir.text import legible
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.profiling.spans import Span, SpanKind
from crosschip.runtime.profiling.trace import trace

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class SegmentTime:
    """The mean time of a segment in a run.

    Attributes:
        name: the name of the segment.
        device: the device that runs it.
        operations: the number of its operations, without those in bodies of control flow.
        calls: the number of calls, which is not 1 in the body of a loop or branch.
        seconds: the time of all calls, including that of bodies.
        waiting: the part of `seconds` spent on waiting for asynchronous work of the device.
        steps: whether the device reports its steps.
    """

    name: str
    device: str
    operations: int
    calls: float
    seconds: float
    waiting: float
    steps: bool


@dataclass(frozen=True, slots=True)
class StepTime:
    """The mean time of an engine's step in a run.

    Attributes:
        device: the device that runs it.
        segment: the name of its segment.
        step: the engine's name of the step; empty for the time of the segment outside of steps.
        operations: the operations of the model that it computes, wholly or in part.
        calls: the number of calls.
        seconds: the time of all calls, without nested steps.
    """

    device: str
    segment: str
    step: str
    operations: tuple[Operation, ...]
    calls: float
    seconds: float

    @property
    def types(self) -> str:
        """The names of the operators, as in `CONV_2D+RELU`."""
        return "+".join(dict.fromkeys(operation.type for operation in self.operations))

    @property
    def origins(self) -> Sequence[Origin]:
        """The operators of the file that the step computes."""
        return tuple(dict.fromkeys(o for operation in self.operations for o in operation.origins))


class Profile:
    """The mean times of runs; the times of all parts sum up to `seconds`.

    Attributes:
        placement: the placement of the model.
        runs: the span of each run.
    """

    def __init__(self, placement: Placement, runs: Sequence[Span]) -> None:
        self.placement = placement
        self.runs = tuple(runs)

    @property
    def seconds(self) -> float:
        """The mean seconds of a run."""
        return sum(run.seconds for run in self.runs) / len(self.runs)

    @property
    def segments(self) -> Sequence[SegmentTime]:
        """The time of each segment, including those of bodies, in the order of their first end."""
        spans_by_segment = self._group_spans(
            SpanKind.SEGMENT, lambda span: (span.name, span.device)
        )
        return [
            SegmentTime(
                name,
                device,
                len(spans[0].operations),
                len(spans) / len(self.runs),
                self._mean(span.seconds for span in spans),
                self._mean(
                    inner.seconds
                    for span in spans
                    for inner in span.inside
                    if inner.kind is SpanKind.WAIT
                ),
                any(inner.kind is SpanKind.STEP for span in spans for inner in span.inside),
            )
            for (name, device), spans in spans_by_segment.items()
        ]

    @property
    def steps(self) -> Sequence[StepTime]:
        """The time of each step, the longest first; other time of a segment has no step name."""
        seconds_by_step: dict[tuple[str, str, str, tuple[Operation, ...]], list[float]] = {}
        for run in self.runs:
            for segment, span in _steps_in(run):
                whole = span.kind is SpanKind.SEGMENT
                has_steps = any(inner.kind is SpanKind.STEP for inner in span.inside)
                key = (
                    span.device,
                    segment.name,
                    "" if whole else span.name,
                    () if whole and has_steps else tuple(span.operations),
                )
                waited = sum(i.seconds for i in span.inside if i.kind is SpanKind.WAIT)
                seconds_by_step.setdefault(key, []).append(span.own_seconds + waited)
        steps = [
            StepTime(*key, len(times) / len(self.runs), self._mean(iter(times)))
            for key, times in seconds_by_step.items()
        ]
        return sorted(steps, key=lambda step: -step.seconds)

    @property
    def types(self) -> Sequence[tuple[str, str, int, float]]:
        """The operators and the step's name, the number of such steps, and their seconds."""
        totals: dict[tuple[str, str], list[float]] = {}
        for step in self.steps:
            if step.step:
                totals.setdefault((step.types, step.step), []).append(step.seconds)
        rows = [(*key, len(times), sum(times)) for key, times in totals.items()]
        return sorted(rows, key=lambda total: -total[3])

    @property
    def other_seconds(self) -> dict[str, float]:
        """The seconds outside of devices' segments: `checking inputs`, `copying`, `runtime`.

        The last is the runtime's own work, including control flow.
        """
        seconds_by_kind = {"checking inputs": 0.0, "copying": 0.0, "runtime": 0.0}
        for run in self.runs:
            for span in run.all_spans():
                if span.kind in (SpanKind.CHECK, SpanKind.COPY):
                    seconds_by_kind[span.kind.value] += span.own_seconds
                elif span.kind in (SpanKind.RUN, SpanKind.BODY) or _is_control(span):
                    seconds_by_kind["runtime"] += span.own_seconds
        return {name: seconds / len(self.runs) for name, seconds in seconds_by_kind.items()}

    def tables(self, most: int | None = None) -> Iterator[Table]:
        """Return the profile as tables.

        Args:
            most: the most steps to list; `None` for all.
        """
        whole = self.seconds
        yield Table(
            "Segments",
            ("segment", "device", "operations", "calls", "ms", "share", "of it waiting"),
            [
                (
                    self._short(s.name),
                    s.device,
                    str(s.operations),
                    _count(s.calls),
                    _ms(s.seconds),
                    _share(s.seconds, whole),
                    _ms(s.waiting) if s.waiting else "",
                )
                for s in self.segments
            ],
            ("operations", "calls", "ms", "share", "of it waiting"),
        )
        steps = self.steps
        shown = steps[:most]
        yield Table(
            "Steps" if len(shown) == len(steps) else f"Steps: {len(shown)} of {len(steps)}",
            ("operation", "operator", "step", "device", "in the file", "calls", "ms", "share"),
            [
                (
                    _operations(s) or f"(the rest of segment {self._short(s.segment)})",
                    s.types,
                    s.step,
                    s.device,
                    _origin(s),
                    _count(s.calls),
                    _ms(s.seconds),
                    _share(s.seconds, whole),
                )
                for s in shown
            ],
            ("calls", "ms", "share"),
        )
        if self.types:
            yield Table(
                "Operators",
                ("operator", "step", "steps", "ms", "share"),
                [
                    (types or "the engine's own", step, str(n), _ms(s), _share(s, whole))
                    for types, step, n, s in self.types
                ],
                ("steps", "ms", "share"),
            )
        yield Table(
            "Besides",
            ("", "ms", "share"),
            [(name, _ms(s), _share(s, whole)) for name, s in self.other_seconds.items()],
            ("ms", "share"),
        )

    def document(self) -> dict[str, object]:
        """Return the profile as JSON values; times are in milliseconds."""
        return {
            "model": self.placement.model.name,
            "runs": len(self.runs),
            "ms": self.seconds * 1e3,
            "run_ms": [run.seconds * 1e3 for run in self.runs],
            "segments": [
                {
                    "name": s.name,
                    "device": s.device,
                    "operations": s.operations,
                    "calls": s.calls,
                    "ms": s.seconds * 1e3,
                    "waiting_ms": s.waiting * 1e3,
                    "tells_steps": s.steps,
                }
                for s in self.segments
            ],
            "steps": [
                {
                    "operations": [operation.name for operation in s.operations],
                    "types": [operation.type for operation in s.operations],
                    "origins": [
                        {"type": o.type, "inputs": list(o.inputs), "outputs": list(o.outputs)}
                        for o in s.origins
                    ],
                    "step": s.step,
                    "segment": s.segment,
                    "device": s.device,
                    "calls": s.calls,
                    "ms": s.seconds * 1e3,
                }
                for s in self.steps
            ],
            "types": [
                {"types": types, "step": step, "steps": count, "ms": seconds * 1e3}
                for types, step, count, seconds in self.types
            ],
            "besides": {name: seconds * 1e3 for name, seconds in self.other_seconds.items()},
        }

    def trace(self) -> dict[str, object]:
        """Return the runs in Chrome's Trace Event format, which Perfetto also reads."""
        return trace(self.placement.model.name, self.runs)

    def write_trace(self, path: str | Path) -> None:
        """Write `trace` to a file; open it in ui.perfetto.dev or chrome://tracing.

        Raises:
            InputError: the file cannot be written.
        """
        write_user_file(path, [json.dumps(self.trace()).encode("ascii")])

    def __str__(self) -> str:
        return to_text(self._heading, self.tables())

    def _repr_html_(self) -> str:
        return to_html(self._heading, self.tables())

    @property
    def _heading(self) -> str:
        name = legible(self.placement.model.name)
        return f"{name}: {self.seconds * 1e3:.3f} ms a run, mean of {len(self.runs)}"

    def _short(self, segment: str) -> str:
        """Return a segment's name without the model's."""
        return legible(segment.removeprefix(f"{self.placement.model.name}."))

    def _mean(self, seconds: Iterator[float]) -> float:
        """Return the sum of seconds divided by the number of runs."""
        return sum(seconds) / len(self.runs)

    def _group_spans(self, kind: SpanKind, key: Callable[[Span], _Key]) -> dict[_Key, list[Span]]:
        spans_by_key: dict[_Key, list[Span]] = {}
        for run in self.runs:
            for span in run.all_spans():
                if span.kind is kind:
                    spans_by_key.setdefault(key(span), []).append(span)
        return spans_by_key


def _steps_in(span: Span, segment: Span | None = None) -> Iterator[tuple[Span, Span]]:
    """Return each segment and step of devices, after its segment."""
    if span.kind is SpanKind.SEGMENT:
        segment = span
    counts = span.kind in (SpanKind.SEGMENT, SpanKind.STEP) and not _is_control(span)
    if segment is not None and counts:
        yield segment, span
    for inner in span.inside:
        yield from _steps_in(inner, segment)


def _is_control(span: Span) -> bool:
    return span.kind is SpanKind.SEGMENT and span.device == RUNTIME


def _operations(step: StepTime) -> str:
    names = [legible(operation.name) for operation in step.operations]
    if len(names) > _MOST_NAMES:
        return f"{names[0]} … {names[-1]} ({len(names)})"
    return "+".join(names)


_MOST_NAMES = 4


def _origin(step: StepTime) -> str:
    """Return the first of the file's operators that a step computes."""
    if not step.origins:
        return ""
    first, count = step.origins[0], len(step.origins)
    more = f" +{count - 1}" if count > 1 else ""
    return legible(f"{first.type} {first.outputs[0] if first.outputs else ''}") + more


def _count(calls: float) -> str:
    return f"{calls:g}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _share(seconds: float, whole: float) -> str:
    return f"{100 * seconds / whole:.1f} %" if whole else ""
