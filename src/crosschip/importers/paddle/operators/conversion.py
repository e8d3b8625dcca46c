"""Conversions of element types, and copies."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.quantization import Dequantize, Quantize


@imports("cast")
def cast(op: Context) -> None:
    op.make(Cast, op.input(), op.element_type("out_dtype"))


@imports("calib")
def calib(op: Context) -> None:
    """Quantize to int8, `round(x / scale)`, or dequantize; Paddle Lite inserts this operator.

    Source: lite/kernels/nnadapter/converter/calib.cc of Paddle Lite.
    """
    x, scale = op.input("Input"), op.real("scale")
    is_real = x.type.element_type is ElementType.FLOAT32
    if is_real and op.element_type("out_dtype") is ElementType.FLOAT32:
        op.define(x)
    elif is_real:
        op.make(Quantize, x, scale=(scale,), dtype=ElementType.INT8)
    elif x.type.quantization is not None:
        op.make(Dequantize, x)
    else:
        op.make(Mul, op.add(Cast, x, ElementType.FLOAT32), np.float32(scale))


@imports("assign", "share_data", "lod_reset")
def assign(op: Context) -> None:
    """Import `assign`: the input; the new LoD of `lod_reset` is ignored."""
    op.define(op.input())


@imports("print")
def print(op: Context) -> None:
    """Import `print`: the input, which is not printed."""
    op.define(op.input("In"))
