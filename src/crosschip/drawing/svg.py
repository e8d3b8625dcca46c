"""The drawing of a model as an SVG picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crosschip.drawing.builder import graph_of
from crosschip.drawing.dot import colours_of
from crosschip.drawing.graph import Detail, Graph, Labels, Row, count_text
from crosschip.drawing.layout import (
    HEADING,
    HEIGHT,
    PADDING,
    ROW,
    SIZE,
    SMALL,
    WIDTH,
    Box,
    Layout,
    Route,
    arrange,
    row_texts,
    segment_text,
)
from crosschip.drawing.page import INK, LINE, MUTED, TRANSFER, page
from crosschip.drawing.text import escape_text, shorten, text_element, width_of
from crosschip.ir.bodies import walk_operations
from crosschip.ir.model import Model

_DETAILS = (
    Detail(),
    Detail(depth=1),
    Detail(depth=1, shapes=False),
    *(Detail(most, 1, shapes=False) for most in (4, 6, 8, 12, 16, 24, 32)),
    *(Detail(most << power, 0, shapes=False) for power in range(3, 16) for most in (2, 3)),
)
"""The details of pictures, in the order in which they are tried."""

_MARGIN, _LEGEND_ROW = 20, 22


def to_svg(
    model: Model, labels: Labels | None = None, colours: Mapping[str, str] | None = None
) -> str:
    """Return a model as an SVG picture: inputs at the top, each operation below its operands.

    Chains of operations are boxes with a row for each. Blocks that are repeated are drawn once, in
    a frame with their number. If the picture would be too large for a screen,
    boxes summarize stretches of operations, with the number of each operator.

    Args:
        model: the model.
        labels: groups, such as devices, segments and remarks; each group gets another colour.
        colours: the colour of each group; chosen if left out.
    """
    labels = labels or Labels()
    layout, detail = _most_detailed_layout(model, labels)
    counts = Counter(labels.group(operation) for operation in walk_operations(model))
    counts.pop("", None)
    colours = colours or colours_of(counts)
    legend = list(_legend(model, labels, {g: c for g, c in colours.items() if counts[g]}, detail))
    if any(route.transfer for route in _all_routes(layout)):
        legend.append(
            _LegendItem(TRANSFER, "a value that goes from one device to another", line=True)
        )
    width = max([layout.width, *(item.width for item in legend)]) + 2 * _MARGIN
    top = _MARGIN + _LEGEND_ROW * len(legend) + _MARGIN / 2
    elements = [item.drawn(_MARGIN + _LEGEND_ROW * i) for i, item in enumerate(legend)]
    elements += _Drawing(colours).layout(layout, (width - layout.width) / 2, top)
    return page(width, top + layout.height + _MARGIN, elements)


def _most_detailed_layout(model: Model, labels: Labels) -> tuple[Layout, Detail]:
    """Return the most detailed layout that fits."""
    layout = None
    for detail in _DETAILS:
        graph = graph_of(model, labels, detail)
        if detail is not _DETAILS[-1] and _least_area(graph) > _FILLED * WIDTH * HEIGHT:
            continue
        layout = arrange(graph)
        if layout.width <= WIDTH and layout.height <= HEIGHT:
            break
    assert layout is not None, "the last one is always laid out"
    return layout, detail


def _least_area(graph: Graph) -> float:
    """Return a lower bound of the area that a graph takes in a layout, in square pixels."""
    return sum(
        _LEAST_WIDTH * ROW * (len(node.rows) + 2) + sum(map(_least_area, node.frames))
        for node in graph.nodes
        if node.port is None
    )


_LEAST_WIDTH, _FILLED = 130, 0.5
"""The minimum width of a box with its gap, and the maximum share of a page that boxes fill."""


def _all_routes(layout: Layout) -> Iterator[Route]:
    yield from layout.routes
    for box in layout.boxes:
        for _, _, inner in box.inner:
            yield from _all_routes(inner)


@dataclass(frozen=True, slots=True)
class _LegendItem:
    """A line of the legend: a text after a swatch, a line, or nothing."""

    colour: str
    text: str
    line: bool = False
    bold: bool = False

    @property
    def _indent(self) -> float:
        return 26 if self.colour else 0

    @property
    def width(self) -> float:
        return self._indent + width_of(self.text, 13, bold=self.bold)

    def drawn(self, top: float) -> str:
        text = text_element(
            _MARGIN + self._indent, top + 13, self.text, 13, fill=INK, bold=self.bold, style="ink"
        )
        if self.line:
            y = top + 9
            path = f"M{_MARGIN} {y:.1f}h18"
            return (
                f'<path class="transfer" d="{path}" stroke="{TRANSFER}" stroke-width="2.5"/>{text}'
            )
        if self.colour:
            return (
                f'<rect x="{_MARGIN}" y="{top:.1f}" width="18" height="16" rx="4" '
                f'fill="{self.colour}" stroke="{_darker(self.colour)}"/>{text}'
            )
        return text


_LEGEND_WIDTH = 560


def _legend(
    model: Model, labels: Labels, colours: Mapping[str, str], detail: Detail
) -> Iterator[_LegendItem]:
    operations = list(walk_operations(model))
    segments = len({labels.segments[o] for o in operations if o in labels.segments})
    total = count_text(len(operations), "operation")
    total += f" in {count_text(segments, 'segment')}" if segments else ""
    yield _LegendItem("", shorten(model.name, _LEGEND_WIDTH, 13), bold=True)
    yield _LegendItem("", total)
    for group, colour in colours.items():
        members = [operation for operation in operations if labels.group(operation) == group]
        numbers = dict.fromkeys(labels.segments[o] for o in members if o in labels.segments)
        text = f": {count_text(len(members), 'operation')}"
        text += f" in {_listed(list(numbers))}" if numbers else ""
        yield _LegendItem(colour, shorten(group, _LEGEND_WIDTH / 2, 13) + text)
    if detail.most > 1:
        yield _LegendItem("", f"a box summarizes up to {detail.most} operations")


def _listed(numbers: Sequence[str]) -> str:
    """Return the numbers of segments, or how many they are if they are many or in bodies."""
    if len(numbers) > _MOST_SEGMENTS or not all(number.isdigit() for number in numbers):
        return count_text(len(numbers), "segment")
    return f"segment{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


_MOST_SEGMENTS = 8


def _darker(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"#{red * 11 // 20:02x}{green * 11 // 20:02x}{blue * 11 // 20:02x}"


class _Drawing:
    """The elements of boxes and lines."""

    def __init__(self, colours: Mapping[str, str]) -> None:
        self._colours = colours

    def layout(self, layout: Layout, x: float, y: float) -> Iterator[str]:
        """Yield the elements of a layout whose upper left corner is at a position."""
        for route in layout.routes:
            yield _path(route, x, y)
        for box in layout.boxes:
            if box.node.port is None:
                yield from self._box(box, x + box.x, y + box.y)

    def _box(self, box: Box, x: float, y: float) -> Iterator[str]:
        node = box.node
        if node.frames:
            yield from self._frame(box, x, y)
        elif node.rows:
            yield from self._rows(box, x, y)
        else:
            yield (
                f"<g><title>{escape_text(node.title)}</title>"
                f'<rect class="pill" x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" '
                f'height="{box.height:.1f}" rx="{box.height / 2:g}" fill="#ffffff" '
                f'stroke="{LINE}"/>' + _heading(box, x + box.width / 2, y + 15, "middle") + "</g>"
            )
        for line, (text, centre) in box.labels.items():
            label = text_element(
                x + centre,
                y + box.height + 11.5,
                text,
                SMALL,
                anchor="middle",
                fill=MUTED,
                style="quiet",
            )
            yield f"<g><title>{escape_text(line.title)}</title>{label}</g>"

    def _rows(self, box: Box, x: float, y: float) -> Iterator[str]:
        for index, row in enumerate(box.node.rows):
            yield from self._row(row, box, x, y + ROW * index)
        yield (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" '
            f'height="{ROW * len(box.node.rows):.1f}" fill="none" stroke="#3d4a57"/>'
        )

    def _row(self, row: Row, box: Box, x: float, y: float) -> Iterator[str]:
        colour = self._colours.get(row.group, "#ffffff")
        label, detail = row_texts(row)
        yield (
            f'<g class="operations" data-count="{len(row.operations)}">'
            f"<title>{escape_text(row.title)}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{ROW}" '
            f'fill="{colour}"/>'
        )
        if row.segment:
            width = box.strip
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{ROW}" '
                f'fill="{_darker(colour)}"/>'
            )
            middle = x + width / 2
            yield text_element(
                middle, y + 13, segment_text(row), SMALL, anchor="middle", fill="#ffffff", bold=True
            )
        yield text_element(x + box.strip + PADDING, y + 13, label, SIZE, fill="#111820")
        if detail:
            right = x + box.width - PADDING
            yield text_element(right, y + 12.5, detail, SMALL, anchor="end", fill="#38434f")
        yield "</g>"

    def _frame(self, box: Box, x: float, y: float) -> Iterator[str]:
        yield (
            f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" '
            f'height="{box.height:.1f}" rx="6" fill="#f6f8fa" stroke="{LINE}" '
            f'stroke-dasharray="5 3"/>'
        )
        for left, top, inner in box.inner:
            if inner.heading:
                at = x + left, y + top - 5
                yield text_element(*at, inner.heading, SIZE, fill=INK, bold=True, style="ink")
            yield from self.layout(inner, x + left, y + top)
            yield from _ends(box, left, top, inner, x, y)
        if box.node.heading:
            yield (
                f"<g><title>{escape_text(box.node.title)}</title>"
                f'<rect class="heading" x="{x + 1:.1f}" y="{y + 1:.1f}" '
                f'width="{box.width - 2:.1f}" height="{ROW + 2}" rx="5" fill="#e3e9ef"/>'
                + _heading(box, x + PADDING, y + 15, "start")
                + "</g>"
            )
        yield from self._rows(box, x, y) if box.node.rows else ()


def _heading(box: Box, x: float, y: float, anchor: str) -> str:
    text = shorten(box.node.heading, HEADING, SIZE)
    return text_element(x, y, text, SIZE, anchor=anchor, fill=INK, bold=True, style="ink")


def _ends(box: Box, left: float, top: float, inner: Layout, x: float, y: float) -> Iterator[str]:
    """Yield the lines from the upper end of a frame into it, and from inside to its labels."""
    for end in inner.boxes:
        inside = x + left + end.x, y + top + end.y
        if end.node.port is None:
            continue
        if not end.node.is_sink:
            yield _path(Route(((inside[0], y), inside), False, False), 0, 0)
        for line, (_, centre) in box.labels.items():
            if end.node.is_sink and end.node.port in line.values:
                outside = x + centre, y + box.height
                yield _path(Route((inside, outside), False, False), 0, 0)


def _path(route: Route, x: float, y: float) -> str:
    points = [(left + x, top + y) for left, top in route.points]
    colour, width = (TRANSFER, 2.5) if route.transfer else (LINE, 1.2)
    style = "transfer" if route.transfer else "line"
    if len(points) == 2:
        (x0, y0), (x1, y1) = points
        y1 -= 4 if route.arrow else 0
        bend = (y1 - y0) / 2
        path = f"M{x0:.1f} {y0:.1f}"
        path += (
            f"V{y1:.1f}"
            if abs(x0 - x1) < 0.5
            else f"C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
        )
        head = f"M{x1 - 3:.1f} {y1 - 2:.1f}l3 5l3 -5" if route.arrow else ""
        path += head
    else:
        path = "M" + "L".join(f"{left:.1f} {top:.1f}" for left, top in points)
    return (
        f'<path class="{style}" d="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
        f'stroke-linejoin="round"/>'
    )
