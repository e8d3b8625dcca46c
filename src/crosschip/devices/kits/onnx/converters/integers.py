"""Integer matrix products and convolutions."""

from __future__ import annotations

from crosschip.devices.kits.onnx.converters.table import converts
from crosschip.devices.kits.onnx.converters.windows import window_attributes
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.integers import (
    Conv1DInteger,
    Conv2DInteger,
    Conv3DInteger,
    ConvInteger,
    MatMulInteger,
)

_TYPES = {ElementType.INT8, ElementType.UINT8, ElementType.INT32}


def _matmul_integer_limit(op: MatMulInteger) -> Refusal | None:
    if not _is_scalar(op.x_zero_point):
        return Refusal("x_zero_point", "ONNX Runtime takes one number only", Rule.SHAPE)
    ranks = [len(operand.type.shape or ()) for operand in (op.x, op.y)]
    if min(ranks) < 2:
        return Refusal("x", "has less than two axes, or they are not known", Rule.SHAPE)
    if ranks[1] > 2 and not _is_scalar(op.y_zero_point):
        return Refusal("y_zero_point", "ONNX Runtime takes several for a matrix only", Rule.SHAPE)
    return None


@converts(MatMulInteger, types=_TYPES, limit=_matmul_integer_limit, nonempty=True)
def matmul_integer(g: Graph, op: MatMulInteger) -> str:
    zero_points = (_optional(g, operand) for operand in (op.x_zero_point, op.y_zero_point))
    return g.add("MatMulInteger", g[op.x], g[op.y], *zero_points)


def _conv_integer_limit(op: ConvInteger) -> Refusal | None:
    if op.input.type.element_type is not ElementType.UINT8:
        return Refusal("input", "ONNX Runtime takes uint8 only", Rule.ELEMENT_TYPE)
    if not _is_scalar(op.filter_zero_point):
        return Refusal("filter_zero_point", "ONNX Runtime takes one number only", Rule.SHAPE)
    sizes = (op.input.type.static_shape, op.filter.type.static_shape)
    if op.auto_pad.keeps_size and None in sizes:
        return Refusal("auto_pad", f"{op.auto_pad.name}, and sizes are open", Rule.SHAPE)
    return None


@converts(
    Conv1DInteger,
    Conv2DInteger,
    Conv3DInteger,
    types=_TYPES,
    limit=_conv_integer_limit,
    nonempty=True,
)
def conv_integer(g: Graph, op: ConvInteger) -> str:
    zero_points = (_optional(g, operand) for operand in (op.input_zero_point, op.filter_zero_point))
    window = window_attributes(op)
    image, kernel = op.input.type.static_shape, op.filter.type.static_shape
    if op.auto_pad.keeps_size and image is not None and kernel is not None:
        pads = op.windows(kernel[2:]).padding(image[2:])
        window |= {"auto_pad": "NOTSET", "pads": [*pads[::2], *pads[1::2]]}
    return g.add(
        "ConvInteger",
        *(g[op.input], g[op.filter], *zero_points),
        group=op.group,
        dilations=op.dilations,
        **window,
    )


def _is_scalar(zero_point: Operand | None) -> bool:
    return zero_point is None or zero_point.type.static_shape in ((), (1,))


def _optional(g: Graph, operand: Operand | None) -> str:
    return "" if operand is None else g[operand]
