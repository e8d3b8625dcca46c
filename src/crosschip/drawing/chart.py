"""Charts: axes with ticks, grids, and labels that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosschip.drawing.page import GRID, INK, LINE, MUTED
from crosschip.drawing.text import text_element, width_of

SIZE = 12
"""The font size."""

_TICK_DISTANCE = 48
"""The least distance of two ticks, in pixels."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The mapping of values to pixels.

    Attributes:
        low: the value at `start`; its exponent of ten if the axis is logarithmic.
        high: the value at `end`; its exponent of ten if the axis is logarithmic.
        start: the position of `low`.
        end: the position of `high`.
        logarithmic: whether the axis is logarithmic.
        least: the label of the lowest tick, for all that is not above it.
        most: the label of the highest tick, for all that is not below it.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False
    least: str = ""
    most: str = ""

    def at(self, value: float) -> float:
        """Return the position of a value; one outside of the axis lies at its nearest end."""
        if self.logarithmic:
            value = math.log10(value) if value > 0 else -math.inf
        value = min(max(value, self.low), self.high) if not math.isnan(value) else self.high
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the position and the label of each tick."""
        most = max(1, int(abs(self.end - self.start) // _TICK_DISTANCE))
        if self.logarithmic:
            step = float(math.ceil((self.high - self.low) / most))
            value = float(self.low)
        else:
            step = _round_step((self.high - self.low) / most)
            value = math.ceil(self.low / step - 1e-9) * step
        while value <= self.high + step * 1e-6:
            label = f"{value:g}" if not self.logarithmic else f"1e{value:.0f}" if value else "1"
            ends = {self.low: self.least, self.high: self.most}
            yield (
                self.at(10.0**value if self.logarithmic else value),
                ends.get(value) or label,
            )
            value = round(value / step + 1) * step if not self.logarithmic else value + step


def _round_step(least: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)


def axes(x: Axis, y: Axis, x_title: str, y_title: str) -> Iterator[str]:
    """Yield the elements of two axes: grid, ticks, and titles below and above.

    Args:
        x: the horizontal axis.
        y: the vertical axis; it starts at the bottom.
        x_title: the title of the horizontal axis.
        y_title: the title of the vertical axis.
    """
    for position, label in y.ticks():
        yield line(x.start, position, x.end, position, GRID, style="grid")
        yield _tick(x.start - 8, position + 4, label, "end")
    for position, label in x.ticks():
        yield line(position, y.start, position, y.start + 5, LINE)
        yield _tick(position, y.start + 19, label, "middle")
    yield line(x.start, y.start, x.end, y.start, LINE)
    yield line(x.start, y.start, x.start, y.end, LINE)
    middle = (x.start + x.end) / 2
    yield text_element(middle, y.start + 40, x_title, SIZE, anchor="middle", fill=INK, style="ink")
    yield text_element(x.start, y.end - 10, y_title, SIZE, fill=INK, style="ink")


def _tick(x: float, y: float, label: str, anchor: str) -> str:
    return text_element(x, y, label, SIZE - 1, anchor=anchor, fill=MUTED, style="quiet")


def point_label(
    x: float,
    y: float,
    text: str,
    colour: str,
    style: str,
    *,
    bold: bool,
    size: float = SIZE - 1,
) -> str:
    """Return the label of a point, with a halo on the lines behind it."""
    label = text_element(x, y, text, size, fill=colour, bold=bold, style=f"{style} halo")
    halo = 'stroke="#ffffff" stroke-width="3" stroke-linejoin="round" paint-order="stroke"'
    return label.replace("<text ", f"<text {halo} ", 1)


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    colour: str,
    *,
    dashes: str = "",
    style: str = "",
    width: float = 1.0,
) -> str:
    """Return a straight line.

    Args:
        x1: the horizontal position of its beginning.
        y1: the vertical position of its beginning.
        x2: the horizontal position of its end.
        y2: the vertical position of its end.
        colour: the colour.
        dashes: the lengths of dashes and gaps.
        style: the CSS class.
        width: the width of the line.
    """
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    classed = f' class="{style}"' if style else ""
    wide = f' stroke-width="{width:g}"' if width != 1 else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}"{wide}{dashed}{classed}/>'
    )


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Rectangle) -> bool:
        """Return whether two rectangles have a point in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def contains(self, other: Rectangle) -> bool:
        """Return whether another rectangle lies within this one."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


class LabelPlacer:
    """The places of labels near points: within an area, and where nothing else lies."""

    def __init__(self, area: Rectangle, points: Sequence[tuple[float, float]], radius: float):
        """Begin with points that no label may cover.

        Args:
            area: the area of all labels.
            points: the centres of the points.
            radius: the radius of the points.
        """
        self._area, self._radius = area, radius
        self._occupied = [
            Rectangle(x - radius, y - radius, x + radius, y + radius) for x, y in points
        ]

    def place(self, x: float, y: float, text: str, size: float) -> tuple[float, float] | None:
        """Return the left end and the baseline of a point's label; `None` if there is no space."""
        width = width_of(text, size, bold=True)
        for distance in range(0, _FARTHEST, 6):
            away = self._radius + 2 + distance
            for right, down in _DIRECTIONS:
                left = x + right * away - (width if right < 0 else width / 2 if right == 0 else 0)
                middle = y + down * (away + size / 2)
                box = Rectangle(left, middle - size / 2, left + width, middle + size / 2)
                if not self._area.contains(box) or any(map(box.overlaps, self._occupied)):
                    continue
                self._occupied.append(box)
                return left, middle + size * 0.35
        return None


_FARTHEST = 90
_DIRECTIONS = ((1, 0), (-1, 0), (0, -1), (1, -1), (-1, -1), (1, 1), (-1, 1), (0, 1))
