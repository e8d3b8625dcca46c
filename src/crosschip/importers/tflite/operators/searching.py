"""The largest and the distinct elements."""

from __future__ import annotations

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import BucketizeOptions
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import FLOATS
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.searching import SearchSorted, TopK, Unique
from crosschip.ops.standard.unary import IsNaN


@imports("TOPK_V2")
def top_k(node: Node) -> tuple[Operand, ...]:
    count = node[1] if node[1].value is None else int(node[1].value.item())
    return node.add_all(TopK, node[0], count, return_indices_dtype=node.output(1).element_type)


@imports("UNIQUE")
def unique(node: Node) -> tuple[Operand, Operand]:
    values, _, positions, _ = node.add_all(Unique, node[0], sorted=False)
    return values, node.add(Cast, positions, node.output(1).element_type)


@imports("BUCKETIZE")
def bucketize(node: Node) -> Operand:
    """Import for each element the number of boundaries that are not above it; NaN is above all."""
    boundaries = node.options(BucketizeOptions).boundaries
    values = node.add(Cast, node[0], ElementType.FLOAT32)
    if node[0].type.element_type in FLOATS:
        values = node.add(Where, node.add(IsNaN, values), np.float32(np.inf), values)
    limits = node.constant(np.zeros(0, np.float32) if boundaries is None else boundaries.copy())
    return node.add(SearchSorted, limits, values, right=True, dtype=ElementType.INT32)
