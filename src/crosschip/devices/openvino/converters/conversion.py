"""Casts and copies."""

from __future__ import annotations

from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import MOVABLE, check_uint32, converts, whole
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal
from crosschip.ir import ElementType
from crosschip.ops.standard import conversion
from crosschip.ops.standard.conversion import Assign


def _check_cast(op: conversion.Cast) -> Refusal | None:
    input_type = op.input.type.element_type
    if op.dtype is ElementType.BOOL and input_type is ElementType.UINT32:
        return Refusal("input", "uint32 is false from 2 ** 31 on")
    return check_uint32(op)


@converts(conversion.Cast, types=MOVABLE, limit=_check_cast)
def cast(g: Graph, op: conversion.Cast) -> Value:
    if op.dtype is ElementType.FLOAT32:
        return whole(g[op.input])
    return ops.convert(g[op.input], TYPES[op.dtype])


@converts(Assign, types=MOVABLE, limit=check_uint32)
def assign(g: Graph, op: Assign) -> Value:
    return g[op.input]
