"""Reductions along axes."""

from __future__ import annotations

from crosschip.devices.kits.tflite.converters.table import (
    ANY_BYTES,
    ARITHMETIC,
    INDICES,
    SINGLE,
    WORDS,
    converts,
    rank_of,
    same_quantization,
    unary_forms,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal
from crosschip.ir import Operand
from crosschip.ir.types import BOOLEANS
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.reduction import (
    CumSum,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reduction,
)

_CODES = {
    ReduceAll: "REDUCE_ALL",
    ReduceAny: "REDUCE_ANY",
    ReduceMax: "REDUCE_MAX",
    ReduceMean: "MEAN",
    ReduceMin: "REDUCE_MIN",
    ReduceProd: "REDUCE_PROD",
    ReduceSum: "SUM",
}


def axes_of(op: Reduction) -> list[int]:
    """Return the axes of a reduction, from 0; all by default."""
    rank = rank_of(op.input)
    return [axis % rank for axis in op.axes or range(rank)]


def _mean_limit(op: ReduceMean) -> Refusal | None:
    return None if axes_of(op) else same_quantization(op)


@converts(ReduceMean, nonempty=True, limit=_mean_limit, quantized=unary_forms(ANY_BYTES, WORDS))
@converts(ReduceSum, ReduceProd, types=ARITHMETIC, nonempty=True)
@converts(
    ReduceMax,
    ReduceMin,
    types=ARITHMETIC,
    nonempty=True,
    limit=same_quantization,
    quantized=unary_forms(ANY_BYTES, WORDS),
)
@converts(ReduceAll, ReduceAny, types=BOOLEANS, nonempty=True)
def reduce(g: Graph, op: Reduction) -> Operand:
    if not axes_of(op):
        return g.add(Assign, op.input)
    return g.native(
        _CODES[type(op)],
        op.input,
        g.int32(axes_of(op)),
        type=op.outputs[0].type,
        keep_dims=op.keepdim,
    )


@converts(CumSum, types=SINGLE | INDICES, nonempty=True)
def cum_sum(g: Graph, op: CumSum) -> Operand:
    return g.native(
        "CUMSUM",
        op.input,
        g.int32(op.axis % rank_of(op.input)),
        type=op.outputs[0].type,
        exclusive=op.exclusive,
        reverse=op.reverse,
    )
