"""The picture of a comparison: a bar for the time of each competitor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from crosschip.accuracy.error import UNIT
from crosschip.bench.timing import Timing
from crosschip.comparison.competitors import AUTO, MEASURED
from crosschip.comparison.results import Comparison, Measurement, error_text
from crosschip.drawing.chart import Axis, line, point_label
from crosschip.drawing.page import GRID, INK, LINE, MUTED, TRANSFER, page
from crosschip.drawing.raster import require_pillow_for_png, to_png
from crosschip.drawing.text import escape_text, shorten, text_element, width_of
from crosschip.ir import InputError
from crosschip.runtime.artifact.atomic_files import write_user_file

PNG = ".png"
_SUFFIXES = (".svg", PNG)

_WIDTH, _MARGIN, _TOP, _ROW, _BAR, _NOTE = 1000, 32, 142, 42, 22, 19
_SIZE, _SMALL, _TITLE = 13, 11.5, 22
_NOTE_LENGTH = 136
"""The maximum number of characters of a line below the chart."""

_LONGEST_LABEL, _TIME_WIDTH, _SPEED_WIDTH, _ERROR_WIDTH = 300, 84, 96, 84

_ENGINE, _DEVICE, _CHOICE = "#a9b4bf", "#8cc0ea", "#2e80c4"
"""The colours of engines, of crosschip's devices, and of what it selects or mixes."""

_LONGEST_BAR = 4.0
"""The factor to the fastest above which a bar is cut, so that it does not dwarf the others."""


def picture(comparison: Comparison, title: str = "") -> str:
    """Draw a comparison as SVG: the fastest first, those that did not run below.

    Args:
        comparison: the times and errors.
        title: the title; the name of the model if empty.
    """
    timed = comparison.timed
    labels = [shorten(each.label, _LONGEST_LABEL, _SIZE, bold=True) for each in timed]
    left = _MARGIN + 12 + max((width_of(text, _SIZE, bold=True) for text in labels), default=0)
    right = _WIDTH - _MARGIN - _SPEED_WIDTH - _ERROR_WIDTH - _TIME_WIDTH
    axis = Axis(0, _longest(timed), left, right)
    bottom = _TOP + _ROW * len(timed)
    elements = [*_heading(comparison, title), *_axis(axis, bottom), *_baseline(comparison, axis)]
    for index, (measurement, label) in enumerate(zip(timed, labels, strict=True)):
        elements += _row(comparison, measurement, label, axis, _TOP + _ROW * index)
    y = bottom + 58.0
    for note in _notes(comparison):
        for text in wrap(note, _NOTE_LENGTH, max_lines=2, placeholder=" …"):
            shown = shorten(text, _WIDTH - 2 * _MARGIN, _SMALL)
            elements.append(text_element(_MARGIN, y, shown, _SMALL, fill=MUTED, style="quiet"))
            y += _NOTE
    return page(_WIDTH, y + 6, elements)


def check_picture_file(path: Path) -> None:
    """Check that a picture can be written to a file of this name.

    Raises:
        InputError: its suffix is neither `.svg` nor `.png`, or it is `.png` and Pillow is missing.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"{path}: pictures are {' or '.join(_SUFFIXES)} files")
    if path.suffix.lower() == PNG:
        require_pillow_for_png()


def write_picture(path: Path, svg: str) -> None:
    """Write a picture to a file, in the format of its suffix.

    Raises:
        InputError: as for `check_picture_file`, or the file cannot be written.
    """
    check_picture_file(path)
    content = to_png(svg) if path.suffix.lower() == PNG else svg.encode()
    write_user_file(path, [content])


def _longest(timed: Sequence[Measurement]) -> float:
    """Return the time at the end of the axis, in milliseconds; 1 without bars."""
    if not timed:
        return 1.0
    medians = [each.timing.median_ms for each in timed if each.timing]
    spreads = [each.timing.p75_ms for each in timed if each.timing]
    drawn = [median for median in medians if median <= _LONGEST_BAR * min(medians)]
    longest = max(drawn)
    cut = 1.25 if len(drawn) < len(medians) else 1.0
    return max([longest, *(spread for spread in spreads if spread <= 1.2 * longest)]) * cut


def _heading(comparison: Comparison, title: str) -> Iterator[str]:
    """Yield the title, what was run where, and the colours."""
    width = _WIDTH - 2 * _MARGIN
    text = shorten(title or comparison.model, width, _TITLE, bold=True)
    yield text_element(_MARGIN, 42, text, _TITLE, fill=INK, bold=True, style="ink")
    shapes = ", ".join(
        f"{name} {'×'.join(map(str, shape)) or 'scalar'}"
        for name, shape in comparison.inputs.items()
    )
    machine = ", ".join(f"{name} {what}".strip() for name, what in comparison.machine.items())
    for y, line_text in ((64, shapes), (83, machine)):
        shown = shorten(line_text, width, _SMALL)
        yield text_element(_MARGIN, y, shown, _SMALL, fill=MUTED, style="quiet")
    left = float(_MARGIN)
    used = {_colour(each) for each in comparison.timed}
    for colour, meaning in (
        (_ENGINE, "engine itself, on the same file"),
        (_DEVICE, "crosschip on one device"),
        (_CHOICE, "crosschip, by measurement or mixed"),
    ):
        if colour in used:
            yield _rectangle(left, 98, 12, 12, colour)
            yield text_element(left + 18, 108, meaning, _SMALL, fill=INK, style="ink")
            left += 18 + width_of(meaning, _SMALL) + 12


def _colour(measurement: Measurement) -> str:
    if measurement.engine:
        return _ENGINE
    chosen = measurement.name in (AUTO, MEASURED) or len(measurement.devices) > 1
    return _CHOICE if chosen else _DEVICE


def _axis(axis: Axis, bottom: float) -> Iterator[str]:
    """Yield the grid, the ticks, and the titles of the axis and of the columns."""
    for position, label in axis.ticks():
        yield line(position, _TOP - 4, position, bottom, GRID, style="grid")
        yield _quiet(position, bottom + 17, label, "middle")
    yield line(axis.start, _TOP - 4, axis.start, bottom, LINE)
    yield _quiet(axis.end + _TIME_WIDTH, bottom + 17, "ms a run", "end")
    yield _quiet(_WIDTH - _MARGIN - _ERROR_WIDTH, _TOP - 10, "times as fast", "end")
    yield _quiet(_WIDTH - _MARGIN, _TOP - 10, "error", "end")


def _quiet(x: float, y: float, text: str, anchor: str) -> str:
    return text_element(x, y, text, _SMALL, anchor=anchor, fill=MUTED, style="quiet")


def _baseline(comparison: Comparison, axis: Axis) -> Iterator[str]:
    """Yield the line of the fastest engine through all bars."""
    baseline = comparison.baseline
    if baseline is None or baseline.timing is None or not baseline.engine:
        return
    x, bottom = axis.at(baseline.timing.median_ms), _TOP + _ROW * len(comparison.timed)
    yield line(x, _TOP - 4, x, bottom + 22, TRANSFER, dashes="4 4", style="transfer")
    text = "fastest engine"
    half = width_of(text, _SMALL) / 2
    middle = min(max(x, _MARGIN + half), axis.end)
    yield text_element(
        middle, bottom + 35, text, _SMALL, anchor="middle", fill=TRANSFER, style="hot"
    )


def _row(
    comparison: Comparison, measurement: Measurement, label: str, axis: Axis, top: float
) -> Iterator[str]:
    """Yield the name, the bar with its spread, and the numbers of a competitor."""
    timing, speed = measurement.timing, comparison.speed(measurement)
    assert timing is not None, "only those that ran are drawn"
    assert speed is not None, "one of them is the baseline"
    middle = top + _ROW / 2
    chosen = ", ".join(measurement.devices) if _colour(measurement) == _CHOICE else ""
    yield f"<g><title>{escape_text(_tooltip(measurement, timing))}</title>"
    yield text_element(
        axis.start - 12,
        middle - 3 if chosen else middle + 4.5,
        label,
        _SIZE,
        anchor="end",
        fill=INK,
        bold=True,
        style="ink",
    )
    if chosen:
        text = shorten(f"runs on {chosen}", axis.start - 12 - _MARGIN, _SMALL)
        yield _quiet(axis.start - 12, middle + 12, text, "end")
    end = axis.at(timing.median_ms)
    bar_top = middle - _BAR / 2
    yield _rectangle(axis.start, bar_top, max(end - axis.start, 1), _BAR, _colour(measurement))
    if timing.median_ms > axis.high:
        for x in (end - 26, end - 20):
            yield line(x, middle + 15, x + 8, middle - 15, "#ffffff", style="halo", width=2.5)
        spread = end
    else:
        spread = axis.at(timing.p75_ms)
        yield from _whisker(axis.at(timing.p25_ms), spread, middle)
    time = f"{_three_digits(timing.median_ms)} ms"
    yield point_label(spread + 8, middle + 4.5, time, INK, "ink", bold=True, size=_SIZE)
    numbers = (
        (_WIDTH - _MARGIN - _ERROR_WIDTH, f"{speed:.2f}×"),
        (_WIDTH - _MARGIN, error_text(measurement.error)),
    )
    for x, text in numbers:
        yield text_element(x, middle + 4.5, text, _SIZE, anchor="end", fill=INK, style="ink")
    yield "</g>"


def _whisker(start: float, end: float, y: float) -> Iterator[str]:
    """Yield the line of a spread, with caps at its ends."""
    yield line(start, y, end, y, INK, style="ring")
    for x in (start, end):
        yield line(x, y - 4, x, y + 4, INK, style="ring")


def _rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:g}" rx="2" '
        f'fill="{colour}"/>'
    )


def _tooltip(measurement: Measurement, timing: Timing) -> str:
    return (
        f"{measurement.label}: median {timing.median_ms:.3f} ms, quartiles {timing.p25_ms:.3f} and "
        f"{timing.p75_ms:.3f} ms, best {timing.best_ms:.3f} ms; "
        f"error {error_text(measurement.error)}, "
        f"largest difference {error_text(measurement.largest_difference)}"
    )


def _three_digits(number: float) -> str:
    """Return a number with three digits, or all before the point."""
    return (
        f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f}"
        if number >= 1
        else (f"{number:.3f}")
    )


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield how it was measured, and the competitors that did not run."""
    threads = f"{comparison.threads} threads" if comparison.threads else "all threads"
    arithmetic = (
        "" if comparison.precision == "float32" else f"; crosschip in {comparison.precision}"
    )
    yield (
        f"Bars are medians of {comparison.runs} runs in turns, lines reach from the lower to the "
        f"upper quartile; {threads}{arithmetic}."
    )
    if comparison.exact:
        yield f"Error against {comparison.exact}: {UNIT}; 0 if rounding explains it."
    for measurement in comparison.failed:
        label = shorten(measurement.label, _LONGEST_LABEL, _SMALL)
        yield f"{label} did not run: {measurement.short_reason}"
