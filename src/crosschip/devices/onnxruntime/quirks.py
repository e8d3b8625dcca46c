"""Quirks of ONNX Runtime, with reproductions; see `crosschip.devices.kits.quirks`.

A reproduction is a graph in ONNX's textual form, with the inputs of the record in order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime

from crosschip.devices.kits.onnx.converters import (
    activation,
    arithmetic,
    indexing,
    joining,
    matrix,
    normalization,
    pooling,
    recurrent,
    reduction,
    searching,
)
from crosschip.devices.kits.onnx.lowering.arithmetic import (
    choice_in_wider_type,
    quotient_without_traps,
    remainder_without_traps,
)
from crosschip.devices.kits.onnx.lowering.reduction import (
    extreme_of_booleans,
    mean_of_nothing,
    nan_of_reduction,
    product_of_few,
    sum_that_wraps,
)
from crosschip.devices.kits.quirks import Differs, Quirk, Quirks, Raises
from crosschip.devices.onnxruntime import unchecked
from crosschip.hal import Converters
from crosschip.ir import Array
from crosschip.ops.standard.activation import Celu, LogSoftmax
from crosschip.ops.standard.arithmetic import Div, Mod
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.indexing import GatherND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.normalization import LRN
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.recurrent import LSTM, RNN
from crosschip.ops.standard.reduction import CumSum, ReduceMax, ReduceMean, ReduceProd, ReduceSum
from crosschip.ops.standard.searching import ArgMax, TopK
from crosschip.ops.standard.unary import Sign

NAN, INF = np.nan, np.inf


_HEAD = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>\n'


def _run(graph: Callable[[], str], quirk: Quirk) -> list[Array]:
    from onnx import parser

    try:
        model = parser.parse_model(_HEAD + graph())
    except parser.ParseError as error:
        raise SyntaxError(error) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    outputs: list[Array] = []
    for inputs in (*quirk.before, quirk.inputs):
        outputs = session.run(None, dict(zip(names, inputs, strict=True)))
    return outputs


quirk = Quirks("onnxruntime", "1.32.0", _run)


@quirk(
    Celu,
    when="alpha is 0",
    what="divides positive elements by it, too",
    avoided_by=activation.celu,
    inputs=[[0, 1]],
    right=[NAN, 1],
    wrong=[NAN, NAN],
    model=lambda b, x: b.add(Celu, x, 0.0),
)
def celu_of_no_alpha() -> str:
    return "g (float[2] x) => (float[2] y) { y = Celu <alpha: float = 0.0> (x) }"


@quirk(
    LogSoftmax,
    when="an element of float64 is NaN",
    what="loses it",
    avoided_by=activation.along_axis,
    inputs=[np.array([[1.0, NAN]])],
    right=[[NAN, NAN]],
    wrong=Differs(),
    model=lambda b, x: b.add(LogSoftmax, x),
)
def log_softmax_of_nan() -> str:
    return "g (double[1,2] x) => (double[1,2] y) { y = LogSoftmax <axis: int = -1> (x) }"


@quirk(
    Div,
    Mod,
    when="integers are divided by 0",
    what="refuses the run",
    avoided_by=[quotient_without_traps, remainder_without_traps],
    inputs=[np.array([7, 9], np.int32), np.array([0, 3], np.int32)],
    right=[0, 3],
    wrong=Raises("division by zero"),
    model=lambda b, x, y: b.add(Div, x, y),
)
def integers_by_zero() -> str:
    return "g (int32[2] x, int32[2] y) => (int32[2] z) { z = Div (x, y) }"


@quirk(
    ReduceMean,
    when="there are no elements",
    what="returns 0",
    avoided_by=mean_of_nothing,
    inputs=[np.zeros((2, 0), np.float32)],
    right=[[NAN], [NAN]],
    wrong=[[0], [0]],
    open_sizes=True,
    model=lambda b, x: b.add(ReduceMean, x, (1,), keepdim=True),
)
def mean_of_no_elements() -> str:
    return "g (float[N,M] x) => (float[N,1] y) <int64[1] axes = {1}> { y = ReduceMean (x, axes) }"


@quirk(
    ReduceMax,
    when="there are no booleans",
    what="finds no extreme, and fails",
    avoided_by=extreme_of_booleans,
    inputs=[np.zeros((2, 0), np.bool_)],
    right=[[False], [False]],
    wrong=Raises(""),
    open_sizes=True,
    model=lambda b, x: b.add(ReduceMax, x, (1,), keepdim=True),
)
def greatest_of_no_booleans() -> str:
    return "g (bool[N,M] x) => (bool[N,1] y) <int64[1] axes = {1}> { y = ReduceMax (x, axes) }"


@quirk(
    ReduceMax,
    when="an element is NaN",
    what="may leave it out",
    avoided_by=nan_of_reduction,
    inputs=[[[1, 2], [NAN, 3]]],
    right=[[NAN, 3]],
    wrong=Differs(),
    model=lambda b, x: b.add(ReduceMax, x, (0,), keepdim=True),
)
def greatest_with_nan() -> str:
    return "g (float[2,2] x) => (float[1,2] y) <int64[1] axes = {0}> { y = ReduceMax (x, axes) }"


@quirk(
    ReduceSum,
    when="integers are added, and overflow",
    what="saturates",
    avoided_by=sum_that_wraps,
    inputs=[np.array([2**63 - 1, 1])],
    right=[-(2**63)],
    wrong=[2**63 - 1],
    model=lambda b, x: b.add(ReduceSum, x, (0,), keepdim=True),
)
def sum_of_int64() -> str:
    return "g (int64[2] x) => (int64[1] y) <int64[1] axes = {0}> { y = ReduceSum (x, axes) }"


@quirk(
    ReduceProd,
    when="integers of int64 are multiplied",
    what="multiplies them as float64",
    avoided_by=product_of_few,
    inputs=[np.array([2**53 + 1, 1])],
    right=[2**53 + 1],
    wrong=[2**53],
    model=lambda b, x: b.add(ReduceProd, x, (0,), keepdim=True),
)
def product_of_int64() -> str:
    return "g (int64[2] x) => (int64[1] y) <int64[1] axes = {0}> { y = ReduceProd (x, axes) }"


@quirk(
    CumSum,
    when="there are no elements, and the axis is out of range",
    what="does not check",
    avoided_by=reduction.cum_sum,
    inputs=[np.zeros((2, 0), np.float32), np.array(7)],
    right=Raises("axis"),
    wrong=np.zeros((2, 0), np.float32),
)
def axis_beyond_nothing() -> str:
    return "g (float[N,M] x, int64 axis) => (float[N,M] y) { y = CumSum (x, axis) }"


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
    Where,
    when="it chooses between integers of int16, uint16 or uint64, or booleans",
    what="has no kernel",
    avoided_by=choice_in_wider_type,
    inputs=[np.array([True, False]), np.array([1, 2], np.uint64), np.array([3, 4], np.uint64)],
    right=[1, 4],
    wrong=Raises("NOT_IMPLEMENTED"),
    model=lambda b, c, x, y: b.add(Where, c, x, y),
)
def choice_between_uint64() -> str:
    return "g (bool[2] c, uint64[2] x, uint64[2] y) => (uint64[2] z) { z = Where (c, x, y) }"


@quirk(
    ArgMax,
    when="an element is NaN",
    what="ignores it",
    avoided_by=searching.arg_extreme,
    inputs=[[1, NAN, 3]],
    right=1,
    wrong=2,
    model=lambda b, x: b.add(ArgMax, x, 0, keepdim=False),
)
def place_of_nan() -> str:
    return "g (float[3] x) => (int64 y) { y = ArgMax <axis: int = 0, keepdims: int = 0> (x) }"


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
    GatherND,
    when="an index is out of range, and the gathered slices are empty",
    what="does not check",
    avoided_by=indexing.gather_nd,
    inputs=[np.zeros((2, 0), np.float32), np.array([[7]])],
    right=Raises("indices"),
    wrong=np.zeros((1, 0), np.float32),
)
def place_of_nothing() -> str:
    return "g (float[N,M] x, int64[1,1] i) => (float[1,M] y) { y = GatherND (x, i) }"


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
    Concat,
    when="a part is empty, and its other dimensions do not fit",
    what="ignores it",
    avoided_by=[unchecked.sizes, joining.concat],
    inputs=[np.ones((2, 3), np.float32), np.zeros((0, 5), np.float32)],
    right=Raises(),
    wrong=np.ones((2, 3), np.float32),
)
def part_of_nothing() -> str:
    return "g (float[A,B] x, float[C,D] y) => (float[E,F] z) { z = Concat <axis: int = 0> (x, y) }"


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
    Sign,
    when="an element of float16 is NaN",
    what="returns 0",
    avoided_by=Converters.supports,
    inputs=[np.array([NAN, -2], np.float16)],
    right=[NAN, -1],
    wrong=[0, -1],
    model=lambda b, x: b.add(Sign, x),
)
def sign_of_nan() -> str:
    return "g (float16[2] x) => (float16[2] y) { y = Sign (x) }"


@quirk(
    MatMul,
    when="sums of unsigned integers are over no elements",
    what="makes signed integers, and fails",
    avoided_by=matrix.matmul,
    inputs=[np.zeros((2, 0), np.uint32), np.zeros((0, 3), np.uint32)],
    right=np.zeros((2, 3), np.uint32),
    wrong=Raises("MatMul"),
    open_sizes=True,
    model=lambda b, x, y: b.add(MatMul, x, y),
)
def unsigned_sums_over_nothing() -> str:
    return "g (uint32[N,K] x, uint32[K,M] y) => (uint32[N,M] z) { z = MatMul (x, y) }"


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
    Mod,
    when="integers of int64 take the sign of the dividend",
    what="computes in float64",
    avoided_by=arithmetic.mod,
    versions="1.31.1",
    fixed_in="1.32.0",
    inputs=[np.array([2**53 + 1]), np.array([2**53])],
    right=[1],
    wrong=[0],
    model=lambda b, x, y: b.add(Mod, x, y, fmod=True),
)
def remainder_of_int64() -> str:
    return "g (int64[1] x, int64[1] y) => (int64[1] z) { z = Mod <fmod: int = 1> (x, y) }"


@quirk(
    ReduceSum,
    ReduceMax,
    when="there are no elements, and axes count from the end",
    what="does not find them",
    avoided_by=reduction.reduce,
    versions="1.31.1",
    fixed_in="1.32.0",
    inputs=[np.zeros((2, 0), np.float32)],
    right=[[0], [0]],
    wrong=np.zeros((2, 0), np.float32),
    open_sizes=True,
    model=lambda b, x: b.add(ReduceSum, x, (-1,), keepdim=True),
)
def axes_of_nothing() -> str:
    return "g (float[N,M] x) => (float[N,1] y) <int64[1] axes = {-1}> { y = ReduceSum (x, axes) }"


@quirk(
    TopK,
    when="an element is NaN",
    what="sorts it and other elements wrongly",
    avoided_by=searching.top_k,
    versions="1.31.1",
    fixed_in="1.32.0",
    inputs=[[1, NAN, 3, 2, NAN, 7, 5, 4]],
    right=[NAN, NAN, 7],
    wrong=[NAN, 7, 5],
    model=lambda b, x: b.add_all(TopK, x, 3)[0],
)
def order_of_nan() -> str:
    return "g (float[8] x) => (float[3] y) <int64[1] k = {3}> { y, i = TopK (x, k) }"
