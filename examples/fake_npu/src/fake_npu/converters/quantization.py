"""Conversion of reals to bytes and back, on the chip; at its borders the driver does it."""

from __future__ import annotations

from crosschip.hal import Refusal, Rule
from crosschip.ops.standard.quantization import Dequantize, Quantize
from fake_npu.assembly import Assembly
from fake_npu.converters.table import MOVED, converters
from fake_npu.forms import BYTES
from fake_npu_ddk import Operator


def _computed(op: Dequantize | Quantize) -> Refusal | None:
    return Refusal("input", "is constant") if op.input.is_constant else None


@converters.converts(Dequantize, types=MOVED, limit=_computed)
def dequantize(g: Assembly, op: Dequantize) -> int:
    return g.add(Operator.CONVERT, [g[op.input]], op)


def _one_scale(op: Quantize) -> Refusal | None:
    if op.dtype not in BYTES:
        return Refusal("dtype", f"{op.dtype}", Rule.ELEMENT_TYPE)
    if len(op.scale) != 1:
        return Refusal("scale", "one for each index of an axis")
    return _computed(op)


@converters.converts(Quantize, types=MOVED, limit=_one_scale)
def quantize(g: Assembly, op: Quantize) -> int:
    return g.add(Operator.CONVERT, [g[op.input]], op)
