"""Runs in Chrome's Trace Event format, which Perfetto also reads.

The runtime and each device have a track. A segment is in its device's track, with the engine's
steps nested in it. Steps without a start time are laid out consecutively from the start of their
segment, and marked so in `args`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosschip.runtime.control import RUNTIME
from crosschip.runtime.profiling.spans import Span, SpanKind

_PROCESS = 1


def trace(name: str, runs: Sequence[Span]) -> dict[str, object]:
    """Return the trace; times are in microseconds from the start of the first run.

    Args:
        name: the name of the model.
        runs: the spans of the runs.
    """
    devices = {span.device for run in runs for span in run.all_spans() if span.device}
    tracks = {
        device: number for number, device in enumerate([RUNTIME, *sorted(devices - {RUNTIME})], 1)
    }
    zero = min((run.start or 0.0 for run in runs), default=0.0)
    named = [_metadata_event("process_name", 0, f"crosschip {name}")]
    named += [_metadata_event("thread_name", number, device) for device, number in tracks.items()]
    events = [event for run in runs for event in _events(run, tracks, RUNTIME, zero, zero)]
    return {"traceEvents": named + events, "displayTimeUnit": "ms"}


def _metadata_event(what: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _events(
    span: Span, tracks: Mapping[str, int], track: str, start: float, zero: float
) -> Iterator[dict[str, Any]]:
    """Return the events of a span and of its nested spans.

    Args:
        span: the span.
        tracks: the numbers of the tracks, by name.
        track: the track of the enclosing span.
        start: the start time of a span without one.
        zero: the start of the trace.
    """
    track = span.device or (RUNTIME if span.kind is SpanKind.BODY else track)
    start = start if span.start is None else span.start
    yield {
        "ph": "X",
        "name": _name(span),
        "cat": span.kind.value,
        "pid": _PROCESS,
        "tid": tracks[track],
        "ts": _microseconds(start - zero),
        "dur": _microseconds(span.seconds),
        "args": _event_arguments(span),
    }
    for inner in span.inside:
        yield from _events(inner, tracks, track, start, zero)
        if inner.start is None:
            start += inner.seconds


def _name(span: Span) -> str:
    """Return the label of a span: of a step, the operators that it computes, if any."""
    if span.kind is SpanKind.STEP:
        return "+".join(dict.fromkeys(o.type for o in span.operations)) or span.name
    if span.kind is SpanKind.SEGMENT:
        return f"segment {span.name.rpartition('.')[2]}"
    return span.name or span.kind.value


def _event_arguments(span: Span) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if span.kind is SpanKind.STEP:
        arguments["step"] = span.name
        arguments["operations"] = [operation.name for operation in span.operations]

        arguments["in the file"] = [
            f"{o.type}:{','.join(o.outputs)}" for op in span.operations for o in op.origins
        ]
        if span.start is None:
            arguments["start"] = "not reported by the engine"
    elif span.kind is SpanKind.SEGMENT:
        arguments["segment"] = span.name
        arguments["operations"] = len(span.operations)
    return arguments


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
