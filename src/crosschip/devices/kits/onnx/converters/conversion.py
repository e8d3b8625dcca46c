"""Conversion of element types."""

from __future__ import annotations

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.standard import conversion

_FLOAT8_TYPES = {
    *(ElementType.FLOAT8E4M3FN, ElementType.FLOAT8E4M3FNUZ),
    *(ElementType.FLOAT8E5M2, ElementType.FLOAT8E5M2FNUZ),
}


def _cast_limit(op: conversion.Cast) -> Refusal | None:
    source_type = op.input.type.element_type
    if source_type in _FLOAT8_TYPES and op.dtype is ElementType.BOOL:
        return Refusal("input", f"-0 of {source_type} is true to ONNX Runtime", Rule.ELEMENT_TYPE)
    if op.dtype in _FLOAT8_TYPES and not op.saturate:
        return Refusal("saturate", "must be true: where the range ends is rounded otherwise")
    return None


@converts(conversion.Cast, types=MOVABLE | _FLOAT8_TYPES, limit=_cast_limit)
def cast(g: Graph, op: conversion.Cast) -> str:
    return g.cast(g[op.input], op.dtype.dtype)
