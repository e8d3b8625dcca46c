"""Searching."""

from __future__ import annotations

from crosschip.devices.kits.tflite.converters.table import (
    ARITHMETIC,
    BYTES,
    INDICES,
    MAX_TRANSPOSED,
    SINGLE,
    converts,
    rank_of,
    shape_of,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand, TensorType
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.layout import Transpose, Unsqueeze
from crosschip.ops.standard.searching import ArgExtreme, ArgMax, ArgMin, TopK
from crosschip.ops.standard.unary import Neg


def _arg_limit(op: ArgExtreme) -> Refusal | None:
    return (
        Refusal("select_last", "of equal elements the first is found") if op.select_last else None
    )


@converts(
    ArgMax,
    ArgMin,
    types=SINGLE | {ElementType.INT32} | BYTES,
    output_types=INDICES,
    limit=_arg_limit,
    nonempty=True,
)
def arg_max(g: Graph, op: ArgExtreme) -> Operand:
    axis, shape = op.axis % rank_of(op.input), shape_of(op.input)
    code = "ARG_MAX" if isinstance(op, ArgMax) else "ARG_MIN"
    index_type = op.outputs[0].type.element_type
    output = g.native(
        code,
        op.input,
        g.int32(axis),
        type=TensorType(index_type, (*shape[:axis], *shape[axis + 1 :])),
        output_type=index_type,
    )
    return g.add(Unsqueeze, output, (axis,)) if op.keepdim else output


def _top_limit(op: TopK) -> Refusal | None:
    if not op.largest and op.input.type.element_type not in SINGLE:
        return Refusal("largest", "the smallest integers are not searched")
    rank = rank_of(op.input)
    if op.axis % rank < rank - 1 and rank > MAX_TRANSPOSED:
        return Refusal("input", f"has {rank} axes, which cannot be transposed", Rule.SHAPE)
    return None


@converts(TopK, types=ARITHMETIC, output_types=ARITHMETIC, limit=_top_limit, nonempty=True)
def top_k(g: Graph, op: TopK) -> tuple[Operand, Operand]:
    rank = rank_of(op.input)
    axis = op.axis % rank
    if axis != rank - 1:
        perm = [*(a for a in range(rank) if a != axis), axis]
        back = [perm.index(a) for a in range(rank)]
        rows = g.add(Transpose, op.input, perm)
        outputs = g.add_all(
            TopK,
            rows,
            op.k,
            axis=rank - 1,
            largest=op.largest,
            sorted=op.sorted,
            return_indices_dtype=op.return_indices_dtype,
        )
        first, second = (g.add(Transpose, each, back) for each in outputs)
        return first, second
    if not op.largest:
        negated = g.add(Neg, op.input)
        dtype = op.return_indices_dtype
        first, second = g.add_all(
            TopK, negated, op.k, axis=axis, sorted=op.sorted, return_indices_dtype=dtype
        )
        return g.add(Neg, first), second
    values, indices = op.outputs
    types = [values.type, TensorType(ElementType.INT32, values.type.shape)]
    largest, positions = g.natives("TOPK_V2", [op.input, g.int32(op.k)], types)
    if indices.type.element_type is ElementType.INT32:
        return largest, positions
    return largest, g.add(Cast, positions, indices.type.element_type)
