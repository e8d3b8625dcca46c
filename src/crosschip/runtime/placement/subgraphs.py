"""Text of a placement in NNAdapter's format: clusters, their graph in DOT, a list of operators.

The list of operators is a complete partition configuration, which users can edit.
"""

from __future__ import annotations

from collections.abc import Iterator

from crosschip.drawing.dot import colours_of
from crosschip.ir import Operand
from crosschip.ir.text import legible
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.sources import sources_of


def subgraph_operators(placement: Placement) -> list[str]:
    """Return the operators of a model as `type:inputs:outputs`, in a topological order.

    Types and names are the framework's; operators that passes merged are one line.
    """
    return [source.line for source in sources_of(placement.original)]


def subgraph_text(placement: Placement) -> str:
    """Return the number of clusters, their graph, and the list of operators."""
    return "\n".join(_lines(placement))


def _lines(placement: Placement) -> Iterator[str]:
    yield f"subgraph clusters: {len(placement.segments)}"
    yield "digraph G {"
    yield from _graph(placement)
    yield "} // end G"
    yield "subgraph operators:"
    yield from subgraph_operators(placement)


def _graph(placement: Placement) -> Iterator[str]:
    """Return a DOT node per operation in its cluster's colour, and an edge per reader."""
    cluster_of = placement.clusters()
    colours = colours_of(cluster_of.values())
    node_of: dict[Operand, int] = {}
    for number, operation in enumerate(placement.model.operations):
        colour = colours.get(cluster_of.get(operation, ""), "white")
        names = ", ".join(legible(output.name) for output in operation.outputs)
        label = names.replace("\\", "\\\\").replace('"', '\\"')
        yield f'node_{number}[label="{label}", style=filled, fillcolor="{colour}"]'
        sources = {node_of[o] for o in operation.inputs if o is not None and o in node_of}
        for source in sorted(sources):
            yield f"node_{source}->node_{number}"
        node_of.update((output, number) for output in operation.outputs)
