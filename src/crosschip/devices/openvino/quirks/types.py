"""Quirks of element types, quantized models and saved programs."""

from __future__ import annotations

import numpy as np
import openvino
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.quirks import Differs, Raises
from crosschip.devices.openvino import precision, program
from crosschip.devices.openvino.converters import table
from crosschip.devices.openvino.lowering import chains
from crosschip.devices.openvino.lowering.conversion import choice_of_reals
from crosschip.devices.openvino.lowering.elementwise import absolute_of_negative
from crosschip.devices.openvino.lowering.quantization import dequantized_addends, quantizes_nan
from crosschip.devices.openvino.quirks.elementwise import number
from crosschip.devices.openvino.quirks.registry import quirk
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.unary import Abs

LEAST = float(np.finfo(np.float32).min)


@quirk(
    Add,
    when="reals are float64",
    what="computes them in float32",
    avoided_by=table.check_uint32,
    inputs=[np.array([1 + 1e-10])],
    right=np.array([2 + 2e-10]),
    wrong=np.array([2.0]),
    tolerance=1e-12,
    model=lambda b, x: b.add(Add, x, x),
)
def float64_as_float32(x: Node) -> Node:
    return ops.add(x, x)


@quirk(
    Add,
    when="integers of 64 bits do not fit in 32",
    what="computes them in 32 bits",
    avoided_by=table.check_uint32,
    inputs=[np.array([2**31])],
    right=[2**32],
    wrong=[0],
    model=lambda b, x: b.add(Add, x, x),
)
def int64_in_32_bits(x: Node) -> Node:
    return ops.add(x, x)


@quirk(
    Less,
    when="integers of uint32 are 2 ** 31 or more",
    what="treats them as negative int32",
    avoided_by=table.check_uint32,
    inputs=[np.array([2**31, 1], np.uint32), np.array([1, 2**31], np.uint32)],
    right=[False, True],
    wrong=[True, False],
    model=lambda b, x, y: b.add(Less, x, y),
)
def uint32_as_int32(x: Node, y: Node) -> Node:
    return ops.less(x, y)


@quirk(
    Abs,
    when="its operand is a negated constant",
    what="skips it",
    avoided_by=absolute_of_negative,
    inputs=[[0, 0]],
    right=[1, 2],
    wrong=[-1, 2],
)
def absolute_of_negated(x: Node) -> Node:
    return ops.add(x, ops.abs(ops.negative(ops.constant(np.array([1, -2], np.float32)))))


def product_of_bytes(x: Node, size: int = 4, weight: int = 1) -> Node:
    """Multiply floats, which are whole numbers from 0 to 255, by a matrix of constant bytes."""
    low, high = number(0), number(255)
    weights = ops.convert(ops.constant(np.full((size, size), weight, np.int8)), "f32")
    steps = ops.fake_quantize(x, low, high, low, high, 256)
    return ops.matmul(steps, ops.multiply(weights, number(1)), False, False)


@quirk(
    MatMul,
    Quantize,
    when="bytes are multiplied without VNNI",
    what="cuts sums of two products off at 16 bits",
    avoided_by=[precision.exact_bytes, precision.multiplies_bytes],
    inputs=[np.full((1, 64), 255, np.float32)],
    right=np.full((1, 64), 255 * 127 * 64, np.float32),
    wrong=Differs(),
    environment={"ONEDNN_MAX_CPU_ISA": "AVX2"},
)
def products_of_bytes_cut_off(x: Node) -> Node:
    return product_of_bytes(x, 64, 127)


_FLAGS = np.array([[True, False, True, False]])
_ONES = np.ones((1, 4), np.float32)


@quirk(
    Cast,
    when="a model of bytes multiplies converted booleans by a mask's least number, and adds to it",
    what="treats them as quantized bytes, and fails to compile, or adds to the bytes",
    avoided_by=choice_of_reals,
    inputs=[_ONES, _FLAGS, _ONES],
    right=(_ONES * 4, _FLAGS * LEAST + _ONES),
    wrong=Raises("boolean"),
)
def flags_among_bytes(x: Node, flags: Node, y: Node) -> tuple[Node, Node]:
    mask = ops.multiply(ops.convert(flags, "f32"), number(LEAST))
    return product_of_bytes(x), ops.add(mask, y)


_TABLE = np.array([[130, 7, 90, 1]], np.uint8)
_MASK = np.array([[0, LEAST, 0, 0]], np.float32)


@quirk(
    Dequantize,
    when="a mask is added to dequantized bytes",
    what="adds the mask divided by the scale, which is infinite, to the bytes",
    avoided_by=dequantized_addends,
    inputs=[_ONES, _TABLE, _MASK],
    right=4 + (_TABLE.astype(np.float32) - 127) * np.float32(0.197) + _MASK,
    wrong=Differs(),
)
def mask_on_bytes(x: Node, table: Node, mask: Node) -> Node:
    zero = ops.convert(ops.constant(np.array(127, np.uint8)), "f32")
    reals = ops.multiply(ops.subtract(ops.convert(table, "f32"), zero), number(0.197))
    return ops.add(product_of_bytes(x), ops.add(reals, mask))


@quirk(
    Quantize,
    when="dimensions are dynamic, and an element is NaN",
    what="returns the greatest byte; the least with static dimensions",
    avoided_by=quantizes_nan,
    inputs=[[[np.nan, 1]]],
    right=np.array([[0, 255]], np.uint8),
    wrong=np.array([[255, 255]], np.uint8),
    open_sizes=True,
)
def byte_of_nan(x: Node) -> Node:
    ends = (number(-1), number(1), number(0), number(255))
    return ops.convert(ops.fake_quantize(x, *ends, 256), "u8")


_RANDOM = np.random.default_rng(4)
_WEIGHTS = _RANDOM.integers(-128, 128, (2, 16, 16)).astype(np.int8)
_ROWS = _RANDOM.standard_normal((4, 16)).astype(np.float32)


def _rounded(reals: np.ndarray, scale: float, zero: int) -> np.ndarray:
    steps = np.clip(np.round(reals / np.float32(scale)) + zero, 0, 255)
    return (steps - zero) * np.float32(scale)


def _chain() -> np.ndarray:
    rows = _rounded(_ROWS, 0.0224, 124)
    for weight in _WEIGHTS:
        rows = _rounded(rows @ (weight * np.float32(0.0035)), 0.25, 128)
    return rows


@quirk(
    MatMul,
    when="quantized products of a few rows follow each other",
    what="computes garbage in one fused kernel",
    avoided_by=chains.wrongly_chained_products,
    inputs=[_ROWS],
    right=_chain(),
    wrong=Differs(),
    processor="avx512f",
)
def chained_bytes(x: Node) -> Node:
    def rounded(node: Node, scale: float, zero: int) -> Node:
        ends = [number((end - zero) * scale) for end in (0, 255)]
        return ops.fake_quantize(node, *ends, *ends, 256)

    rows = rounded(x, 0.0224, 124)
    for weight in _WEIGHTS:
        reals = ops.multiply(ops.convert(ops.constant(weight), "f32"), number(0.0035))
        rows = rounded(ops.matmul(rows, reals, False, False), 0.25, 128)
    return rows


@quirk(
    when="a program that was loaded is saved",
    what="writes data that it cannot read",
    avoided_by=program.OpenVinoProgram.save,
    inputs=[[1]],
    right=[1],
    wrong=Raises("Unable to read the model"),
)
def saved_twice(x: Node) -> Node:
    core = openvino.Core()
    compiled = core.compile_model(openvino.Model([ops.relu(x)], [x]), "CPU")
    for _ in range(2):
        compiled = core.import_model(compiled.export_model().getvalue(), "CPU")
    return ops.relu(x)
