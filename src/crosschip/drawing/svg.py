"""The drawing of a model as an SVG picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from crosschip.drawing.dot import colours_of
from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.text import legible

_BOX = (150, 34)
_GAP = (24, 34)
_MARGIN = 20
_SWING = 150


@dataclass(slots=True)
class _Node:
    """A box: its column and layer, and the indices of the boxes that it reads."""

    label: str
    detail: str
    group: str
    sources: list[int]
    layer: int = 0
    column: float = 0.0

    @property
    def x(self) -> float:
        return _MARGIN + self.column * (_BOX[0] + _GAP[0])

    @property
    def y(self) -> float:
        return _MARGIN + self.layer * (_BOX[1] + _GAP[1])


def to_svg(
    model: Model,
    groups: Mapping[Operation, str] | None = None,
    colours: Mapping[str, str] | None = None,
) -> str:
    """Return a model as an SVG picture: inputs at the top, each operation below its operands.

    Args:
        model: the model.
        groups: a label for each operation, such as its device; each label gets another colour.
        colours: the colour of each label; chosen if left out.
    """
    nodes = _nodes(model, groups or {})
    _arrange(nodes)
    return "\n".join(_lines(nodes, colours or colours_of(node.group for node in nodes)))


def _nodes(model: Model, groups: Mapping[Operation, str]) -> list[_Node]:
    nodes: list[_Node] = []
    made_by: dict[Operand, int] = {}

    def add(label: str, detail: str, group: str, reads: Sequence[Operand | None]) -> None:
        sources = sorted({made_by[o] for o in reads if o is not None and o in made_by})
        layer = 1 + max((nodes[source].layer for source in sources), default=-1)
        nodes.append(_Node(label, detail, group, sources, layer))

    for name, operand in model.inputs.items():
        add(name, str(operand.type), "", ())
        made_by[operand] = len(nodes) - 1
    for operation in model.operations:
        types = ", ".join(str(output.type) for output in operation.outputs)
        add(
            operation.type,
            f"{operation.name}: {types}",
            groups.get(operation, ""),
            operation.inputs,
        )
        made_by.update(dict.fromkeys(operation.outputs, len(nodes) - 1))
    for name, operand in model.outputs.items():
        add(name, str(operand.type), "", (operand,))
    return nodes


def _arrange(nodes: Sequence[_Node]) -> None:
    """Set the column of each node: near those that it reads, and unique in its layer."""
    layers: dict[int, list[_Node]] = {}
    for node in nodes:
        layers.setdefault(node.layer, []).append(node)
    for _, layer in sorted(layers.items()):
        for node in layer:
            columns = [nodes[source].column for source in node.sources]
            node.column = sum(columns) / len(columns) if columns else 0.0
        layer.sort(key=lambda node: node.column)
        for left, right in pairwise(layer):
            right.column = max(right.column, left.column + 1)


def _lines(nodes: Sequence[_Node], colours: Mapping[str, str]) -> Iterator[str]:
    legend = len(colours) * 22
    width = max((node.x for node in nodes), default=0) + _BOX[0] + _MARGIN + _SWING / 2
    height = max((node.y for node in nodes), default=0) + _BOX[1] + _MARGIN + legend
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 {-legend} {width:g} {height:g}" font-family="Helvetica, Arial, sans-serif">'
    )
    yield f'<rect y="{-legend}" width="100%" height="100%" fill="white"/>'
    for index, (group, colour) in enumerate(colours.items()):
        top = 14 - legend + index * 22
        yield f'<rect x="{_MARGIN}" y="{top}" width="16" height="16" rx="4" fill="{colour}"/>'
        yield f'<text x="{_MARGIN + 24}" y="{top + 13}" font-size="13">{_escaped(group)}</text>'
    for node in nodes:
        for source in node.sources:
            yield _edge(nodes[source], node)
    for node in nodes:
        yield from _box(node, colours.get(node.group, "white"))
    yield "</svg>"


def _edge(source: _Node, target: _Node) -> str:
    """Return a curve from a box to a lower one; past other boxes, it bends to the right."""
    x0, y0 = source.x + _BOX[0] / 2, source.y + _BOX[1]
    x1, y1 = target.x + _BOX[0] / 2, target.y
    passes = target.layer - source.layer > 1
    swing = _SWING if passes else 0
    reach = min((y1 - y0) / 2, 3 * _BOX[1])
    path = (
        f"M{x0:g} {y0:g} C{x0 + swing:g} {y0 + reach:g} {x1 + swing:g} {y1 - reach:g} {x1:g} {y1:g}"
    )
    return f'<path d="{path}" fill="none" stroke="#888"/>'


def _box(node: _Node, colour: str) -> Iterator[str]:
    yield (
        f'<g><title>{_escaped(node.detail)}</title><rect x="{node.x:g}" y="{node.y:g}" '
        f'width="{_BOX[0]}" height="{_BOX[1]}" rx="6" fill="{colour}" stroke="#444"/>'
    )
    # The end of a long name is the more specific part: `onnx.com.microsoft.Inverse`.
    label = node.label if len(node.label) <= 20 else "…" + node.label[-19:]
    yield (
        f'<text x="{node.x + _BOX[0] / 2:g}" y="{node.y + 21:g}" font-size="11" '
        f'text-anchor="middle">{_escaped(label)}</text></g>'
    )


def _escaped(text: str) -> str:
    return escape(legible(text))
