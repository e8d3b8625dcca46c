"""Gathering and scattering."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tflite.converters.table import (
    INDICES,
    SINGLE,
    converts,
    rank_of,
    shape_of,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import BOOLEANS
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.indexing import Gather, GatherND
from crosschip.ops.standard.logical import Where

_GATHERED = SINGLE | INDICES | BOOLEANS | {ElementType.INT8, ElementType.UINT8, ElementType.INT16}


def _index_limit(op: Gather | GatherND) -> Refusal | None:
    if op.indices.type.element_type not in INDICES:
        return Refusal("indices", f"{op.indices.type.element_type}", Rule.ELEMENT_TYPE)
    return None


@converts(Gather, types=_GATHERED, limit=_index_limit, nonempty=True)
def gather(g: Graph, op: Gather) -> Operand:
    axis = op.axis % rank_of(op.input)
    indices = _from_start(g, op.indices, np.int64(shape_of(op.input)[axis]))
    return g.native("GATHER", op.input, indices, type=op.outputs[0].type, axis=axis, batch_dims=0)


def _nd_limit(op: GatherND) -> Refusal | None:
    if op.batch_dims:
        return Refusal("batch_dims", f"{op.batch_dims}, must be 0")
    if shape_of(op.indices)[-1] == 0:
        return Refusal("indices", "select the whole input")
    return _index_limit(op)


@converts(GatherND, types=_GATHERED, limit=_nd_limit, nonempty=True)
def gather_nd(g: Graph, op: GatherND) -> Operand:
    sizes = np.array(shape_of(op.input)[: shape_of(op.indices)[-1]], np.int64)
    indices = _from_start(g, op.indices, sizes)
    return g.native("GATHER_ND", op.input, indices, type=op.outputs[0].type)


def _from_start(g: Graph, indices: Operand, sizes: np.int64 | np.ndarray) -> Operand:
    """Return indices of which none is negative: negative ones count from the end."""
    dtype = indices.type.element_type.dtype
    if indices.value is not None:
        value = np.where(indices.value < 0, indices.value + sizes, indices.value)
        return g.constant(value.astype(dtype))
    is_negative = g.add(Less, indices, np.zeros((), dtype))
    return g.add(Where, is_negative, g.add(Add, indices, np.asarray(sizes, dtype)), indices)
