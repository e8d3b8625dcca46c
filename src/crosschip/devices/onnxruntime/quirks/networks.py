"""Quirks of convolutions, poolings, normalizations, products and recurrent networks."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters import (
    matrix,
    normalization,
    pooling,
    quantization,
    recurrent,
    sampling,
)
from crosschip.devices.kits.onnx.lowering.networks import vector_as_matrix
from crosschip.devices.kits.quirks import Differs, Raises
from crosschip.devices.onnxruntime import unchecked
from crosschip.devices.onnxruntime.lowering import (
    copy_shared_weights,
    unsigned_factors,
    unsigned_filters,
)
from crosschip.devices.onnxruntime.quirks.registry import quirk
from crosschip.ir import Builder, Operand, Quantization
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.integers import MatMulInteger
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.normalization import LRN
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.recurrent import LSTM, RNN
from crosschip.ops.standard.sampling import RoiAlign

NAN, INF = np.nan, np.inf

_VNNI = ("avx512_vnni", "avx_vnni")
"""The processor features with which products of bytes do not saturate."""


@quirk(
    MaxPool2D,
    when="the image is smaller than a window",
    what="returns no pixels",
    avoided_by=pooling.max_pool,
    inputs=[np.ones((1, 1, 2, 2), np.float32)],
    right=Raises(),
    wrong=np.zeros((1, 1, 0, 0), np.float32),
)
def window_beyond_image() -> str:
    return "g (float[1,1,H,W] x) => (float[1,1,A,B] y) { y = MaxPool <kernel_shape = [3, 3]> (x) }"


@quirk(
    RNN,
    when="an activation is SOFTPLUS, and its input large",
    what="returns infinity, since the exponential overflows",
    avoided_by=recurrent.recurrent,
    inputs=[[[[100]]]],
    right=([[[[100]]]],),
    wrong=([[[[INF]]]],),
    tolerance=1e-3,
)
def softplus_in_cells() -> str:
    return """g (float[1,1,1] x) => (float[1,1,1,1] y) <float[1,1,1] w = {1.0}> {
        y = RNN <hidden_size: int = 1, activations = ["Softplus"]> (x, w, w)
    }"""


@quirk(
    MatMul,
    when="a matrix of several is transposed and multiplied by a vector",
    what="fuses the transposition into a product that is wrong",
    avoided_by=matrix.matmul,
    inputs=[np.arange(12, dtype=np.float32).reshape(2, 2, 3), [1, 2]],
    right=[[6, 9, 12], [24, 27, 30]],
    wrong=Differs(),
)
def transposed_times_vector() -> str:
    return """g (float[2,2,3] x, float[2] y) => (float[2,3] z) {
        t = Transpose <perm = [0, 2, 1]> (x)
        z = MatMul (t, y)
    }"""


@quirk(
    LRN,
    when="the bias is small beside squares",
    what="keeps a running sum of squares, which accumulates rounding errors",
    avoided_by=normalization.lrn,
    inputs=[np.array([3000, 0, 0, 1], np.float32).reshape(1, 4, 1, 1)],
    right=[[[[3000 / (1e-6 + 3000**2)]], [[0]], [[0]], [[1 / (1e-6 + 1)]]]],
    wrong=Differs(),
    tolerance=1e-3,
    model=lambda b, x: b.add(LRN, x, 1, alpha=1.0, beta=1.0, bias=1e-6),
)
def squares_taken_away() -> str:
    return """g (float[1,4,1,1] x) => (float[1,4,1,1] y) {
        y = LRN <alpha: float = 1.0, beta: float = 1.0, bias: float = 0.000001, size: int = 1> (x)
    }"""


@quirk(
    Conv2D,
    when="the image has no pixels",
    what="refuses the run",
    avoided_by=unchecked.sizes,
    inputs=[np.zeros((1, 1, 0, 3), np.float32)],
    right=np.zeros((1, 1, 0, 3), np.float32),
    wrong=Raises("Invalid input shape"),
    open_sizes=True,
)
def convolution_of_nothing() -> str:
    return """g (float[1,1,H,W] x) => (float[1,1,A,B] y) <float[1,1,1,1] w = {1.0}> {
        y = Conv (x, w)
    }"""


@quirk(
    LSTM,
    when="the arguments of activations are clipped",
    what="does not clip the last one's argument",
    avoided_by=recurrent.recurrent,
    inputs=[[[[1]]]],
    right=([[[[0.5 * np.tanh(0.1)]]]],),
    wrong=([[[[0.5 * np.tanh(2.5)]]]],),
)
def last_function_of_lstm() -> str:
    return """g (float[1,1,1] x) => (float[1,1,1,1] y)
        <float[1,4,1] w = {0.0, 0.0, 0.0, 0.0}, float[1,1,1] h = {0.0}, float[1,1,1] c = {5.0},
         float[1,8] b = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, int32[1] s = {1}> {
        y = LSTM <hidden_size: int = 1, clip: float = 0.1> (x, w, w, b, s, h, c)
    }"""


@quirk(
    RoiAlign,
    when="a region has a negative extent, and the number of samples is computed",
    what="refuses the run",
    avoided_by=sampling.roi_align,
    inputs=[np.ones((1, 1, 4, 4), np.float32), np.array([[3, 0, 1, 3]], np.float32)],
    right=[[[[0, 0], [0, 0]]]],
    wrong=Raises("RoiAlign"),
)
def region_of_negative_extent() -> str:
    return """g (float[1,1,4,4] x, float[1,4] r) => (float[1,1,2,2] y) <int64[1] b = {0}> {
        y = RoiAlign <coordinate_transformation_mode = "half_pixel", output_height: int = 2,
            output_width: int = 2, sampling_ratio: int = 0> (x, r, b)
    }"""


@quirk(
    MatMul,
    when="a matrix without rows is multiplied by a vector",
    what="refuses the run",
    avoided_by=vector_as_matrix,
    versions="1.31.1",
    fixed_in="1.32.0",
    inputs=[np.ones((0, 3), np.float32), [1, 2, 3]],
    right=[],
    wrong=Raises("cannot broadcast"),
    open_sizes=True,
    model=lambda b, x, y: b.add(MatMul, x, y),
)
def no_rows_times_vector() -> str:
    return "g (float[N,M] x, float[K] y) => (float[A] z) { z = MatMul (x, y) }"


@quirk(
    Dequantize,
    when="int32 with a zero point is multiplied by dequantized weights",
    what="fuses them into a product of bytes, which refuses int32",
    avoided_by=quantization.add_dequantize,
    inputs=[np.array([[2, 4]], np.int32)],
    right=[[2.5]],
    wrong=Raises("QGemm"),
)
def product_of_int32() -> str:
    return """g (int32[1,2] x) => (float[1,1] y)
    <float s = {0.5}, int32 o = {0}, int8 z = {0}, int8[2,1] w = {1, 2}> {
        a = DequantizeLinear (x, s, o)
        b = DequantizeLinear (w, s, z)
        y = Gemm (a, b)
    }"""


@quirk(
    MatMulInteger,
    when="unsigned bytes are multiplied by signed ones that are computed",
    what="cuts sums of two products off at 16 bits",
    avoided_by=[unsigned_factors, unsigned_filters],
    inputs=[np.full((1, 64), 255, np.uint8), np.full((64, 1), 127, np.int8)],
    right=np.array([[255 * 127 * 64]], np.int32),
    wrong=Differs(),
    without=_VNNI,
    model=lambda b, x, y: b.add(MatMulInteger, x, y),
)
def products_of_bytes() -> str:
    return "g (uint8[1,64] x, int8[64,1] y) => (int32[1,1] z) { z = MatMulInteger (x, y) }"


def _two_products(b: Builder, x: Operand, y: Operand) -> tuple[Operand, ...]:
    stored = np.array([[4], [127]], np.int8)
    weight = b.add(Dequantize, b.constant(stored, quantization=Quantization((0.5,))))
    return b.add(MatMul, x, weight), b.add(MatMul, y, weight)


@quirk(
    MatMul,
    when="several products read a dequantized weight of int8 with elements beyond 64",
    what="refuses the model, if products of bytes must not saturate",
    avoided_by=copy_shared_weights,
    without=_VNNI,
    inputs=[np.array([[2, 4]], np.float32), np.array([[1, 0]], np.float32)],
    right=([[258]], [[2]]),
    wrong=Raises("Attempt to replace the existing tensor"),
    model=_two_products,
)
def shared_weight() -> str:
    return """g (float[1,2] x, float[1,2] u) => (float[1,1] y, float[1,1] z)
    <float s = {0.5}, int8 o = {0}, int8[2,1] w = {4, 127}> {
        a = DequantizeLinear (w, s, o)
        y = MatMul (x, a)
        z = MatMul (u, a)
    }"""
