"""The picture of a search: the error of each variant against its speed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from crosschip.accuracy.error import UNIT
from crosschip.drawing.chart import Axis, LabelPlacer, Rectangle, axes, line, point_label
from crosschip.drawing.page import INK, LINE, MUTED, TRANSFER, page
from crosschip.drawing.text import escape_text, shorten, text_element, width_of
from crosschip.tuning.search import Trial
from crosschip.tuning.variants import FLOAT32, INT4, INT8

_WIDTH, _BOTTOM, _LEFT, _RIGHT, _TOP = 960, 460, 64, 40, 84
_COLOURS = {
    FLOAT32: "#7a8794",
    "bfloat16": "#0072b2",
    "float16": "#009e73",
    INT8: "#d55e00",
    INT4: "#cc79a7",
}
_SIZE, _RADIUS, _ROW = 12, 5, 20

_LARGEST = 300
"""The largest exponent of ten on the axis of errors."""

_COLUMNS = (64, 92, 560, 690, 820)
"""The positions of a row's number, swatch and name, and the right ends of its numbers."""


def picture(trials: Sequence[Trial], chosen: Trial, accuracy: float, title: str) -> str:
    """Draw the timed trials as SVG, with errors on a logarithmic axis; exact ones at its left end.

    A point's number is that of its row in the table below, where the fastest is first.

    Args:
        trials: all trials.
        chosen: the trial to mark.
        accuracy: the allowed error, drawn as a line.
        title: the title.
    """
    timed = [trial for trial in trials if _values(trial)]
    timed.sort(key=lambda trial: _values(trial)[::-1], reverse=True)
    height = _BOTTOM + 80 + _ROW * (len(timed) + 2)
    x, y = _axes_of(timed, accuracy)
    elements = [
        text_element(
            24, 30, shorten(title, _WIDTH - 48, 16, bold=True), 16, fill=INK, bold=True, style="ink"
        ),
        *_legend(timed),
        *axes(x, y, f"error: {UNIT}", "times as fast as float32"),
        *_bound(x, y, accuracy),
        *_points(timed, chosen, x, y),
        *_table(timed, chosen, len(trials) - len(timed)),
    ]
    return page(_WIDTH, height, elements)


def _values(trial: Trial) -> tuple[float, float] | tuple[()]:
    """Return the error and the speed of a trial that is drawn; nothing for others."""
    if trial.error is None or trial.speed is None or not math.isfinite(trial.error):
        return ()
    return trial.error, trial.speed


def _axes_of(timed: Sequence[Trial], accuracy: float) -> tuple[Axis, Axis]:
    errors = [error for error in (*(trial.error for trial in timed), accuracy) if error]
    exponents = [math.log10(error) for error in errors if error > 0] or [0.0]
    low = max(-_LARGEST, math.floor(min(exponents))) - 1
    high = min(_LARGEST, max(low + 1, math.ceil(max(exponents) + 1e-9)))
    fastest = max([1.2, *(trial.speed or 0 for trial in timed)]) * 1.1
    return (
        Axis(low, high, _LEFT, _WIDTH - _RIGHT, logarithmic=True, least="exact"),
        Axis(0, fastest, _BOTTOM, _TOP),
    )


def _legend(timed: Sequence[Trial]) -> Iterator[str]:
    """Yield the colour of each precision, in a row below the title."""
    left = 24.0
    for precision in dict.fromkeys(trial.variant.precision for trial in timed):
        yield _swatch(left + 6, 52, precision)
        yield text_element(left + 18, 56, precision, _SIZE, fill=INK, style="ink")
        left += 18 + width_of(precision, _SIZE) + 20


def _swatch(x: float, y: float, precision: str) -> str:
    colour = _COLOURS.get(precision, "#000000")
    return f'<rect x="{x - 5:g}" y="{y - 5:g}" width="10" height="10" rx="5" fill="{colour}"/>'


def _bound(x: Axis, y: Axis, accuracy: float) -> Iterator[str]:
    """Yield the line of the allowed error; its label is above the chart."""
    at, text = x.at(accuracy), f"allowed: {accuracy:g}"
    yield line(at, y.start, at, y.end, TRANSFER, dashes="5 4", style="transfer")
    half = width_of(text, _SIZE) / 2
    middle = min(max(at, _LEFT + 190 + half), _WIDTH - half - 8)
    yield text_element(middle, y.end - 10, text, _SIZE, anchor="middle", fill=TRANSFER, style="hot")


def _points(timed: Sequence[Trial], chosen: Trial, x: Axis, y: Axis) -> Iterator[str]:
    positions = [(x.at(trial.error or 0), y.at(trial.speed or 0)) for trial in timed]
    placer = LabelPlacer(Rectangle(x.start, y.end, x.end + 30, y.start), positions, _RADIUS)
    for number, (trial, (left, top)) in enumerate(zip(timed, positions, strict=True), 1):
        colour = _COLOURS.get(trial.variant.precision, "#000000")
        ring = f' class="ring" stroke="{INK}" stroke-width="2.5"' if trial is chosen else ""
        yield (
            f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{_RADIUS}" fill="{colour}"{ring}>'
            f"<title>{escape_text(_tooltip(trial))}</title></circle>"
        )
        label = placer.place(left, top, str(number), _SIZE - 1)
        if label is not None:
            yield point_label(*label, str(number), INK, "ink", bold=trial is chosen)


def _tooltip(trial: Trial) -> str:
    return f"{trial.variant.name}: {trial.speed:.2f} times as fast, error {trial.error:.2g}"


def _table(timed: Sequence[Trial], chosen: Trial, others: int) -> Iterator[str]:
    """Yield a row for each point, and one for the number of trials without one."""
    number, name, speed, error, end = _COLUMNS
    top = _BOTTOM + 74.0
    for right, text in ((speed + 60, "speed"), (error + 40, "error")):
        yield text_element(right, top, text, _SIZE, anchor="end", fill=MUTED, style="quiet")
    yield text_element(name + 14, top, "variant", _SIZE, fill=MUTED, style="quiet")
    yield line(number - 24, top + 6, end, top + 6, LINE)
    for index, trial in enumerate(timed, 1):
        top += _ROW
        bold = trial is chosen
        text = shorten(trial.variant.name, speed - name - 40, _SIZE, bold=bold)
        cells = [
            (number, str(index), "end"),
            (name + 14, text, "start"),
            (speed + 60, f"{trial.speed:.2f}×", "end"),
            (error + 40, f"{trial.error:.1e}" if trial.error else "exact", "end"),
        ]
        cells += [(error + 60, "chosen", "start")] if bold else []
        yield f"<g><title>{escape_text(_tooltip(trial))}</title>"
        yield _swatch(name, top - 4, trial.variant.precision)
        for x, cell, anchor in cells:
            yield text_element(x, top, cell, _SIZE, anchor=anchor, fill=INK, bold=bold, style="ink")
        yield "</g>"
    if others:
        text = f"{others} more variants did not run, were too wrong, or were not timed"
        yield text_element(name + 14, top + _ROW, text, _SIZE, fill=MUTED, style="quiet")
