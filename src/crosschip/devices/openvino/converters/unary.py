"""Elementwise functions of one operand."""

from __future__ import annotations

from collections.abc import Callable

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import FLOAT_TYPES, INTEGER_TYPES, converts, same
from crosschip.devices.openvino.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import unary

_OF_FLOATS: dict[type[Operator], Callable[..., Node]] = {
    unary.Sqrt: ops.sqrt,
    unary.Exp: ops.exp,
    unary.Log: ops.log,
    unary.Erf: ops.erf,
    unary.Floor: ops.floor,
    unary.Ceil: ops.ceiling,
    unary.Sin: ops.sin,
    unary.Cos: ops.cos,
    unary.Tan: ops.tan,
    unary.Asin: ops.asin,
    unary.Acos: ops.acos,
    unary.Atan: ops.atan,
    unary.Sinh: ops.sinh,
    unary.Cosh: ops.cosh,
    unary.Asinh: ops.asinh,
    unary.Acosh: ops.acosh,
    unary.Atanh: ops.atanh,
}

for _operator, _function in _OF_FLOATS.items():
    converts(_operator)(same(_function))

_SIGNED = INTEGER_TYPES - {ElementType.UINT16}
converts(unary.Abs, types=FLOAT_TYPES | INTEGER_TYPES)(same(ops.abs))
converts(unary.Neg, types=FLOAT_TYPES | _SIGNED)(same(ops.negative))
converts(unary.Sign, types=FLOAT_TYPES | INTEGER_TYPES)(same(ops.sign))
converts(unary.IsNaN, types=FLOAT_TYPES | BOOLEANS)(same(ops.is_nan))


@converts(unary.Round)
def round_(g: Graph, op: unary.Round) -> Node:
    return ops.round(g[op.input], "half_to_even")


@converts(unary.IsInf, types=FLOAT_TYPES | BOOLEANS)
def is_inf(g: Graph, op: unary.IsInf) -> Node:
    signs = {"detect_negative": op.detect_negative, "detect_positive": op.detect_positive}
    return ops.is_inf(g[op.input], signs)
