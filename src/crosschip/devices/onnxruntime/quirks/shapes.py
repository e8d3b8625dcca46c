"""Quirks of reductions, searches, indexing and shapes."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters import (
    creation,
    indexing,
    joining,
    matrix,
    padding,
    reduction,
    searching,
)
from crosschip.devices.kits.onnx.lowering.reduction import (
    extreme_of_booleans,
    mean_of_nothing,
    nan_of_reduction,
    product_of_few,
    sum_that_wraps,
)
from crosschip.devices.kits.quirks import Dies, Differs, Raises
from crosschip.devices.onnxruntime import extensions, unchecked
from crosschip.devices.onnxruntime.quirks.raw import quirk
from crosschip.ops.standard.creation import Range
from crosschip.ops.standard.indexing import Gather, GatherND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.reduction import CumSum, ReduceMax, ReduceMean, ReduceProd, ReduceSum
from crosschip.ops.standard.searching import ArgMax, TopK, Unique

NAN, INF = np.nan, np.inf


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


@quirk(
    Pad,
    when="more elements are cropped from an axis than it has",
    what="returns zeros if the padding at the other end is large enough",
    avoided_by=padding.pad,
    inputs=[np.ones((1, 2), np.float32)],
    right=Raises("pads"),
    wrong=[[0, 0, 0]],
    open_sizes=True,
)
def cropped_beyond_end() -> str:
    return "g (float[N,M] x) => (float[A,B] y) <int64[4] p = {0, -3, 0, 4}> { y = Pad (x, p) }"


@quirk(
    Unique,
    when="slices along an axis are empty",
    what="ends the process",
    avoided_by=searching.unique_limit,
    inputs=[np.ones((2, 0), np.float32)],
    right=np.ones((1, 0), np.float32),
    wrong=Dies(),
    dies=True,
    open_sizes=True,
)
def unique_slices_of_nothing() -> str:
    return "g (float[N,M] x) => (float[A,B] y) { y = Unique <axis: int = 0> (x) }"


@quirk(
    Gather,
    when="strings are gathered along an axis that is not the last",
    what="returns only the first string of each slice",
    avoided_by=extensions.loses_strings,
    inputs=[np.array([["a", "b"], ["c", "d"]], object)],
    right=[["c", "d"], ["a", "b"]],
    wrong=[["c", ""], ["a", ""]],
)
def rows_of_strings() -> str:
    return """g (string[N,M] x) => (string[A,B] y) <int64[2] i = {1, 0}> {
        y = Gather <axis: int = 0> (x, i)
    }"""


@quirk(
    Range,
    when="floating-point numbers are counted",
    what="adds the step to a running sum, which accumulates rounding errors",
    avoided_by=creation.range_,
    inputs=[np.array(0, np.float32), np.array(1000, np.float32), np.array(0.1, np.float32)],
    right=(np.arange(10000) * np.float64(np.float32(0.1))).astype(np.float32),
    wrong=Differs(),
    model=lambda b, start, end, step: b.add(Range, start, end, step),
)
def range_as_running_sum() -> str:
    return "g (float s, float e, float d) => (float[N] y) { y = Range (s, e, d) }"
