"""A run's time line as plain data, with the mean times of operations and segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from crosschip.ir import Operation
from crosschip.ir.text import legible
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.profiling.spans import Span, SpanKind

if TYPE_CHECKING:
    from crosschip.runtime.profiling.profile import Profile

_MOST_SPANS = 5_000
"""The maximum number of spans of a time line; the longest are shown."""


def timeline_data(
    profile: Profile,
    number_of: Callable[[Operation], int | None],
    segment_number: Mapping[str, int],
) -> dict[str, Any]:
    """Return a profile as JSON values; times are in seconds from the start of the run.

    Args:
        profile: the profile.
        number_of: returns the number of an operation; `None` for an unknown one.
        segment_number: the number of each segment by its name.
    """
    run = sorted(profile.runs, key=lambda each: each.seconds)[(len(profile.runs) - 1) // 2]
    spans = list(_flattened(run, RUNTIME, run.start or 0.0, 0))
    longest = sorted(spans, key=lambda item: -item[0].seconds)[:_MOST_SPANS]
    shown = {id(span) for span, *_ in longest}
    zero = run.start or 0.0
    return {
        "runs": len(profile.runs),
        "seconds": profile.seconds,
        "shown": run.seconds,
        "omitted": len(spans) - len(longest),
        "others": profile.other_seconds,
        "spans": [
            {
                "kind": span.kind.value,
                "name": legible(span.name),
                "track": legible(track),
                "start": start - zero,
                "seconds": span.seconds,
                "depth": depth,
                "reported": span.start is not None,
                "segment": segment_number.get(span.name, -1),
                "operations": _numbers(span, number_of),
            }
            for span, track, start, depth in spans
            if id(span) in shown
        ],
        "segments": [
            {
                "segment": segment_number.get(segment.name, -1),
                "seconds": segment.seconds,
                "waiting": segment.waiting,
                "calls": segment.calls,
            }
            for segment in profile.segments
        ],
        "steps": [
            {
                "name": legible(step.step),
                "seconds": step.seconds,
                "calls": step.calls,
                "operations": [n for o in step.operations if (n := number_of(o)) is not None],
            }
            for step in profile.steps
            if step.step and step.operations
        ],
    }


def _flattened(
    span: Span, track: str, start: float, depth: int
) -> Iterator[tuple[Span, str, float, int]]:
    """Yield a span and the nested ones, with the track, the start and the depth in the track.

    Steps without a start follow each other from the start of their segment.
    """
    inner_track = span.device or (RUNTIME if span.kind is SpanKind.BODY else track)
    depth = depth if inner_track == track else 0
    start = start if span.start is None else span.start
    yield span, inner_track, start, depth
    for inner in span.inside:
        yield from _flattened(inner, inner_track, start, depth + 1)
        if inner.start is None:
            start += inner.seconds


def _numbers(span: Span, number_of: Callable[[Operation], int | None]) -> list[int]:
    """Return the numbers of a step's operations; those of a segment are known by its number."""
    if span.kind is not SpanKind.STEP:
        return []
    return [number for o in span.operations if (number := number_of(o)) is not None]
