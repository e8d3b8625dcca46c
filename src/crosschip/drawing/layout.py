"""The positions of boxes and lines: layers from top to bottom, in columns beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crosschip.drawing.graph import Edge, Graph, Line, Node, Row
from crosschip.drawing.layers import Link, Slot, place_layers
from crosschip.drawing.text import shorten, width_of
from crosschip.ir.model import Operand

ROW, SIZE, SMALL = 18, 11, 10
"""The height of a row, and the sizes of its text and of small text, in pixels."""

PADDING = 8
_LABEL, _DETAIL, _SEGMENT, HEADING = 200, 180, 70, 280
"""The maximum width in pixels of an operator's name, a type, and the heading of a frame."""

LINE_LABEL = 16
"""The height of the labels below a node."""

_GAP = 22
"""The height between two layers."""

_TRACK = 7
"""The distance of parallel lines between columns."""

WIDTH, HEIGHT = 1560, 2220
"""The largest size of a layout, if it is possible."""

_SCREEN, _MOST_COLUMNS = 1150, 8
"""The height of a screen, and the maximum number of columns."""


@dataclass(slots=True, eq=False)
class Box:
    """A node with its position.

    Attributes:
        node: the node.
        width: the width.
        height: the height, without the labels below.
        strip: the width of the strip with the number of the segment; 0 without one.
        labels: the text of each line's label, with the position of its centre.
        inner: the graphs in a frame, with their positions in it.
        x: the left end.
        y: the upper end.
    """

    node: Node
    width: float
    height: float
    strip: float = 0.0
    labels: dict[Line, tuple[str, float]] = field(default_factory=dict)
    inner: Sequence[tuple[float, float, Layout]] = ()
    x: float = 0.0
    y: float = 0.0

    @property
    def bottom(self) -> float:
        """The lower end, with the labels."""
        return self.height + (LINE_LABEL if any(text for text, _ in self.labels.values()) else 0)


@dataclass(frozen=True, slots=True)
class Route:
    """A line.

    Attributes:
        path: the path in SVG's notation, relative to the layout.
        transfer: whether it joins two groups.
        arrow: whether it ends at a box.
    """

    points: Sequence[tuple[float, float]]
    transfer: bool
    arrow: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """A graph with positions.

    Attributes:
        heading: the heading of the graph.
        width: the width.
        height: the height.
        boxes: the boxes.
        routes: the lines.
    """

    heading: str
    width: float
    height: float
    boxes: Sequence[Box]
    routes: Sequence[Route]


def arrange(graph: Graph, *, in_frame: bool = False) -> Layout:
    """Return the layout of a graph in the number of columns that fits a screen best.

    Args:
        graph: the graph.
        in_frame: whether it is in a frame, where one column is best unless it is long.
    """
    graph = _without_backward_edges(graph)
    boxes = {node: _box(node) for node in graph.nodes}
    layers = _layers(graph)
    heights = [max(boxes[node].bottom for node in layer) + _GAP for layer in layers]
    most = min(_MOST_COLUMNS, 1 + int(2 * sum(heights) // _SCREEN), max(1, len(layers)))
    most = 1 if in_frame and sum(heights) < _SCREEN else most

    def cost(count: int) -> float:
        layout = _Columns(graph, boxes, _cut(graph, layers, heights, count)).layout()
        excess = max(1.0, layout.width / WIDTH, layout.height / HEIGHT)
        return excess * 10 + max(layout.width / WIDTH, layout.height / _SCREEN) + count / 20

    least = min(most, 1 + int(sum(heights) // (2 * HEIGHT)))
    count = least if least == most else min(range(least, most + 1), key=cost)
    return _Columns(graph, boxes, _cut(graph, layers, heights, count)).layout()


def _without_backward_edges(graph: Graph) -> Graph:
    """Return the graph without edges to earlier nodes, which only an invalid model has."""
    order = {node: index for index, node in enumerate(graph.nodes)}
    edges = [edge for edge in graph.edges if order[edge.source] < order[edge.target]]
    return replace(graph, edges=edges) if len(edges) < len(graph.edges) else graph


def _box(node: Node) -> Box:
    """Return a node with its size, and with its inner layouts."""
    if node.port is not None:
        return Box(node, 1, 0)
    texts = [(line, shorten(line.label, _DETAIL, SMALL)) for line in node.lines]
    widths = [width_of(text, SMALL) + 2 * PADDING for _, text in texts]
    strip = max((strip_width(row) for row in node.rows), default=0.0)
    width = max([sum(widths), *(_row_width(row, strip) for row in node.rows)])
    height = ROW * len(node.rows)
    if node.heading or not (node.rows or node.frames):
        heading = shorten(node.heading, HEADING, SIZE)
        width = max(width, width_of(heading, SIZE, bold=True) + 2 * PADDING)
        height += ROW + 4
    layouts = [arrange(frame, in_frame=True) for frame in node.frames]
    box = Box(node, width, height, strip)
    if layouts:
        _add_inner(box, layouts)
    left = (box.width - sum(widths)) / 2
    for (line, text), each in zip(texts, widths, strict=True):
        box.labels[line] = text, left + each / 2
        left += each
    if len(box.labels) == 1 and node.frames:
        _align_label(box, widths[0])
    return box


def _add_inner(box: Box, layouts: Sequence[Layout]) -> None:
    """Put layouts into a frame: beside each other, or below each other if that is too wide."""
    gaps = PADDING * (len(layouts) + 1)
    headings = [ROW if layout.heading else 0 for layout in layouts]
    width, x, y = sum(layout.width for layout in layouts) + gaps, float(PADDING), box.height
    beside = width <= WIDTH
    if beside:
        x = max(x, (box.width - width) / 2 + PADDING)
    inner = []
    for layout, heading in zip(layouts, headings, strict=True):
        inner.append((x, y + heading, layout))
        box.width = max(box.width, x + layout.width + PADDING)
        box.height = max(box.height, y + heading + layout.height + PADDING)
        x, y = (x + layout.width + PADDING, y) if beside else (x, box.height)
    box.inner = inner


def _align_label(box: Box, width: float) -> None:
    """Put the only label of a frame below the value in it."""
    (line, (text, centre)) = next(iter(box.labels.items()))
    for left, _, layout in box.inner:
        for end in layout.boxes:
            if end.node.is_sink and end.node.port in line.values:
                centre = left + end.x
    box.labels[line] = text, min(max(centre, width / 2), box.width - width / 2)


def strip_width(row: Row) -> float:
    """Return the width of the strip with the number of a row's segment."""
    return width_of(segment_text(row), SMALL, bold=True) + 6 if row.segment else 0.0


def segment_text(row: Row) -> str:
    """Return the number of a row's segment, shortened."""
    return shorten(row.segment, _SEGMENT, SMALL, keep_end=True)


def _row_width(row: Row, strip: float) -> float:
    label = width_of(shorten(row.label, _LABEL, SIZE, keep_end=True), SIZE)
    detail = width_of(shorten(row.detail, _DETAIL, SMALL), SMALL)
    return strip + 2 * PADDING + label + (detail + 2 * PADDING if detail else 0)


def row_texts(row: Row) -> tuple[str, str]:
    """Return the operator and the type of a row, shortened."""
    return shorten(row.label, _LABEL, SIZE, keep_end=True), shorten(row.detail, _DETAIL, SMALL)


def _layers(graph: Graph) -> list[list[Node]]:
    """Return the nodes in layers: each below all that it reads, sources near their readers."""
    layer_of: dict[Node, int] = {}
    sources: dict[Node, list[Node]] = {}
    readers: dict[Node, list[Node]] = {}
    for edge in graph.edges:
        sources.setdefault(edge.target, []).append(edge.source)
        readers.setdefault(edge.source, []).append(edge.target)
    for node in graph.nodes:
        layer_of[node] = 1 + max((layer_of[source] for source in sources.get(node, ())), default=-1)
    last = max(layer_of.values(), default=0)
    floating = {node for node in graph.nodes if node.port is None}
    for node in graph.nodes:
        if not floating.issuperset(sources.get(node, ())):
            floating.discard(node)
        if len(set(sources.get(node, ()))) > 1 or not readers.get(node):
            floating.discard(node)
    for node in reversed(graph.nodes):
        if node in floating:
            layer_of[node] = min(layer_of[reader] for reader in readers[node]) - 1
        elif node.port is not None:
            layer_of[node] = last if node.is_sink else 0
    layers: list[list[Node]] = [[] for _ in range(last + 1)]
    for node in graph.nodes:
        layers[layer_of[node]].append(node)
    return [layer for layer in layers if layer]


def _cut(
    graph: Graph, layers: Sequence[Sequence[Node]], heights: Sequence[float], count: int
) -> list[Sequence[Sequence[Node]]]:
    """Cut layers into columns of about the same height, where few lines cross."""
    layer_of = {node: index for index, layer in enumerate(layers) for node in layer}
    crossing = [0] * (len(layers) + 1)
    spans: dict[Line, tuple[int, int]] = {}
    for edge in graph.edges:
        start, end = layer_of[edge.source], layer_of[edge.target]
        spans[edge.line] = start, max(end, spans.get(edge.line, (0, 0))[1])
    for start, end in spans.values():
        for cut in range(start + 1, end + 1):
            crossing[cut] += 1
    ideal = sum(heights) / count
    costs = [0.0] + [float("inf")] * len(layers)
    choices: list[list[int]] = []
    for _ in range(count):
        following, choice = [float("inf")] * (len(layers) + 1), [0] * (len(layers) + 1)
        for end in range(1, len(layers) + 1):
            height = 0.0
            for start in range(end - 1, -1, -1):
                height += heights[start]
                cost = costs[start] + 10 * (height / ideal - 1) ** 2 + crossing[end] / 4
                if cost < following[end]:
                    following[end], choice[end] = cost, start
        costs = following
        choices.append(choice)
    columns: list[Sequence[Sequence[Node]]] = []
    end = len(layers)
    for choice in reversed(choices):
        columns.insert(0, layers[choice[end] : end])
        end = choice[end]
    return [column for column in columns if column] or [[]]


@dataclass(slots=True, eq=False)
class _ColumnEdge:
    """A line from the bottom of a column to the top of a later one."""

    exit: Slot
    entry: Slot
    source: int
    target: int
    transfer: bool


class _Columns:
    """A layout of columns beside each other."""

    def __init__(
        self, graph: Graph, boxes: Mapping[Node, Box], columns: Sequence[Sequence[Sequence[Node]]]
    ) -> None:
        self._graph, self._boxes = graph, boxes
        self._columns = [
            [[], *([self._slot(node) for node in layer] for layer in column), []]
            for column in columns
        ]
        """The slots of each layer: above and below are the lines from and to other columns."""
        self._position: dict[Node, tuple[int, int]] = {}
        self._slots: dict[Node, Slot] = {}
        for number, column in enumerate(columns):
            for index, layer in enumerate(column):
                for node, slot in zip(layer, self._columns[number][index + 1], strict=True):
                    self._position[node], self._slots[node] = (number, index + 1), slot
        self._passing: dict[tuple[object, ...], Slot] = {}
        self._column_edges: dict[tuple[Slot, Slot], _ColumnEdge] = {}
        self._routes: list[Route] = []
        self._starts: list[float] = []
        self._ends: dict[Slot, float] = {}
        for edge in graph.edges:
            self._add(edge)

    def _slot(self, node: Node) -> Slot:
        return Slot(self._boxes[node].width)

    def _add(self, edge: Edge) -> None:
        """Add the slots and links of an edge."""
        column, layer = self._position[edge.source]
        target_column, target_layer = self._position[edge.target]
        key = edge.line, edge.transfer
        if column == target_column:
            end = self._route_through(
                key, edge, column, layer, target_layer, self._slots[edge.source]
            )
            self._link(end, edge)
            return
        last = len(self._columns[column])
        leaving = self._route_through(key, edge, column, layer, last, self._slots[edge.source])
        entry = self._passing.get((*key, target_column, 0, column))
        if entry is None:
            entry = self._passing[(*key, target_column, 0, column)] = Slot(4, is_line=True)
            self._columns[target_column][0].append(entry)
        self._column_edges.setdefault(
            (leaving, entry), _ColumnEdge(leaving, entry, column, target_column, edge.transfer)
        )
        end = self._route_through((*key, column), edge, target_column, 0, target_layer, entry)
        self._link(end, edge)

    def _route_through(
        self, key: tuple[object, ...], edge: Edge, column: int, start: int, end: int, slot: Slot
    ) -> Slot:
        """Lead a line through the layers between two; return its slot in the last one passed."""
        for layer in range(start + 1, end):
            place = (*key, column, layer)
            passing = self._passing.get(place)
            if passing is None:
                passing = self._passing[place] = Slot(4, is_line=True)
                self._columns[column][layer].append(passing)
                Link(slot, passing, self._leaving(slot, edge), 2, True, edge.transfer)
            slot = passing
        return slot

    def _link(self, slot: Slot, edge: Edge) -> None:
        box, target = self._boxes[edge.target], self._slots[edge.target]
        port = _port(box, edge.port) if edge.port is not None else None
        entering = box.width / 2 if port is None else port
        fixed = port is not None or edge.target.port is not None
        Link(slot, target, self._leaving(slot, edge), entering, fixed, edge.transfer)

    def _leaving(self, slot: Slot, edge: Edge) -> float:
        if slot is not self._slots[edge.source]:
            return 2
        box = self._boxes[edge.source]
        return box.labels[edge.line][1] if edge.line in box.labels else box.width / 2

    def layout(self) -> Layout:
        """Return the layout, and set the positions of the boxes."""
        column_edges = list(self._column_edges.values())
        widths = [place_layers(column) for column in self._columns]
        band = _TRACK * len(column_edges) + (_GAP if column_edges else 0)
        left, height = 0.0, 0.0
        box_of = {slot: self._boxes[node] for node, slot in self._slots.items()}
        for number, column in enumerate(self._columns):
            left += (
                _TRACK * (3 + sum(edge.target == number for edge in column_edges)) if number else 0
            )
            self._starts.append(left)
            for layer in column:
                for slot in layer:
                    slot.x += left
            left += widths[number] + (_TRACK * 2 if number + 1 < len(self._columns) else 0)
            height = max(height, self._draw(column, band, box_of))
        self._routes += self._column_edge_routes(column_edges, band, height)
        boxes = list(self._boxes.values())
        return Layout(self._graph.heading, left, height + band, boxes, self._routes)

    def _draw(
        self, column: Sequence[Sequence[Slot]], top: float, box_of: Mapping[Slot, Box]
    ) -> float:
        """Set the heights of a column's boxes, add its routes, and return its lower end."""
        y = top
        for layer in column:
            height = max((box_of[slot].bottom for slot in layer if slot in box_of), default=0.0)
            for slot in layer:
                box = box_of.get(slot)
                for link in slot.up:
                    arrow = box is not None and box.height > 0
                    points = (link.start, self._ends[link.upper]), (link.end, y)
                    self._routes.append(Route(points, link.transfer, arrow))
                lower = y
                if box is not None:
                    box.x, box.y = slot.x, y
                    lower = y + box.bottom
                passing = {(link.start, link.transfer) for link in slot.down}
                for x, transfer in sorted(passing) if lower < y + height else ():
                    self._routes.append(Route(((x, lower), (x, y + height)), transfer, False))
                self._ends[slot] = y + height
            if layer:
                y += height + _GAP
        return y - _GAP

    def _column_edge_routes(
        self, column_edges: Sequence[_ColumnEdge], top: float, bottom: float
    ) -> Iterator[Route]:
        """Yield the lines between columns: below them, up in the gap, and into the later one."""
        order = sorted(column_edges, key=lambda edge: (edge.source, -edge.exit.x))
        for index, edge in enumerate(order):
            siblings = [other for other in order if other.target == edge.target]
            track = len(siblings) - siblings.index(edge) + 1
            start, end = edge.exit.x + 2, edge.entry.x + 2
            low = bottom + _GAP / 2 + _TRACK * index
            high = top - _GAP / 2 - _TRACK * (len(order) - 1 - index)
            between = self._starts[edge.target] - _TRACK * track
            points = (
                (start, self._ends[edge.exit]),
                (start, low),
                (between, low),
                (between, high),
                (end, high),
                (end, top),
            )
            yield Route(points, edge.transfer, False)


def _port(box: Box, operand: Operand) -> float:
    """Return the position of a value at the upper end of a frame."""
    for left, _, layout in box.inner:
        for inner in layout.boxes:
            if inner.node.port is operand and not inner.node.is_sink:
                return left + inner.x
    raise AssertionError("each value that a block reads has a port")
