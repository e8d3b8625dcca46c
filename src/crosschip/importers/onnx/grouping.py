"""Groups of nodes that must stay together: no tensor of a known type passes between them.

Sequences, optional values and maps go into a model and come out of it, but between operations only
tensors do, and of these it must be known what they hold. Nodes that hand others to each other
become one extension operation, along with all that lies on a way from one of them to another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

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
"""The operators that make something else than a tensor out of tensors, or of nothing."""

_DOMAINS = (*STANDARD_DOMAINS, "ai.onnx.ml", "ai.onnx.preview.training")

Unit = tuple[int, ...]
"""The numbers of nodes that are imported together, in order."""


def makes_no_tensor(nodes: Iterable[NodeProto]) -> bool:
    """Tell whether a node, also one in a graph that a node holds, may make else than a tensor."""
    return any(map(_makes_no_tensor, all_nodes(nodes)))


def has_foreign(nodes: Iterable[NodeProto], calls: Callable[[NodeProto], object]) -> bool:
    """Tell whether a node is of a domain that ONNX has not, and calls no function of the model."""
    return any(node.domain not in _DOMAINS and not calls(node) for node in nodes)


def _makes_no_tensor(node: NodeProto) -> bool:
    """An optional value that is there is imported as what it holds."""
    type_ = node.op_type
    return type_ in _MAKERS or (type_ == "Optional" and not node.input)


def units(nodes: Sequence[NodeProto], inner: Collection[str]) -> Iterator[Unit]:
    """The nodes in an order in which they can run, those that must stay together at once.

    Args:
        nodes: all nodes of a graph.
        inner: the names of values that do not pass between operations.
    """
    reads = [set(free_names([node])) for node in nodes]
    makes = [{text(name) for name in node.output if name} for node in nodes]
    group = _groups(reads, makes, inner)
    members: dict[int, list[int]] = {}
    for index, leader in enumerate(group):
        members.setdefault(leader, []).append(index)
    made_here = set().union(*makes) if makes else set()
    done: set[str] = set()
    pending = sorted(members.values(), key=lambda unit: unit[-1])
    while pending:
        waiting = []
        for unit in pending:
            own = set().union(*(makes[index] for index in unit))
            needed = set().union(*(reads[index] for index in unit)) & made_here - own
            if needed <= done:
                yield tuple(unit)
                done |= own
            else:
                waiting.append(unit)
        if len(waiting) == len(pending):
            # A value is read that is made later: the import of the node will say so.
            yield from map(tuple, waiting)
            return
        pending = waiting


def _groups(
    reads: Sequence[set[str]], makes: Sequence[set[str]], inner: Collection[str]
) -> list[int]:
    """For each node, the number of the first node of its group."""
    leader = list(range(len(reads)))

    def join(one: int, other: int) -> None:
        low, high = sorted((leader[one], leader[other]))
        leader[:] = [low if known == high else known for known in leader]

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
    """Add what lies between members of a group to it; returns whether there was such a node."""
    for first in {known for known in leader if leader.count(known) > 1}:
        inside = [known == first for known in leader]
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
