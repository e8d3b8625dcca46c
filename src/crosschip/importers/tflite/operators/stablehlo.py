"""StableHLO's operators on numbers and on windows, as far as LiteRT has kernels for them."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.stablehlo_options import (
    StablehloPadOptions,
    StablehloReduceWindowOptions,
)
from crosschip.importers.facts import rank_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.importers.tflite.operators.joining import dilate
from crosschip.importers.tflite.operators.windows import reduce_windows
from crosschip.ir import Array, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Add, Max, Min, Mul
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import And, BitShift, BitwiseAnd, Or, ShiftDirection
from crosschip.ops.standard.padding import Pad

_BINARY: dict[str, tuple[type[Operator], type[Operator]]] = {
    "STABLEHLO_ADD": (Add, Or),
    "STABLEHLO_AND": (BitwiseAnd, And),
    "STABLEHLO_MAXIMUM": (Max, Or),
    "STABLEHLO_MINIMUM": (Min, And),
    "STABLEHLO_MULTIPLY": (Mul, And),
}
"""The operators on numbers and on booleans."""

_REDUCTIONS = {
    "ADD": "ADD",
    "LOGICAL_AND": "ALL",
    "LOGICAL_OR": "ANY",
    "MAXIMUM": "MAXIMUM",
    "MINIMUM": "MINIMUM",
    "MUL": "MUL",
    "STABLEHLO_ADD": "ADD",
    "STABLEHLO_AND": "ALL",
    "STABLEHLO_MAXIMUM": "MAXIMUM",
    "STABLEHLO_MINIMUM": "MINIMUM",
    "STABLEHLO_MULTIPLY": "MUL",
    "STABLEHLO_OR": "ANY",
}
"""The functions of REDUCE_WINDOW by the only operator of a region."""


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    """Import an operator on tensors of one shape, which are not broadcast."""
    on_numbers, on_booleans = _BINARY[node.type]
    is_boolean = node[0].type.element_type is ElementType.BOOL
    return node.add(on_booleans if is_boolean else on_numbers, node[0], node[1])


@imports("STABLEHLO_SHIFT_LEFT")
def shift_left(node: Node) -> Operand:
    return node.add(BitShift, node[0], node[1], direction=ShiftDirection.LEFT)


@imports("STABLEHLO_PAD")
def pad(node: Node) -> Operand:
    """Import padding between the elements of an axis and at its ends, where it may be negative."""
    options, rank = node.options(StablehloPadOptions), rank_of(node[0])
    low, high, interior = (
        integers(vector, rank)
        for vector in (
            options.edge_padding_low,
            options.edge_padding_high,
            options.interior_padding,
        )
    )
    value = node.add(Reshape, node[1], ())
    dilated = dilate(node, node[0], [count + 1 for count in interior], value)
    pads = tuple(count for pair in zip(low, high, strict=True) for count in pair)
    return node.add(Pad, dilated, pads, value=value) if any(pads) else dilated


@imports("STABLEHLO_REDUCE_WINDOW")
def reduce_window(node: Node) -> Operand:
    """Import the reduction of windows of a dilated and padded tensor, beginning with a value."""
    options, rank = node.options(StablehloReduceWindowOptions), rank_of(node[0])
    (region,) = node.subgraph.operator_types(options.body_subgraph_index) or [""]
    if region not in _REDUCTIONS:
        raise UnsupportedError(f"reduction of windows by {region or 'no operator'}")
    initial = node.add(Reshape, node[1], ())
    dilated = dilate(node, node[0], integers(options.base_dilations, rank), initial)
    pads = tuple(integers(options.padding, 2 * rank))
    padded = node.add(Pad, dilated, pads, value=initial) if any(pads) else dilated
    sizes, strides, dilations = (
        integers(vector, rank)
        for vector in (options.window_dimensions, options.window_strides, options.window_dilations)
    )
    return reduce_windows(node, padded, initial, _REDUCTIONS[region], sizes, strides, dilations)


def integers(vector: Array | None, count: int | None = None) -> list[int]:
    """Return the elements of a list of options.

    Raises:
        ModelError: the list is not of this length.
    """
    values = [] if vector is None else [int(value) for value in vector]
    if count is not None and len(values) != count:
        raise ModelError(f"a list of its options has {len(values)} numbers, but must have {count}")
    return values
