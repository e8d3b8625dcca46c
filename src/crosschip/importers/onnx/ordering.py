"""The order of nodes. ONNX asks for one in which they can run, and not every tool keeps to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from crosschip.importers.onnx.opaque import free_names
from crosschip.importers.onnx.tensors import text
from crosschip.onnx_messages import NodeProto


def in_order(nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
    """Nodes in an order in which they can run: the one that they have, if that will do.

    Where none will do, they stay as they are, for whoever runs them to say what is missing.
    """
    makers: dict[str, int] = {}
    for number, node in enumerate(nodes):
        makers.update((text(name), number) for name in node.output if name)
    if all(last < number for number, node in enumerate(nodes) for last in _before(node, makers)):
        return nodes
    graph = {number: list(_before(node, makers)) for number, node in enumerate(nodes)}
    try:
        return [nodes[number] for number in TopologicalSorter(graph).static_order()]
    except CycleError:
        return nodes


def _before(node: NodeProto, makers: Mapping[str, int]) -> Iterable[int]:
    """The numbers of the nodes that make what a node reads."""
    holds_graphs = any(a.HasField("g") or a.graphs for a in node.attribute)
    names = free_names([node]) if holds_graphs else map(text, node.input)
    return (makers[name] for name in names if name in makers)
