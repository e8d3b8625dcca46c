"""The drawing of a model in Graphviz's DOT language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.text import legible

_PALETTE = ("#8dd3c7", "#fdb462", "#80b1d3", "#fb8072", "#b3de69", "#bebada", "#fccde5", "#ffed6f")


def to_dot(model: Model, groups: Mapping[Operation, str] | None = None) -> str:
    """Return a model as a DOT graph.

    Args:
        model: the model.
        groups: a label for each operation, such as its device; each label gets another colour.
    """
    return "\n".join(_lines(model, groups or {}))


def _lines(model: Model, groups: Mapping[Operation, str]) -> Iterator[str]:
    colours = colours_of(groups.values())
    yield f"digraph {_quoted(model.name)} {{"
    yield '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica];'
    yield "  edge [fontname=Helvetica, fontsize=10];"
    node_of: dict[Operand, str] = {}
    for index, (name, operand) in enumerate(model.inputs.items()):
        node_of[operand] = f"input{index}"
        yield f"  input{index} [shape=ellipse, label={_quoted(name)}];"
    for index, operation in enumerate(model.operations):
        group = groups.get(operation, "")
        label = _quoted(operation.type, operation.name, group)
        yield f"  op{index} [label={label}, fillcolor={_quoted(colours.get(group, 'white'))}];"
        for _, operand in operation.named_inputs():
            if operand in node_of:
                yield f"  {node_of[operand]} -> op{index} [label={_quoted(str(operand.type))}];"
        node_of.update((output, f"op{index}") for output in operation.outputs)
    for index, (name, operand) in enumerate(model.outputs.items()):
        origin = "constant" if operand.is_constant else ""
        yield f"  output{index} [shape=ellipse, label={_quoted(name, origin)}];"
        if operand in node_of:
            yield f"  {node_of[operand]} -> output{index} [label={_quoted(str(operand.type))}];"
    yield "}"


def colours_of(labels: Iterable[str]) -> dict[str, str]:
    """Return a fill colour for each distinct non-empty label, in order of first appearance."""
    distinct = dict.fromkeys(label for label in labels if label)
    return {label: _PALETTE[index % len(_PALETTE)] for index, label in enumerate(distinct)}


def _quoted(*lines: str) -> str:
    shown = (legible(line) for line in lines if line)
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in shown)
    return '"' + "\\n".join(escaped) + '"'
