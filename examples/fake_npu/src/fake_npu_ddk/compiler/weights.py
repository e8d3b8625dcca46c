"""Laying constants out as the chip reads them: channels filled up, each at a whole block."""

from __future__ import annotations

import numpy as np

from fake_npu_ddk.graph import Graph
from fake_npu_ddk.tensors import BLOCK, Array, Tensor


def laid_out(graph: Graph) -> tuple[bytes, dict[int, int]]:
    """The constants of a graph as they lie in memory, and the offset of each."""
    parts: list[bytes] = []
    offsets: dict[int, int] = {}
    place = 0
    for number, elements in graph.constants.items():
        offsets[number] = place
        content = aligned(graph.tensors[number], elements).tobytes()
        content += bytes(-len(content) % BLOCK)
        parts.append(content)
        place += len(content)
    return b"".join(parts), offsets


def aligned(tensor: Tensor, elements: Array) -> Array:
    """The elements of a tensor with the channels filled up with zeros."""
    whole = np.zeros(tensor.aligned_shape, tensor.type.dtype)
    whole[..., : tensor.shape[-1]] = elements
    return whole
