"""Quirks of windows, matrices, reductions and searches."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.quirks import Differs, Raises
from crosschip.devices.litert import limits, lowering
from crosschip.devices.litert.quirks.registry import Node, options, quirk
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.pooling import AveragePool2D
from crosschip.ops.standard.rearranging import ReverseSequence
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean, ReduceMin, ReduceSum
from crosschip.ops.standard.searching import ArgMax, ArgMin, TopK
from crosschip.ops.standard.slicing import Slice

_NAN, _INF = np.nan, np.inf
_VALID = 1
_WITH_NAN = np.array([_NAN, 2, 3, 4, 5, 6], np.float32).reshape(1, 1, 6, 1)
_AXIS = np.array([1], np.int32)


@quirk(
    AveragePool2D,
    when="an element of the window is NaN",
    what="returns negative infinity",
    avoided_by=lowering.mean_that_keeps_nan,
    inputs=[_WITH_NAN],
    right=np.array([_NAN, 3, 4, 5]).reshape(1, 1, 4, 1),
    wrong=np.array([-_INF, 3, 4, 5]).reshape(1, 1, 4, 1),
    model=lambda b, x: b.add(
        Transpose,
        b.add(AveragePool2D, b.add(Transpose, x, (0, 3, 1, 2)), kernel_shape=(1, 3)),
        (0, 2, 3, 1),
    ),
)
def average_of_nan() -> Node:
    return Node(
        "AVERAGE_POOL_2D",
        options(
            "Pool2DOptions", padding=_VALID, strideH=1, strideW=1, filterHeight=1, filterWidth=3
        ),
        outputs=[(np.float32, (1, 1, 4, 1))],
    )


@quirk(
    Conv2D,
    when="the windows of a channel have fewer than 25 pixels, other than 3, 4 and 9, and the next "
    "pixel is NaN",
    what="returns NaN",
    avoided_by=limits.convolution,
    inputs=[_WITH_NAN[:, :, ::-1].copy()],
    right=np.array([11, 9, 7, 5, _NAN]).reshape(1, 1, 5, 1),
    wrong=np.array([11, 9, 7, _NAN, _NAN]).reshape(1, 1, 5, 1),
    model=lambda b, x: b.add(
        Transpose,
        b.add(Conv2D, b.add(Transpose, x, (0, 3, 1, 2)), np.ones((1, 1, 1, 2), np.float32)),
        (0, 2, 3, 1),
    ),
)
def nan_beside_the_window() -> Node:
    return Node(
        "DEPTHWISE_CONV_2D",
        options("DepthwiseConv2DOptions", padding=_VALID, strideH=1, strideW=1, depthMultiplier=1),
        [np.ones((1, 1, 2, 1), np.float32), np.zeros(1, np.float32)],
        [(np.float32, (1, 1, 5, 1))],
    )


@quirk(
    *(Conv2D, Conv2DTranspose, FullyConnected),
    when="weights are computed at run time, and a result is infinite",
    what="returns the largest number",
    avoided_by=[limits.convolution, limits.constant_weights],
    inputs=[[[_INF]], [[1]]],
    right=[[_INF]],
    wrong=[[np.finfo(np.float32).max]],
    model=lambda b, x, w: b.add(FullyConnected, x, w),
)
def weights_of_a_run() -> Node:
    return Node("FULLY_CONNECTED", options("FullyConnectedOptions"))


@quirk(
    ReduceMax,
    when="an element before the last one is NaN",
    what="ignores it",
    avoided_by=lowering.nan_of_reduction,
    inputs=[[[1, _NAN, 3]]],
    right=[_NAN],
    wrong=[3],
    model=lambda b, x: b.add(ReduceMax, x, axes=(1,), keepdim=False),
)
def greatest_of_nan() -> Node:
    return Node("REDUCE_MAX", options("ReducerOptions"), [_AXIS], [(np.float32, (1,))])


@quirk(
    ReduceMin,
    when="an element before the last one is NaN",
    what="ignores it",
    avoided_by=lowering.nan_of_reduction,
    inputs=[[[1, _NAN, 3]]],
    right=[_NAN],
    wrong=[3],
    model=lambda b, x: b.add(ReduceMin, x, axes=(1,), keepdim=False),
)
def least_of_nan() -> Node:
    return Node("REDUCE_MIN", options("ReducerOptions"), [_AXIS], [(np.float32, (1,))])


@quirk(
    *(ReduceMax, ReduceMean, ReduceMin, ReduceSum),
    when="the tensor has seven axes or more",
    what="fails to prepare the file",
    avoided_by=limits.few_axes,
    inputs=[np.ones((1, 1, 1, 1, 1, 1, 2), np.float32)],
    right=np.full((1, 1, 1, 1, 1, 1), 2),
    wrong=Raises("failed to delegate"),
    model=lambda b, x: b.add(ReduceSum, x, axes=(6,), keepdim=False),
)
def reduction_of_seven_axes() -> Node:
    return Node(
        "SUM",
        options("ReducerOptions"),
        [np.array([6], np.int32)],
        [(np.float32, (1, 1, 1, 1, 1, 1))],
    )


@quirk(
    *(ArgMax, ArgMin),
    when="an element is NaN",
    what="ignores it",
    avoided_by=lowering.place_of_nan,
    inputs=[[[1, _NAN, 3]]],
    right=np.array([1]),
    wrong=np.array([2]),
    model=lambda b, x: b.add(ArgMax, x, 1, keepdim=False),
)
def place_of_nan() -> Node:
    return Node("ARG_MAX", options("ArgMaxOptions", outputType=2), [_AXIS], [(np.int32, (1,))])


@quirk(
    TopK,
    when="an element is NaN",
    what="ignores it",
    avoided_by=lowering.largest_of_keys,
    inputs=[[[1, _NAN, 3]]],
    right=[[_NAN, 3]],
    wrong=[[3, 1]],
    model=lambda b, x: b.add_all(TopK, x, 2)[0],
)
def largest_of_nan() -> Node:
    return Node(
        "TOPK_V2",
        options("TopKV2Options"),
        [np.array(2, np.int32)],
        [(np.float32, (1, 2)), (np.int32, (1, 2))],
    )


@quirk(
    ReverseSequence,
    when="a length after the first is larger than the axis",
    what="reads other memory",
    avoided_by=limits.known_lengths,
    inputs=[np.ones((2, 3), np.float32), np.array([3, 1000], np.int32)],
    right=Raises(""),
    wrong=Differs(),
    dies=True,
)
def lengths_out_of_range() -> Node:
    return Node("REVERSE_SEQUENCE", options("ReverseSequenceOptions", seqDim=1, batchDim=0))


@quirk(
    Slice,
    when="the tensor is a scalar",
    what="fails to prepare the file",
    avoided_by=limits.has_axes,
    inputs=[np.array(2, np.float32)],
    right=np.array(2, np.float32),
    wrong=Raises("failed to prepare"),
    model=lambda b, x: b.add(Slice, x, starts=(), ends=()),
)
def slice_of_a_scalar() -> Node:
    nothing = np.zeros(0, np.int32)
    return Node("SLICE", options("SliceOptions"), [nothing, nothing], [(np.float32, ())])


@quirk(
    AveragePool2D,
    when="a window is larger than the image, and strides are greater than 1",
    what="divides by another number of pixels",
    avoided_by=limits.mean_of_windows,
    inputs=[np.arange(1, 6, dtype=np.float32).reshape(1, 5, 1, 1)],
    right=np.array([2.5, 3, 3.5]).reshape(1, 3, 1, 1),
    wrong=np.array([2.5, 2.8, 3.5]).reshape(1, 3, 1, 1),
    model=lambda b, x: b.add(
        Transpose,
        b.add(
            AveragePool2D,
            b.add(Transpose, x, (0, 3, 1, 2)),
            kernel_shape=(7, 1),
            strides=(2, 1),
            auto_pad=AutoPad.SAME,
        ),
        (0, 2, 3, 1),
    ),
)
def window_beyond_the_image() -> Node:
    return Node(
        "AVERAGE_POOL_2D",
        options("Pool2DOptions", strideH=2, strideW=1, filterHeight=7, filterWidth=1),
        outputs=[(np.float32, (1, 3, 1, 1))],
    )
