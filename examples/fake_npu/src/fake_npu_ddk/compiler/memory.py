"""Planning memory: tensors that are not needed at the same time share it."""

from __future__ import annotations

from collections.abc import Mapping

from fake_npu_ddk.graph import Graph
from fake_npu_ddk.program import Located, Place
from fake_npu_ddk.tensors import BLOCK

_Span = tuple[int, int]
"""The first and the last step at which a tensor is needed."""


class Plan:
    """Where the tensors of a graph lie.

    Args:
        graph: the graph.
        offsets: where the constants lie in the weights.

    Attributes:
        located: for each tensor where it lies.
        arena: the bytes for what is made and read on the way.
        boundary: the bytes of inputs and outputs.
    """

    def __init__(self, graph: Graph, offsets: Mapping[int, int]) -> None:
        self._graph = graph
        self._known: dict[int, tuple[Place, int]] = {}
        for place, numbers in ((Place.INPUT, graph.inputs), (Place.OUTPUT, graph.outputs)):
            self._known.update((number, (place, index)) for index, number in enumerate(numbers))
        self._known.update((n, (Place.WEIGHTS, offset)) for n, offset in offsets.items())
        self.boundary = sum(graph.tensors[n].size for n in (*graph.inputs, *graph.outputs))
        self.arena = self._place_others()
        self.located = [
            Located(tensor, *self._known[number]) for number, tensor in enumerate(graph.tensors)
        ]

    def _place_others(self) -> int:
        """Place what is left, the largest first, each at the first gap; the bytes it takes."""
        spans = {n: span for n, span in self._spans().items() if n not in self._known}
        placed: list[tuple[int, int, _Span]] = []  # begin, end, when
        for number in sorted(spans, key=lambda n: -self._graph.tensors[n].size):
            size = -(-self._graph.tensors[number].size // BLOCK) * BLOCK
            first, last = spans[number]
            begin = 0
            for other_begin, other_end, (other_first, other_last) in sorted(placed):
                if first > other_last or last < other_first:
                    continue
                if begin + size <= other_begin:
                    break
                begin = max(begin, other_end)
            placed.append((begin, begin + size, (first, last)))
            self._known[number] = (Place.ARENA, begin)
        return max((end for _, end, _ in placed), default=0)

    def _spans(self) -> dict[int, _Span]:
        spans: dict[int, _Span] = {}
        for step, node in enumerate(self._graph.nodes):
            for number in (*node.inputs, node.output):
                spans[number] = (spans.get(number, (step, step))[0], step)
        return spans
