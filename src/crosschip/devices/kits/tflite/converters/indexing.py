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
from crosschip.ir import Array, ElementType, Operand
from crosschip.ir.types import BOOLEANS
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.indexing import Gather, GatherND, Scatter, ScatterElements, ScatterND
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.reduction import ReduceSum

_GATHERED = SINGLE | INDICES | BOOLEANS | {ElementType.INT8, ElementType.UINT8, ElementType.INT16}


def _index_limit(op: Gather | GatherND | ScatterND) -> Refusal | None:
    if op.indices.type.element_type not in INDICES:
        return Refusal("indices", f"{op.indices.type.element_type}", Rule.ELEMENT_TYPE)
    return None


@converts(Gather, types=_GATHERED, limit=_index_limit, nonempty=True)
def gather(g: Graph, op: Gather) -> Operand:
    axis = op.axis % rank_of(op.input)
    indices = _from_start(g, op.indices, np.int64(shape_of(op.input)[axis]))
    return g.native("GATHER", op.input, indices, type=op.outputs[0].type, axis=axis, batch_dims=0)


def _nd_limit(op: GatherND) -> Refusal | None:
    if shape_of(op.indices)[-1] == 0:
        return Refusal("indices", "select the whole input")
    return _index_limit(op)


@converts(GatherND, types=_GATHERED, limit=_nd_limit, nonempty=True)
def gather_nd(g: Graph, op: GatherND) -> Operand:
    depth, batch = shape_of(op.indices)[-1], op.batch_dims
    sizes = np.array(shape_of(op.input)[batch : batch + depth], np.int64)
    indices = _from_start(g, op.indices, sizes)
    if not batch:
        return g.native("GATHER_ND", op.input, indices, type=op.outputs[0].type)
    dtype = indices.type.element_type.dtype
    steps = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(dtype)
    lines = g.add(ReduceSum, g.add(Mul, indices, steps), axes=(-1,), keepdim=False)
    shape = shape_of(op.input)
    flat = g.add(Reshape, op.input, (*shape[:batch], int(np.prod(sizes)), *shape[batch + depth :]))
    return g.native("GATHER", flat, lines, type=op.outputs[0].type, axis=batch, batch_dims=batch)


def _scatter_limit(op: ScatterND) -> Refusal | None:
    indices = op.indices.value
    if op.reduction is Scatter.ADD:
        return _index_limit(op)
    if op.reduction is not Scatter.NONE:
        return Refusal("reduction", op.reduction.name)
    if indices is None:
        return Refusal("indices", "may occur twice, as they are computed", Rule.COMPUTED)
    rows = np.where(indices < 0, indices + _sizes(op), indices).reshape(-1, indices.shape[-1])
    if len(np.unique(rows, axis=0)) < len(rows):
        return Refusal("indices", "occur twice")
    return _index_limit(op)


@converts(ScatterND, types=SINGLE | INDICES, limit=_scatter_limit, nonempty=True)
def scatter_nd(g: Graph, op: ScatterND) -> Operand:
    indices = _from_start(g, g.add(Cast, op.indices, ElementType.INT32), _sizes(op))
    shape, type_ = shape_of(op.outputs[0]), op.outputs[0].type
    added = g.native("SCATTER_ND", indices, op.updates, g.int32(shape), type=type_)
    if op.reduction is Scatter.ADD:
        return g.add(Add, op.input, added)
    assert op.indices.value is not None, "the limit requires it"
    rows = np.where(op.indices.value < 0, op.indices.value + _sizes(op), op.indices.value)
    is_written = np.zeros(shape, np.bool_)
    is_written[tuple(np.moveaxis(rows, -1, 0))] = True
    return g.add(Where, is_written, added, op.input)


def _single_limit(op: ScatterElements) -> Refusal | None:
    """Refuse an axis of more than one entry: an index could occur twice."""
    size, is_whole = shape_of(op.input)[op.axis], shape_of(op.updates) == shape_of(op.input)
    if op.reduction is Scatter.NONE and size == 1 and is_whole:
        return None
    return Refusal("indices", "may occur twice, as they are computed", Rule.COMPUTED)


@converts(ScatterElements, types=SINGLE | INDICES, limit=_single_limit, nonempty=True)
def scatter_elements(g: Graph, op: ScatterElements) -> Operand:
    """Return the updates, which replace the only entry of the axis."""
    return g.add(Assign, op.updates)


def _sizes(op: ScatterND) -> Array:
    """Return the sizes of the axes that indices are for."""
    return np.array(shape_of(op.input)[: shape_of(op.indices)[-1]], np.int64)


def _from_start(g: Graph, indices: Operand, sizes: np.int64 | Array) -> Operand:
    """Return indices of which none is negative: negative ones count from the end."""
    dtype = indices.type.element_type.dtype
    if indices.value is not None:
        value = np.where(indices.value < 0, indices.value + sizes, indices.value)
        return g.constant(value.astype(dtype))
    is_negative = g.add(Less, indices, np.zeros((), dtype))
    return g.add(Where, is_negative, g.add(Add, indices, np.asarray(sizes, dtype)), indices)
