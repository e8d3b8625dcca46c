"""The chart of the errors along a model."""

from __future__ import annotations

import math
from collections.abc import Iterator

from crosschip.accuracy.error import UNIT
from crosschip.bisect.report import Report, format_error
from crosschip.drawing.chart import SIZE, Axis, LabelPlacer, Rectangle, axes, line, point_label
from crosschip.drawing.page import INK, page
from crosschip.drawing.text import escape_text, shorten, text_element, width_of
from crosschip.ir import Operation

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1080, 430, 88, 24, 74, 370
_RIGHT_COLOUR, _WRONG_COLOUR, _SUM_COLOUR = "#2e9e6b", "#d4404a", "#4f93c8"

_LEAST, _MOST = -9, 1
"""The exponents of ten at the ends of the vertical axis."""

_RADIUS, _LONGEST_NAME = 4.5, 220


def draw_errors(report: Report) -> str:
    """Return the chart of each operation's error, separate and cumulative, as SVG."""
    operations = report.model.operations
    x = Axis(0, max(1, len(operations)), _LEFT, _WIDTH - _RIGHT)
    y = Axis(_LEAST, _MOST, _BOTTOM, _TOP, logarithmic=True, least="≤ 1e-9", most="≥ 10, none")
    elements = [
        *_legend(),
        *axes(x, y, "operation, by its position in the model", f"error: {UNIT}"),
        *_sums(report, x, y),
        *_points(report, x, y),
    ]
    return page(_WIDTH, _HEIGHT, elements)


def _legend() -> Iterator[str]:
    left = float(_LEFT)
    for colour, text in (
        (_RIGHT_COLOUR, "right on right inputs"),
        (_WRONG_COLOUR, "wrong on right inputs"),
        (_SUM_COLOUR, "line: after all operations before it on the device"),
    ):
        yield f'<rect x="{left:g}" y="16" width="10" height="10" rx="5" fill="{colour}"/>'
        yield text_element(left + 16, 25, text, SIZE, fill=INK, style="ink")
        left += 16 + width_of(text, SIZE) + 24


def _sums(report: Report, x: Axis, y: Axis) -> Iterator[str]:
    points = [
        (x.at(index + 0.5), y.at(report.sums[operation]))
        for index, operation in enumerate(report.model.operations)
        if operation in report.sums
    ]
    if points:
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        yield (f'<polyline points="{path}" fill="none" stroke="{_SUM_COLOUR}" stroke-width="1.5"/>')


def _points(report: Report, x: Axis, y: Axis) -> Iterator[str]:
    """Yield a point for each operation whose error is known, with names where it is wrong."""
    wrong = {o: each.error for each in report.failing_operators for o in each.operations}
    positions = {
        operation: (x.at(index + 0.5), y.at(math.inf if wrong[operation] is None else error))
        for index, operation in enumerate(report.model.operations)
        if operation in wrong
        for error in (wrong[operation] or 0.0,)
    }
    for index, operation in enumerate(report.model.operations):
        if operation in report.own and operation not in wrong:
            error = report.own[operation].error
            yield _point(operation, error, x.at(index + 0.5), y.at(error), _RIGHT_COLOUR, 2.5)
    area = Rectangle(_LEFT, _TOP - _RADIUS, _WIDTH, _BOTTOM)
    placer = LabelPlacer(area, list(positions.values()), _RADIUS)
    for operation, (left, top) in positions.items():
        yield line(left, top, left, y.start, _WRONG_COLOUR, dashes="2 2")
        yield _point(operation, wrong[operation], left, top, _WRONG_COLOUR, _RADIUS)
        name = shorten(f"{operation.type} {operation.name}", _LONGEST_NAME, SIZE)
        label = placer.place(left, top, name, SIZE)
        if label is not None:
            yield point_label(*label, name, _WRONG_COLOUR, "hot", bold=False)


def _point(
    operation: Operation, error: float | None, x: float, y: float, colour: str, radius: float
) -> str:
    value = "no result" if error is None else format_error(error)
    title = f"{operation.type} {operation.name}: {value}"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}">'
        f"<title>{escape_text(title)}</title></circle>"
    )
