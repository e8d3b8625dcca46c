"""Order of nodes, and groups of nodes that must become one extension operation.

Only tensors of known types pass between operations. Nodes that pass sequences, optional values,
maps or values of unknown types to each other are grouped, with all nodes on paths between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from crosschip.importers.onnx.functions import all_nodes
from crosschip.importers.onnx.opaque import free_names
from crosschip.importers.onnx.schemas import STANDARD_DOMAINS
from crosschip.importers.onnx.tensors import text
from crosschip.onnx_messages import NodeProto

_MAKERS = frozenset(
    {
        "CastMap",
        "DictVectorizer",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceMap",
        "SplitToSequence",
        "ZipMap",
    }
)
"""Operators without container inputs whose output is a sequence or a map."""

_DOMAINS = (*STANDARD_DOMAINS, "ai.onnx.ml", "ai.onnx.preview.training")

Unit = tuple[int, ...]
"""The indices of nodes that are imported together, in order."""


def in_order(nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
    """Return the nodes in a topological order: their own order if possible.

    If there is a cycle, the order is unchanged; importing the nodes then raises an error.
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
    holds_graphs = any(a.HasField("g") or a.graphs for a in node.attribute)
    names = free_names([node]) if holds_graphs else map(text, node.input)
    return (makers[name] for name in names if name in makers)


def makes_no_tensor(nodes: Iterable[NodeProto]) -> bool:
    """Return whether a node, subgraphs included, may return something other than a tensor."""
    return any(
        node.op_type in _MAKERS or (node.op_type == "Optional" and not node.input)
        for node in all_nodes(nodes)
    )


def has_foreign(nodes: Iterable[NodeProto], calls: Callable[[NodeProto], object]) -> bool:
    """Return whether a node has a domain outside ONNX and calls no function of the model."""
    return any(node.domain not in _DOMAINS and not calls(node) for node in nodes)


def units(nodes: Sequence[NodeProto], inner: Collection[str]) -> Iterator[Unit]:
    """Yield the nodes' indices in topological order, grouped nodes together.

    Args:
        nodes: all nodes of a graph.
        inner: the names of values that must not pass between operations.
    """
    reads = [set(free_names([node])) for node in nodes]
    makes = [{text(name) for name in node.output if name} for node in nodes]
    group = _groups(reads, makes, inner)
    members: dict[int, list[int]] = {}
    for index, leader in enumerate(group):
        members.setdefault(leader, []).append(index)
    graph_outputs = set().union(*makes) if makes else set()
    available: set[str] = set()
    pending = sorted(members.values(), key=lambda unit: unit[-1])
    while pending:
        waiting = []
        for unit in pending:
            outputs = set().union(*(makes[index] for index in unit))
            needed = set().union(*(reads[index] for index in unit)) & graph_outputs - outputs
            if needed <= available:
                yield tuple(unit)
                available |= outputs
            else:
                waiting.append(unit)
        if len(waiting) == len(pending):
            # There is a cycle; importing the nodes will raise.
            yield from map(tuple, waiting)
            return
        pending = waiting


def _groups(
    reads: Sequence[set[str]], makes: Sequence[set[str]], inner: Collection[str]
) -> list[int]:
    """Return for each node the index of the first node of its group."""
    leader = list(range(len(reads)))

    def join(first: int, second: int) -> None:
        low, high = sorted((leader[first], leader[second]))
        leader[:] = [low if group == high else group for group in leader]

    touched: dict[str, int] = {}
    for index in range(len(reads)):
        for name in reads[index] | makes[index]:
            if name in inner:
                join(touched.setdefault(name, index), index)
    while _close(leader, reads, makes, join):
        pass
    return leader


def _close(
    leader: list[int],
    reads: Sequence[set[str]],
    makes: Sequence[set[str]],
    join: Callable[[int, int], None],
) -> bool:
    """Add one node on a path between members of a group to it; return whether there was one."""
    for first in {group for group in leader if leader.count(group) > 1}:
        inside = [group == first for group in leader]
        after: set[str] = set()
        follows = []
        for index in range(len(leader)):
            follows.append(bool(reads[index] & after))
            if follows[index] or inside[index]:
                after |= makes[index]
        before: set[str] = set()
        for index in reversed(range(len(leader))):
            leads = bool(makes[index] & before)
            if leads and follows[index] and not inside[index]:
                join(first, index)
                return True
            if leads or inside[index]:
                before |= reads[index]
    return False
