"""What makes graphs small: summaries of stretches, and one node for many inputs or outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from crosschip.drawing.graph import Edge, Graph, Line, Node
from crosschip.ir.model import Operand, Operation

MIXED = 64
"""The maximum number of operations of an interval that must be in one group."""

MOST_LINES = 3
"""The maximum number of values that leave a box on separate lines."""

MOST_NAMES = 20
"""The maximum number of lines of a tooltip."""


def intervals(
    stretch: Sequence[Operation],
    most: int,
    readers: Mapping[Operand, Sequence[Operation]],
    group_of: Callable[[Operation], str],
) -> Iterator[list[Operation]]:
    """Cut operations into intervals of at most `most`, where few values cross.

    Operations of different groups are in one interval only if it is over `MIXED` long.
    """
    crossing = _crossing(stretch, readers)
    costs, starts = [0.0], [0]
    for end, last in enumerate(stretch, 1):
        best = (costs[end - 1], end - 1)
        for start in range(end - 2, max(-1, end - 1 - most), -max(1, most // MIXED)):
            first = stretch[start]
            if (
                first.bodies
                or last.bodies
                or not (most > MIXED or group_of(first) == group_of(last))
            ):
                break
            best = min(best, (costs[start], start))
        costs.append(best[0] + 1 + crossing[end] / 4)
        starts.append(best[1])
    bounds = [len(stretch)]
    while bounds[-1]:
        bounds.append(starts[bounds[-1]])
    for start, end in pairwise(reversed(bounds)):
        yield list(stretch[start:end])


def _crossing(
    stretch: Sequence[Operation], readers: Mapping[Operand, Sequence[Operation]]
) -> list[int]:
    """Return how many operations before each position are read at or after it."""
    position = {operation: index for index, operation in enumerate(stretch)}
    crossing = [0] * (len(stretch) + 1)
    for index, operation in enumerate(stretch):
        after = [position.get(r, index) for o in operation.outputs for r in readers.get(o, ())]
        for cut in range(index + 1, max(after, default=index) + 1):
            crossing[cut] += 1
    return crossing


def merge_ends(graph: Graph) -> Graph:
    """Return a graph with one node for many inputs of the same readers, or outputs of one node."""
    merged = _ends_to_merge(graph)
    lines: dict[Line, Line] = {}
    for source in dict.fromkeys(merged.values()):
        old = [line for node in merged if merged[node] is source for line in node.lines]
        if old:
            types = {line.label for line in old}
            label = f"{len(old)} × {types.pop()}" if len(types) == 1 else f"{len(old)} values"
            values = frozenset(value for line in old for value in line.values)
            source.lines.append(Line(label, source.title, values))
            lines.update(dict.fromkeys(old, source.lines[0]))
    edges = dict.fromkeys(
        (
            merged.get(edge.source, edge.source),
            lines.get(edge.line, edge.line),
            merged.get(edge.target, edge.target),
            edge.port,
            edge.transfer,
        )
        for edge in graph.edges
    )
    nodes = dict.fromkeys(merged.get(node, node) for node in graph.nodes)
    return Graph(list(nodes), [Edge(*edge) for edge in edges])


def _ends_to_merge(graph: Graph) -> dict[Node, Node]:
    """Return the node for each input or output that is drawn together with others."""
    neighbours: dict[Node, set[Node]] = {}
    for edge in graph.edges:
        neighbours.setdefault(edge.source, set()).add(edge.target)
        neighbours.setdefault(edge.target, set()).add(edge.source)
    ends: dict[tuple[bool, frozenset[Node]], list[Node]] = {}
    for node in graph.nodes:
        if not node.rows and not node.frames and node in neighbours:
            ends.setdefault((node.is_sink, frozenset(neighbours[node])), []).append(node)
    merged: dict[Node, Node] = {}
    for (is_sink, _), nodes in ends.items():
        if len(nodes) > MOST_LINES:
            heading = f"{len(nodes)} {'outputs' if is_sink else 'inputs'}"
            node = Node(heading=heading, title=_titles(nodes), is_sink=is_sink)
            merged.update(dict.fromkeys(nodes, node))
    return merged


def _titles(nodes: Sequence[Node]) -> str:
    return "\n".join(first_lines([node.title for node in nodes]))


def first_lines(texts: Sequence[str]) -> list[str]:
    if len(texts) <= MOST_NAMES:
        return list(texts)
    return [*texts[:MOST_NAMES], f"… and {len(texts) - MOST_NAMES} more"]
