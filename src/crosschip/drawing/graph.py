"""The boxes and lines of a picture of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crosschip.ir.model import Operand, Operation


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known about the operations of a model.

    Attributes:
        groups: the group of operations, such as the device.
        segments: the numbers of their segments.
        notes: remarks for the tooltips, such as the reasons of their placement.
    """

    groups: Mapping[Operation, str] = field(default_factory=dict)
    segments: Mapping[Operation, str] = field(default_factory=dict)
    notes: Mapping[Operation, str] = field(default_factory=dict)

    def group(self, operation: Operation) -> str:
        """Return the group of an operation; empty if it has none."""
        return self.groups.get(operation, "")


@dataclass(slots=True, eq=False)
class Row:
    """A line of a box.

    Attributes:
        operations: the operations that it stands for.
        label: the operator.
        detail: the type of the result, or empty.
        title: the tooltip.
        group: the group.
        segment: the number of the segment, or several of them.
    """

    operations: Sequence[Operation]
    label: str
    detail: str
    title: str
    group: str
    segment: str


@dataclass(slots=True, eq=False)
class Line:
    """Values that leave a node together.

    Attributes:
        label: their types, in short.
        title: their names and types.
        values: the values, as those of the first of repeated blocks.
    """

    label: str
    title: str
    values: frozenset[Operand] = frozenset()


@dataclass(slots=True, eq=False)
class Node:
    """Box, frame of a repeat or of a body, model input or output, or end of a line at a frame.

    Attributes:
        rows: the rows of a box.
        heading: the heading of a frame, or the name of an input or output.
        title: the tooltip.
        frames: the graphs in a frame, beside each other.
        lines: the lines that leave it.
        port: the value that enters or leaves a frame here, if it is an end at a frame.
        is_sink: whether values end here.
    """

    rows: Sequence[Row] = ()
    heading: str = ""
    title: str = ""
    frames: Sequence[Graph] = ()
    lines: list[Line] = field(default_factory=list)
    port: Operand | None = None
    is_sink: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A connection of two nodes.

    Attributes:
        source: the node that has the value.
        line: the line that it leaves on.
        target: the node that reads the value.
        port: the value at the target's frame; `None` if it is no frame.
        transfer: whether the two are in different groups.
    """

    source: Node
    line: Line
    target: Node
    port: Operand | None
    transfer: bool


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Nodes in topological order and their connections.

    Attributes:
        nodes: the nodes.
        edges: the edges.
        heading: the heading, if it is in a frame; otherwise empty.
    """

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    heading: str = ""


class Detail(NamedTuple):
    """How much a picture shows.

    Attributes:
        most: the maximum number of operations that a box summarizes; with 1, each has a row.
        depth: the depth down to which bodies of control flow are drawn; deeper ones are rows.
        shapes: whether shapes are the same in repeated blocks.
    """

    most: int = 1
    depth: int = 16
    shapes: bool = True


def count_text(count: int, noun: str) -> str:
    """Return a number with a noun in singular or plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
