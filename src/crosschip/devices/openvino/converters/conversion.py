"""Changes of element type, or of nothing."""

from __future__ import annotations

import numpy as np
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    MOVABLE,
    converts,
    near,
    whole,
)
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal
from crosschip.ir import ElementType
from crosschip.ops.standard import conversion
from crosschip.ops.standard.conversion import Assign


def _narrow(op: conversion.Cast) -> Refusal | None:
    own = op.input.type.element_type
    if op.dtype is ElementType.BOOL and own is ElementType.UINT32:
        return Refusal("input", "uint32 is false from 2 ** 31 on")
    return near(op)


@converts(conversion.Cast, types=MOVABLE, limit=_narrow)
def cast(g: Graph, op: conversion.Cast) -> Value:
    if op.dtype is ElementType.BOOL:
        # To OpenVINO, NaN is false.
        return ops.not_equal(g[op.input], g.number(0, op.input))
    if op.dtype is ElementType.FLOAT32:
        if op.input.type.element_type is ElementType.BOOL:
            # Flags are bytes to OpenVINO, and the product of converted ones with a mask's -FLT_MAX
            # a dequantization: it would add what follows to the bytes, divided by that, which makes
            # nothing of it.
            return ops.select(g[op.input], *(g.constant(np.array(n, np.float32)) for n in (1, 0)))
        return whole(g[op.input])
    return ops.convert(g[op.input], TYPES[op.dtype])


@converts(Assign, types=MOVABLE, limit=near)
def assign(g: Graph, op: Assign) -> Value:
    return g[op.input]
