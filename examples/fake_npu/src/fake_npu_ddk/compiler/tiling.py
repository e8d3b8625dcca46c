"""Dividing the work: how many rows of an output the chip computes at once.

The more rows, the fewer times weights are fetched and the fewer rows of the image are read twice;
but what is worked on must fit the scratchpad. The search simulates the traffic of each division,
which is what makes the compiler slow.
"""

from __future__ import annotations

import math

from fake_npu_ddk.graph import Graph, Node
from fake_npu_ddk.operators import Operator

SCRATCHPAD = 1 << 20
"""The bytes of fast memory."""

_START = 4096
"""What it costs to start on a part of the work, in bytes of traffic."""

_WINDOWED = frozenset({Operator.CONV_2D, Operator.DEPTHWISE_CONV_2D})


def best_rows(graph: Graph, node: Node, effort: int) -> int:
    """The number of rows with the least traffic.

    Args:
        graph: the graph.
        node: a node of it.
        effort: 1 tries powers of two; 2 all numbers; 3 all numbers, and in how many parts to take
            the output channels for each.
    """
    output = graph.tensors[node.output]
    if node.operator not in _WINDOWED:
        return output.shape[0]
    rows, channels = output.shape[1], output.aligned_shape[3]
    powers = [2**power for power in range(rows.bit_length())]
    candidates = [*powers, rows] if effort == 1 else list(range(1, rows + 1))
    splits = range(1, channels // 16 + 1) if effort == 3 else [1]
    costs = {
        (traffic(graph, node, count, split), count) for count in candidates for split in splits
    }
    return min(costs, key=lambda cost: (cost[0], -cost[1]))[1]


def traffic(graph: Graph, node: Node, rows: int, split: int) -> float:
    """The bytes that are moved with so many rows at once, and channels in so many parts."""
    image, filters = (graph.tensors[number] for number in node.inputs[:2])
    output, settings = graph.tensors[node.output], node.settings
    row_in = image.size // (image.shape[0] * image.shape[1])
    row_out = output.size // (output.shape[0] * output.shape[1])
    weights = filters.size / split
    reach = (filters.shape[0] - 1) * settings.dilations[0] + 1
    total, first = 0.0, 0
    while first < output.shape[1]:
        count = min(rows, output.shape[1] - first)
        needed = min((count - 1) * settings.strides[0] + reach, image.shape[1])
        held = needed * row_in + count * row_out / split + weights
        total += _START + held * (1 if held <= SCRATCHPAD else math.ceil(held / SCRATCHPAD) * 4)
        first += count
    return total * split * output.shape[0]
