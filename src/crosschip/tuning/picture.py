"""The picture of a search: the error of each variant against its speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from crosschip.accuracy.error import UNIT
from crosschip.tuning.search import Trial
from crosschip.tuning.variants import FLOAT32, INT4, INT8

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 900, 460, 70, 30, 40, 60
_COLOURS = {
    FLOAT32: "#555555",
    "bfloat16": "#0072b2",
    "float16": "#009e73",
    INT8: "#d55e00",
    INT4: "#cc79a7",
}
_ROW = 14
"""The height of a line of text, in pixels."""


def picture(trials: Sequence[Trial], chosen: Trial, accuracy: float, title: str) -> str:
    """Draw the timed trials as SVG, with errors on a logarithmic axis; exact ones at its left end.

    Args:
        trials: all trials.
        chosen: the trial to mark.
        accuracy: the allowed error, drawn as a line.
        title: the title.
    """
    shown = [(trial, *values) for trial in trials if (values := _values(trial))]
    scale = _Scale([error for _, error, _ in shown], [speed for _, _, speed in shown], accuracy)
    rows = _label_heights([(scale.x(error), scale.y(speed)) for _, error, speed in shown])
    points = [
        _point(trial, scale.x(error), scale.y(speed), row, trial is chosen)
        for (trial, error, speed), row in zip(shown, rows, strict=True)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
            f'font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
            *scale.lines(),
            *points,
            "</svg>\n",
        ]
    )


def _values(trial: Trial) -> tuple[float, float] | None:
    if trial.error is None or trial.speed is None or not math.isfinite(trial.error):
        return None
    return trial.error, trial.speed


class _Scale:
    """The mapping of errors and speeds to pixels."""

    def __init__(self, errors: Sequence[float], speeds: Sequence[float], accuracy: float) -> None:
        values = [error for error in (*errors, accuracy) if error > 0] or [1.0]
        self._least = math.floor(math.log10(min(values))) - 1
        self._most = math.ceil(math.log10(max(values)) + 1e-9)
        self._speed = max(1.2, *speeds) * 1.1 if speeds else 1.2
        self._accuracy = accuracy

    def x(self, error: float) -> float:
        """Return the horizontal position of an error."""
        power = self._least if error <= 0 else max(self._least, math.log10(error))
        share = (power - self._least) / (self._most - self._least)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, speed: float) -> float:
        """Return the vertical position of a speed."""
        return _HEIGHT - _BOTTOM - speed / self._speed * (_HEIGHT - _TOP - _BOTTOM)

    def lines(self) -> list[str]:
        """Return the axes, and the line of the allowed error."""
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        drawn = [_line(_LEFT, bottom, right, bottom), _line(_LEFT, _TOP, _LEFT, bottom)]
        for power in range(self._least, self._most + 1):
            x = self.x(10.0**power)
            label = "exact" if power == self._least else f"1e{power}"
            drawn.append(_text(x, bottom + 18, label, "middle"))
        for step in range(int(self._speed) + 1):
            y = self.y(step)
            drawn += [_line(_LEFT, y, right, y, "#dddddd"), _text(_LEFT - 8, y + 4, step, "end")]
        x = self.x(self._accuracy)
        drawn += [
            _line(x, _TOP, x, bottom, "#cc3311", dashed=True),
            _text(x + 4, _TOP + 10, f"allowed: {self._accuracy:g}"),
            _text((_LEFT + right) / 2, _HEIGHT - 14, f"error: {UNIT}", "middle"),
            _text(_LEFT, _TOP - 6, "times as fast as float32"),
        ]
        return drawn


def _label_heights(points: Sequence[tuple[float, float]]) -> list[float]:
    """Return the vertical position of each point's label, so that labels do not overlap."""
    occupied: list[tuple[float, float]] = []
    rows = []
    for x, y in points:
        row = y + 4
        while any(abs(row - other) < _ROW and abs(x - at) < _WIDTH / 3 for at, other in occupied):
            row += _ROW
        occupied.append((x, row))
        rows.append(row)
    return rows


def _point(trial: Trial, x: float, y: float, row: float, chosen: bool) -> str:
    colour = _COLOURS.get(trial.variant.precision, "#000000")
    ring = ' stroke="black" stroke-width="2"' if chosen else ""
    weight = ' font-weight="bold"' if chosen else ""
    left = x > _WIDTH * 2 / 3
    label = (
        f'<text x="{x - 9 if left else x + 9:.1f}" y="{row:.1f}"{weight} '
        f'text-anchor="{"end" if left else "start"}">{escape(trial.variant.name)}</text>'
    )
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"{ring}/>{label}'


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str = "#333333", *, dashed: bool = False
) -> str:
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashes}/>'
    )


def _text(x: float, y: float, text: object, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(str(text))}</text>'
