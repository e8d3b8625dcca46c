"""Elementwise operators with one operand."""

from __future__ import annotations

from crosschip.devices.kits.onnx.converters.table import FLOAT_TYPES, NARROW_FLOATS, converts, same
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS, INTEGERS
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import unary

_SIGNED = {ElementType.INT8, ElementType.INT16, ElementType.INT32, ElementType.INT64}

_OF_FLOATS: dict[type[Operator], str] = {
    unary.Sqrt: "Sqrt",
    unary.Reciprocal: "Reciprocal",
    unary.Exp: "Exp",
    unary.Log: "Log",
    unary.Floor: "Floor",
    unary.Ceil: "Ceil",
    unary.Round: "Round",
    unary.Sin: "Sin",
    unary.Cos: "Cos",
}
_OF_NARROW_FLOATS: dict[type[Operator], str] = {
    unary.Erf: "Erf",
    unary.Tan: "Tan",
    unary.Asin: "Asin",
    unary.Acos: "Acos",
    unary.Atan: "Atan",
    unary.Sinh: "Sinh",
    unary.Cosh: "Cosh",
    unary.Asinh: "Asinh",
    unary.Acosh: "Acosh",
    unary.Atanh: "Atanh",
}

for _operator, _node in _OF_FLOATS.items():
    converts(_operator)(same(_node))
for _operator, _node in _OF_NARROW_FLOATS.items():
    converts(_operator, types=NARROW_FLOATS)(same(_node))

converts(unary.Abs, types=FLOAT_TYPES | INTEGERS)(same("Abs"))
converts(unary.Neg, types=FLOAT_TYPES | _SIGNED)(same("Neg"))
# ONNX Runtime returns 0 for NaN in float16 (quirk sign-of-nan).
converts(unary.Sign, types=(FLOAT_TYPES | INTEGERS) - {ElementType.FLOAT16})(same("Sign"))
converts(unary.IsNaN, types=FLOAT_TYPES | BOOLEANS)(same("IsNaN"))


@converts(unary.IsInf, types=FLOAT_TYPES | BOOLEANS)
def is_inf(g: Graph, op: unary.IsInf) -> str:
    signs = {"detect_negative": int(op.detect_negative), "detect_positive": int(op.detect_positive)}
    return g.add("IsInf", g[op.input], **signs)
