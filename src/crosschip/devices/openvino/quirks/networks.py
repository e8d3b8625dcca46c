"""Quirks of convolutions, pooling, matrix products, normalizations and recurrent networks."""

from __future__ import annotations

import numpy as np
import openvino
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.kits.quirks import Dies, Differs, Raises
from crosschip.devices.openvino import instruction_sets
from crosschip.devices.openvino.converters import (
    convolution,
    matrix,
    normalization,
    pooling,
    recurrent,
    reduction,
    suppression,
)
from crosschip.devices.openvino.lowering import chains
from crosschip.devices.openvino.lowering import convolution as convolutions
from crosschip.devices.openvino.lowering.nan import nan_and_infinity_of_reduction
from crosschip.devices.openvino.lowering.reduction import (
    apart_from_constants,
    apart_from_normalization,
    apart_from_scales,
)
from crosschip.devices.openvino.lowering.sampling import zero_for_no_samples
from crosschip.devices.openvino.quirks.registry import quirk
from crosschip.devices.openvino.quirks.shapes import integers
from crosschip.ir import Quantization, constant
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Div, Mul
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.matrix import FullyConnected, MatMul, MatMulNBits
from crosschip.ops.standard.normalization import (
    LRN,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
)
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.recurrent import LSTM
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean, ReduceMin, ReduceSum
from crosschip.ops.standard.sampling import RoiAlign
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

NAN, INF = np.nan, np.inf
PIXELS = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)


def floats(values: object) -> Node:
    """Create a float32 constant."""
    return ops.constant(np.array(values, np.float32))


@quirk(
    Conv2D,
    when="the kernel is one pixel, with strides and padding, and the image is computed",
    what="applies the strides to the image before the padding",
    avoided_by=convolutions.without_strided_padding,
    inputs=[PIXELS],
    right=[[[[0, 0, 0], [0, 5, 0], [0, 0, 0]]]],
    wrong=Differs(),
    model=lambda b, x: b.add(
        Conv2D, b.add(Relu, x), np.ones((1, 1, 1, 1), np.float32), strides=(2, 2), pads=(1, 1, 1, 1)
    ),
)
def strides_over_padding(x: Node) -> Node:
    return ops.convolution(ops.relu(x), floats([[[[1]]]]), [2, 2], [1, 1], [1, 1], [1, 1])


_INTEGERS = np.array([2, 4], np.int8).reshape(2, 1, 1, 1)
_FILTERS = constant(_INTEGERS, "filters", Quantization((0.5,)))


@quirk(
    Conv2D,
    when="the kernel is one pixel of dequantized integers, with strides or padding, and the image "
    "or the result is transposed",
    what="multiplies matrices without strides and padding, and may read beyond the image",
    avoided_by=convolutions.filter_itself,
    inputs=[PIXELS],
    right=[[[[1, 2], [3, 6]], [[7, 14], [9, 18]]]],
    wrong=Differs(),
    model=lambda b, x: b.add(
        *(Transpose, b.add(Conv2D, x, _FILTERS, strides=(2, 2)), (0, 2, 3, 1))
    ),
)
def strides_of_pixels(x: Node) -> Node:
    steps = ops.convert(ops.constant(_INTEGERS), "f32")
    filters = ops.multiply(steps, floats(np.full((1, 1, 1, 1), 0.5)))
    result = ops.convolution(x, filters, [2, 2], [0, 0], [0, 0], [1, 1])
    return ops.transpose(result, integers(0, 2, 3, 1))


_TALL = np.arange(1, 33, dtype=np.float32).reshape(1, 1, 8, 4)
_PAIRS = np.ones((16, 1, 1, 2), np.float32)


@quirk(
    Conv2D,
    when="there is one channel, only horizontal strides, and one column of results",
    what="reads the image with the wrong stride",
    avoided_by=convolutions.without_lone_column,
    inputs=[_TALL[..., :3]],
    right=np.broadcast_to(_TALL[:, :, :, :1] + _TALL[:, :, :, 1:2], (1, 16, 8, 1)),
    wrong=Differs(),
    processor="avx512f",
    model=lambda b, x: b.add(Conv2D, x, _PAIRS, strides=(1, 2)),
)
def lone_column(x: Node) -> Node:
    return ops.convolution(x, floats(_PAIRS), [1, 2], [0, 0], [0, 0], [1, 1])


@quirk(
    Conv2D,
    when="image and filter are constant, and the bias is not",
    what="adds the bias once more in each run",
    avoided_by=convolution.conv,
    inputs=[[1]],
    before=[[[1]]] * 2,
    right=PIXELS + 1,
    wrong=PIXELS + 3,
    model=lambda b, x: b.add(Conv2D, PIXELS, np.ones((1, 1, 1, 1), np.float32), x),
)
def constant_convolution(bias: Node) -> Node:
    image = ops.convolution(floats(PIXELS), floats([[[[1]]]]), [1, 1], [0, 0], [0, 0], [1, 1])
    return ops.add(image, ops.reshape(bias, integers(1, 1, 1, 1), False))


@quirk(
    MatMul,
    FullyConnected,
    when="the summed dimension is dynamic and differs from the constant's",
    what="reads beyond the end of the shorter one",
    avoided_by=matrix.require_same_size,
    inputs=[np.ones((2, 3), np.float32)],
    right=Raises(),
    wrong=Differs(),
    dies=True,
    open_sizes=True,
)
def sums_of_different_lengths(x: Node) -> Node:
    return ops.matmul(x, floats(np.ones((4, 2))), False, False)


@quirk(
    MatMul,
    when="one batch is dynamic, and that of a constant is larger",
    what="does not broadcast it",
    avoided_by=matrix.matmul,
    inputs=[np.ones((1, 2, 2), np.float32)],
    right=np.full((3, 2, 2), 2, np.float32),
    wrong=Raises("incompatible"),
    open_sizes=True,
    model=lambda b, x: b.add(MatMul, x, np.ones((3, 2, 2), np.float32)),
)
def stretched_batch(x: Node) -> Node:
    return ops.matmul(x, floats(np.ones((3, 2, 2))), False, False)


@quirk(
    MatMul,
    when="integers of more than 24 bits are multiplied",
    what="computes in float32",
    avoided_by=matrix.matmul,
    inputs=[np.array([[2**24 + 1]], np.int32), np.array([[1]], np.int32)],
    right=[[2**24 + 1]],
    wrong=[[2**24]],
    model=lambda b, x, y: b.add(MatMul, x, y),
)
def product_of_large_integers(x: Node, y: Node) -> Node:
    return ops.matmul(x, y, False, False)


@quirk(
    GroupNormalization,
    when="there are two axes of dynamic size",
    what="fails to compile",
    avoided_by=normalization.group_normalization,
    inputs=[[[1, 3, 5, 9]]],
    right=[[-1, 1, -1, 1]],
    wrong=Raises("GroupNormalization"),
    tolerance=1e-3,
    open_sizes=True,
    model=lambda b, x: b.add(
        GroupNormalization, x, np.ones(4, np.float32), np.zeros(4, np.float32), groups=2
    ),
)
def groups_of_two_open_axes(x: Node) -> Node:
    return ops.group_normalization(x, floats(np.ones(4)), floats(np.zeros(4)), 2, 1e-5)


@quirk(
    LRN,
    when="there are more than five axes",
    what="fails to compile",
    avoided_by=normalization.lrn,
    inputs=[np.ones((1, 1, 1, 1, 1, 1), np.float32)],
    right=[[[[[[0.5]]]]]],
    wrong=Raises("LRN"),
    model=lambda b, x: b.add(LRN, x, 1, alpha=1.0, beta=1.0, bias=1.0),
)
def lrn_of_six_axes(x: Node) -> Node:
    return ops.lrn(x, integers(1), 1.0, 1.0, 1.0, 1)


@quirk(
    LRN,
    when="the size is 5, and the number of channels dynamic",
    what="fails in the run",
    avoided_by=normalization.lrn,
    inputs=[np.ones((1, 1, 1, 1), np.float32)],
    right=[[[[0.5]]]],
    wrong=Raises("LRN"),
    open_sizes=True,
    model=lambda b, x: b.add(LRN, x, 5, alpha=1.0, beta=1.0, bias=1.0),
)
def lrn_of_open_channels(x: Node) -> Node:
    return ops.lrn(x, integers(1), 5.0, 1.0, 1.0, 5)


@quirk(
    LRN,
    when="the bias is no integer",
    what="cuts its fraction off",
    avoided_by=normalization.lrn,
    inputs=[np.full((1, 1, 1, 1), 2, np.float32)],
    right=[[[[2 / 1.5**0.75]]]],
    wrong=[[[[2]]]],
    tolerance=1e-3,
    model=lambda b, x: b.add(LRN, x, 1, alpha=1e-9, beta=0.75, bias=1.5),
)
def fraction_of_bias(x: Node) -> Node:
    return ops.lrn(x, integers(1), 1e-9, 0.75, 1.5, 1)


_IMAGE = np.random.default_rng(0).normal(size=(2, 5, 7, 9)).astype(np.float32)


def _normalized(image: np.ndarray) -> np.ndarray:
    mean, variance = image.mean((2, 3), keepdims=True), image.var((2, 3), keepdims=True)
    return np.asarray((image - mean) / np.sqrt(variance + 1e-5))


@quirk(
    LayerNormalization,
    InstanceNormalization,
    when="oneDNN is limited to less than AVX-512 on a processor that has it",
    what="crashes in MVN, to which normalizations and their decompositions are converted",
    avoided_by=[instruction_sets.refusal, apart_from_normalization],
    inputs=[_IMAGE],
    right=_normalized(_IMAGE),
    wrong=Differs(),
    tolerance=1e-3,
    dies=True,
    environment={"ONEDNN_MAX_CPU_ISA": "AVX2"},
    processor="avx512f",
    model=lambda b, x: b.add(InstanceNormalization, x),
)
def limited_mvn(x: Node) -> Node:
    return ops.mvn(x, integers(2, 3), True, 1e-5, "inside_sqrt")


@quirk(
    ReduceMax,
    when="an element is NaN",
    what="ignores it",
    avoided_by=nan_and_infinity_of_reduction,
    inputs=[[1, NAN, 3]],
    right=NAN,
    wrong=3,
    model=lambda b, x: b.add(ReduceMax, x, keepdim=False),
)
def greatest_with_nan(x: Node) -> Node:
    return ops.reduce_max(x, integers(0), False)


@quirk(
    ReduceMin,
    when="all elements are infinite",
    what="returns the greatest finite number",
    avoided_by=nan_and_infinity_of_reduction,
    inputs=[[INF, INF]],
    right=INF,
    wrong=np.finfo(np.float32).max,
    model=lambda b, x: b.add(ReduceMin, x, keepdim=False),
)
def least_of_infinities(x: Node) -> Node:
    return ops.reduce_min(x, integers(0), False)


@quirk(
    ReduceMax,
    when="there are no elements",
    what="returns arbitrary elements",
    avoided_by=reduction.reduce_some,
    inputs=[np.zeros((2, 0), np.float32)],
    right=[-INF, -INF],
    wrong=Differs(),
    open_sizes=True,
    model=lambda b, x: b.add(ReduceMax, x, (1,), keepdim=False),
)
def greatest_of_nothing(x: Node) -> Node:
    return ops.reduce_max(x, integers(1), False)


@quirk(
    ReduceSum,
    when="integers of more than 24 bits are added",
    what="adds them as float32",
    avoided_by=reduction.reduce,
    inputs=[np.array([2**24 + 1, 0], np.int32)],
    right=2**24 + 1,
    wrong=2**24,
    model=lambda b, x: b.add(ReduceSum, x, keepdim=False),
)
def sum_of_large_integers(x: Node) -> Node:
    return ops.reduce_sum(x, integers(0), False)


_STEPS = np.ones((1, 1, 1), np.float32)
_START = np.full((1, 1, 1), 0.25, np.float32)
_GATES = np.ones((1, 4, 1), np.float32)


@quirk(
    LSTM,
    when="a sequence has no steps",
    what="returns 0 for the last states",
    avoided_by=recurrent.lstm,
    inputs=[_STEPS, _START, np.array([0], np.int32)],
    right=([[[0.25]]],),
    wrong=([[[0]]],),
)
def sequence_without_steps(x: Node, start: Node, lengths: Node) -> Output:
    bias = ops.constant(np.zeros((1, 4), np.float32))
    weights = (ops.constant(_GATES), ops.constant(_GATES), bias)
    return ops.lstm_sequence(x, start, start, lengths, *weights, 1, "forward").output(1)


@quirk(
    LSTM,
    when="dimensions are dynamic",
    what="ignores sequence lengths",
    avoided_by=recurrent.is_plain,
    inputs=[np.ones((1, 2, 1), np.float32), _START, np.array([1], np.int32)],
    right=[[[[0.538665], [0]]]],
    wrong=[[[[0.538665], [0.737975]]]],
    open_sizes=True,
)
def lengths_with_open_sizes(x: Node, start: Node, lengths: Node) -> Output:
    bias = ops.constant(np.zeros((1, 4), np.float32))
    x, start = (ops.reshape(node, integers(0, -1, 1), True) for node in (x, start))
    weights = (ops.constant(_GATES), ops.constant(_GATES), bias)
    return ops.lstm_sequence(x, start, start, lengths, *weights, 1, "forward").output(0)


@quirk(
    RoiAlign,
    when="a region has no extent, which determines the number of samples",
    what="returns NaN",
    avoided_by=zero_for_no_samples,
    inputs=[PIXELS, [[1, 1, 1, 1]]],
    right=[[[[0]]]],
    wrong=[[[[NAN]]]],
    model=lambda b, x, r: b.add(
        RoiAlign, x, r, np.zeros(1, np.int64), output_height=1, output_width=1,
        aligned=True, sampling_ratio=0,
    ),
)  # fmt: skip
def region_without_extent(x: Node, rois: Node) -> Node:
    images = ops.constant(np.zeros(1, np.int32))
    return ops.roi_align(x, rois, images, 1, 1, 0, 1.0, "avg", "half_pixel_for_nn")


_BOXES = np.array([[[0, 0, 2, 2], [0, 0, 1, 2]]], np.float32)


@quirk(
    NonMaxSuppression,
    when="an overlap is equal to the threshold",
    what="treats it as greater",
    avoided_by=suppression.non_max_suppression,
    inputs=[_BOXES, [[[0.9, 0.8]]]],
    right=([[0, 0.9, 0, 0, 2, 2], [0, 0.8, 0, 0, 1, 2]],),
    wrong=([[0, 0.9, 0, 0, 2, 2]],),
)
def overlap_at_threshold(boxes: Node, scores: Node) -> Output:
    return ops.multiclass_nms(
        boxes, scores, sort_result_type="classid", iou_threshold=0.5, score_threshold=0.0
    ).output(0)


_RANDOM = np.random.default_rng(4)
_WEIGHTS = _RANDOM.uniform(0.1, 1, (2, 16, 16)).astype(np.float32)
_ROWS = _RANDOM.uniform(0.1, 1, (4, 16)).astype(np.float32)


@quirk(
    MatMul,
    when="products of a few rows follow each other, and one is both read and an output",
    what="dies while compiling, or refuses the model",
    avoided_by=chains.wrongly_chained_products,
    inputs=[_ROWS],
    right=(_ROWS @ _WEIGHTS[0] @ _WEIGHTS[1], np.ones((4, 16), np.float32)),
    wrong=Dies(),
    tolerance=1e-3,
    dies=True,
    model=lambda b, x: (
        y := b.add(Relu, b.add(MatMul, b.add(Relu, b.add(MatMul, x, _WEIGHTS[0])), _WEIGHTS[1])),
        b.add(Div, y, b.add(MatMul, x, _WEIGHTS[0] @ _WEIGHTS[1])),
    ),
)
def chained_output(x: Node) -> tuple[Node, Node]:
    one, two, product = (ops.constant(w) for w in (*_WEIGHTS, _WEIGHTS[0] @ _WEIGHTS[1]))
    first = ops.relu(ops.matmul(x, one, False, False))
    second = ops.relu(ops.matmul(first, two, False, False))
    return second, ops.divide(second, ops.matmul(x, product, False, False))


@quirk(
    MatMulNBits,
    when="the other factor is constant",
    what="fails to compile",
    avoided_by=matrix.matmul_n_bits,
    inputs=[np.zeros((1, 2), np.float32)],
    right=[[16, 16]],
    wrong=Raises("is_static"),
)
def constant_times_few_bits(x: Node) -> Node:
    packed = openvino.Tensor(
        np.full((2, 16), 0x99, np.uint8), openvino.Shape([2, 32]), openvino.Type.u4
    )
    steps = ops.convert(openvino.op.Constant(packed), "f32")
    weights = ops.multiply(ops.subtract(steps, floats(8)), floats(0.5))
    return ops.add(ops.matmul(floats(np.ones((1, 32))), weights, False, True), x)


@quirk(
    AveragePool2D,
    when="the last window goes beyond the padding, and padding counts",
    what="counts what is beyond, too",
    avoided_by=pooling.average_pool,
    inputs=[np.ones((1, 1, 2, 2), np.float32)],
    right=[[[[4 / 9, 1 / 3], [1 / 3, 1 / 4]]]],
    wrong=[[[[4 / 9, 2 / 9], [2 / 9, 1 / 9]]]],
)
def windows_beyond_padding(x: Node) -> Node:
    return ops.avg_pool(x, [2, 2], [1, 1], [1, 1], [3, 3], False, "ceil")


_BLOCK = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
_ROW_FACTORS = np.array([[1], [2], [3]], np.float32)


@quirk(
    ReduceSum,
    ReduceMean,
    ReduceMax,
    when="the first of three axes is reduced away, and the result combined with a constant a row",
    what="takes the constant's wrong elements, or what lies behind them",
    avoided_by=[apart_from_constants, apart_from_scales],
    inputs=[_BLOCK],
    right=_BLOCK.sum(0) * _ROW_FACTORS,
    wrong=Differs(),
    model=lambda b, x: b.add(Mul, b.add(ReduceSum, x, (0,), keepdim=False), _ROW_FACTORS),
)
def reduction_beside_constant(x: Node) -> Node:
    return ops.multiply(ops.reduce_sum(x, integers(0), False), floats(_ROW_FACTORS))


@quirk(
    ReduceMean,
    when="there are no elements",
    what="returns 0",
    avoided_by=reduction.reduce_some,
    inputs=[np.zeros((2, 0), np.float32)],
    right=[NAN, NAN],
    wrong=[0, 0],
    open_sizes=True,
    model=lambda b, x: b.add(ReduceMean, x, (1,), keepdim=False),
)
def mean_of_nothing(x: Node) -> Node:
    return ops.reduce_mean(x, integers(1), False)


@quirk(
    NonMaxSuppressionIndices,
    when="boxes and scores are constant",
    what="fails to compile",
    avoided_by=suppression.non_max_suppression_indices,
    inputs=[[1]],
    right=([[0, 0, 0], [0, 0, 1]], [1]),
    wrong=Raises("Memory"),
    model=lambda b, x: (
        b.add(NonMaxSuppressionIndices, _BOXES, np.array([[[0.9, 0.8]]], np.float32), 2, 0.6),
        b.add(Relu, x),
    ),
)
def constant_boxes(x: Node) -> tuple[Node, Node]:
    limits = (ops.constant(np.array(2)), floats(0.6), floats(0))
    chosen = ops.non_max_suppression(floats(_BOXES), floats([[[0.9, 0.8]]]), *limits)
    return ops.convert(chosen.output(0), "i32"), ops.relu(x)


_SPOTS = np.array([[[[5, 0], [7, 0]]]], np.uint8)


@quirk(
    MaxPool2D,
    when="bytes are pooled with indices, and the greatest of a window is 0",
    what="makes 0 of the index",
    avoided_by=pooling.max_pool,
    inputs=[_SPOTS],
    right=(_SPOTS, [[[[0, 1], [2, 3]]]]),
    wrong=(_SPOTS, [[[[0, 0], [2, 0]]]]),
    model=lambda b, x: tuple(b.add_all(MaxPool2D, x, kernel_shape=(1, 1), return_indices=True)),
)
def index_of_least_byte(x: Node) -> tuple[Output, ...]:
    return tuple(ops.max_pool(x, [1, 1], [1, 1], [0, 0], [0, 0], [1, 1]).outputs())
