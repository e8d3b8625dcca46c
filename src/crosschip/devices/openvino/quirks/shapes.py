"""Quirks of shapes, order of elements, gather and scatter, and boxes."""

from __future__ import annotations

import numpy as np
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.kits.quirks import Dies, Differs, Raises
from crosschip.devices.openvino import unchecked
from crosschip.devices.openvino.converters import (
    creation,
    indexing,
    layout,
    padding,
    rearranging,
    resizing,
    searching,
    suppression,
)
from crosschip.devices.openvino.graph import Graph
from crosschip.devices.openvino.lowering.creation import number_itself
from crosschip.devices.openvino.lowering.layout import input_itself
from crosschip.devices.openvino.quirks.registry import quirk
from crosschip.ops.standard.convolution import Conv2D, Conv3D
from crosschip.ops.standard.creation import Fill, Range
from crosschip.ops.standard.indexing import Gather, GatherND
from crosschip.ops.standard.layout import Expand, Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile
from crosschip.ops.standard.resizing import ResizeLinear, ResizeNearest
from crosschip.ops.standard.searching import SearchSorted, TopK, Unique
from crosschip.ops.standard.suppression import NonMaxSuppression


def integers(*values: int) -> Node:
    """Create a constant list of int64."""
    return ops.constant(np.array(values, np.int64))


def lists(*values: int) -> np.ndarray:
    """Return a list of int64."""
    return np.array(values, np.int64)


SIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@quirk(
    Fill,
    when="a scalar is filled",
    what="dies",
    avoided_by=number_itself,
    inputs=[np.array(3, np.float32)],
    right=3,
    wrong=Differs(),
    dies=True,
)
def broadcast_to_no_axes(x: Node) -> Node:
    return ops.broadcast(x, ops.constant(np.zeros(0, np.int64)))


@quirk(
    Expand,
    when="a scalar is expanded to a scalar",
    what="dies",
    avoided_by=input_itself,
    inputs=[np.array(3, np.float32)],
    right=3,
    wrong=Differs(),
    dies=True,
)
def expanded_to_no_axes(x: Node) -> Node:
    return ops.broadcast(x, ops.constant(np.zeros(0, np.int64)), broadcast_spec="bidirectional")


@quirk(
    Reshape,
    when="a tensor is reshaped to one axis of a computed, wrong size",
    what="ignores the size",
    avoided_by=layout.reshape,
    inputs=[SIX, lists(4)],
    right=Raises(),
    wrong=SIX.ravel(),
    open_sizes=True,
)
def one_axis_of_wrong_size(x: Node, shape: Node) -> Node:
    return ops.reshape(x, ops.reshape(shape, integers(1), False), False)


@quirk(
    Expand,
    when="a shape of 21 sizes is computed",
    what="writes beyond its stack",
    avoided_by=layout.expand,
    inputs=[SIX[:1], lists(*[1] * 19, 2, 3)],
    right=np.broadcast_to(SIX[:1], (1,) * 19 + (2, 3)),
    wrong=Differs(),
    dies=True,
    open_sizes=True,
)
def computed_shape_of_many_axes(x: Node, shape: Node) -> Node:
    return ops.broadcast(x, ops.reshape(shape, integers(21), False), broadcast_spec="bidirectional")


@quirk(
    Tile,
    when="a scalar is repeated along no axes",
    what="leaves the output unwritten",
    avoided_by=input_itself,
    inputs=[np.array(3, np.float32)],
    right=3,
    wrong=Differs(),
    dies=True,
)
def repeats_along_no_axes(x: Node) -> Node:
    return ops.tile(x, ops.constant(np.zeros(0, np.int64)))


@quirk(
    Roll,
    when="it rolls along no axes",
    what="leaves the output unwritten",
    avoided_by=input_itself,
    inputs=[SIX + 1],
    right=SIX + 1,
    wrong=Differs(),
    dies=True,
    model=lambda b, x: b.add(Roll, x, (), ()),
)
def roll_along_no_axes(x: Node) -> Node:
    empty = ops.constant(np.zeros(0, np.int64))
    return ops.roll(x, empty, empty)


@quirk(
    ReverseSequence,
    when="integers of more than 24 bits are reversed",
    what="moves them as float32",
    avoided_by=rearranging.reverse_sequence,
    inputs=[np.array([[2**24 + 1, 5]], np.int32)],
    right=[[5, 2**24 + 1]],
    wrong=[[5, 2**24]],
    model=lambda b, x: b.add(
        ReverseSequence, x, np.array([2], np.int64), time_axis=1, batch_axis=0
    ),
)
def large_integers_reversed(x: Node) -> Node:
    return ops.reverse_sequence(x, ops.constant(np.array([2], np.int32)), 0, 1)


@quirk(
    Gather,
    when="an index is out of range",
    what="returns arbitrary elements",
    avoided_by=[indexing.out_of_range, Graph.within],
    inputs=[SIX, lists(2)],
    right=Raises(),
    wrong=Differs(),
    dies=True,
)
def index_out_of_range(x: Node, indices: Node) -> Node:
    return ops.gather(x, indices, ops.constant(np.array(0)))


@quirk(
    GatherND,
    when="an index is out of range",
    what="reads foreign memory",
    avoided_by=[indexing.out_of_range, Graph.within],
    inputs=[SIX, np.array([[7, 7]], np.int32)],
    right=Raises(),
    wrong=Differs(),
    dies=True,
)
def place_out_of_range(x: Node, indices: Node) -> Node:
    return ops.gather_nd(x, indices, 0)


@quirk(
    Pad,
    when="a reflection needs more elements than there are",
    what="refuses it, or reads beyond the end",
    avoided_by=padding.pad,
    inputs=[SIX],
    right=np.pad(SIX, ((0, 0), (4, 0)), "reflect"),
    wrong=Raises(),
    model=lambda b, x: b.add(Pad, x, (0, 0, 4, 0), mode=PadMode.REFLECT),
)
def reflection_of_few(x: Node) -> Node:
    return ops.pad(x, integers(0, 4), integers(0, 0), "reflect")


@quirk(
    ResizeLinear,
    when="an axis keeps its size with a scale other than 1",
    what="does not resample it",
    avoided_by=resizing.resize_linear,
    inputs=[np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)],
    right=[[[[0, 0.75, 1.583333, 2.416667], [4, 4.75, 5.583333, 6.416667]]]],
    wrong=np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4),
)
def scale_that_keeps_size(x: Node) -> Node:
    scales = ops.constant(np.array([1, 1.2], np.float32))
    attributes = {"coordinate_transformation_mode": "half_pixel", "axes": integers(2, 3)}
    return ops.interpolate(x, scales, "linear_onnx", "scales", **attributes)


@quirk(
    Range,
    when="the end is on the other side of the start",
    what="counts to the mirrored end",
    avoided_by=creation.range_,
    inputs=[np.array(5, np.int32), np.array(2, np.int32), np.array(1, np.int32)],
    right=np.zeros(0, np.int32),
    wrong=[5, 6, 7],
    model=lambda b, *xs: b.add(Range, *xs),
)
def range_on_the_other_side(start: Node, end: Node, step: Node) -> Node:
    return ops.range(start, end, step, "i32")


@quirk(
    Range,
    when="the step is 0",
    what="divides by it",
    avoided_by=creation.range_,
    inputs=[np.array(5, np.int32), np.array(7, np.int32), np.array(0, np.int32)],
    right=Raises("step"),
    wrong=Differs(),
    dies=True,
)
def range_without_step(start: Node, end: Node, step: Node) -> Node:
    return ops.range(start, end, step, "i32")


@quirk(
    TopK,
    when="an element is NaN",
    what="sorts it and other elements wrongly",
    avoided_by=searching.top_k,
    inputs=[[1, np.nan, 3, 2, np.nan, 7, 5, 4]],
    right=[np.nan, np.nan, 7],
    wrong=Differs(),
    model=lambda b, x: b.add_all(TopK, x, 3)[0],
)
def order_of_nan(x: Node) -> Node:
    return ops.topk(x, ops.constant(np.array(3)), 0, "max", "value", stable=True).output(0)


@quirk(
    TopK,
    when="no elements are asked for",
    what="refuses the run",
    avoided_by=searching.top_k,
    inputs=[[1, 3, 2], np.array(0, np.int64)],
    right=np.zeros(0, np.float32),
    wrong=Raises("top_k >= 1"),
    model=lambda b, x, k: b.add_all(TopK, x, k)[0],
)
def top_none(x: Node, k: Node) -> Node:
    return ops.topk(x, k, 0, "max", "value", stable=True).output(0)


@quirk(
    Pad,
    when="integers are padded with one that float32 does not hold",
    what="rounds it to float32",
    avoided_by=padding.pad,
    inputs=[np.array([5], np.int32)],
    right=[2**24 + 1, 5],
    wrong=[2**24, 5],
    model=lambda b, x: b.add(Pad, x, (1, 0), value=np.array(2**24 + 1, np.int32)),
)
def padded_with_large_integer(x: Node) -> Node:
    fill = ops.constant(np.array(2**24 + 1, np.int32))
    return ops.pad(x, integers(1), integers(0), "constant", fill)


@quirk(
    Reshape,
    when="a scalar is reshaped to one axis of a computed, wrong size",
    what="does not check the size",
    avoided_by=layout.reshape,
    inputs=[np.array(3, np.float32), np.array([2])],
    right=Raises("Reshape"),
    wrong=[3],
)
def scalar_of_wrong_size(x: Node, shape: Node) -> Node:
    return ops.reshape(x, shape, False)


@quirk(
    Reshape,
    when="the product of a row and a column is reshaped to a scalar",
    what="dies",
    avoided_by=layout.reshape,
    inputs=[[[1, 2]], [[3], [4]]],
    right=11,
    wrong=Differs(),
    dies=True,
    model=lambda b, x, y: b.add(Reshape, b.add(MatMul, x, y), ()),
)
def product_reshaped_to_scalar(x: Node, y: Node) -> Node:
    return ops.reshape(ops.matmul(x, y, False, False), ops.constant(np.zeros(0, np.int64)), False)


_BLOCK = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)


@quirk(
    Tile,
    when="repeats along several axes are computed",
    what="leaves most of the output unwritten",
    avoided_by=rearranging.tile,
    inputs=[_BLOCK, lists(1, 2, 2, 3)],
    right=np.tile(_BLOCK, (1, 2, 2, 3)),
    wrong=Differs(),
    model=lambda b, x, repeats: b.add(Tile, x, repeats),
)
def computed_repeats(x: Node, repeats: Node) -> Node:
    return ops.tile(x, repeats)


_CUBE = np.arange(36, dtype=np.float32).reshape(3, 3, 4)


@quirk(
    Tile,
    when="several axes are repeated, beside one of size 1 and open sizes",
    what="takes the wrong elements",
    avoided_by=rearranging.tile,
    inputs=[_CUBE],
    right=np.tile(_CUBE[:, None], (1, 2, 1, 2)),
    wrong=Differs(),
    open_sizes=True,
)
def repeats_beside_one(x: Node) -> Node:
    return ops.tile(ops.unsqueeze(x, integers(1)), integers(1, 2, 1, 2))


@quirk(
    Tile,
    when="a tensor without elements is repeated, and the repeats differ from those of the last run",
    what="gives the result the shape of that run",
    avoided_by=rearranging.tile,
    before=[
        [np.ones((2, 2), np.float32), np.ones((0, 2), np.float32)],
        [np.ones((2, 0), np.float32), np.ones((1, 0), np.float32)],
    ],
    inputs=[np.ones((2, 0), np.float32), np.ones((0, 0), np.float32)],
    right=np.ones((0, 0), np.float32),
    wrong=np.ones((2, 0), np.float32),
    open_sizes=True,
)
def repeats_of_nothing(x: Node, y: Node) -> Node:
    count = ops.gather(ops.shape_of(y), integers(0), ops.constant(np.array(0)))
    return ops.tile(x, ops.concat([count, integers(1)], 0))


@quirk(
    Unique,
    when="integers of more than 24 bits are not to be sorted",
    what="compares them as float32",
    avoided_by=searching.unique,
    inputs=[np.array([2**24 + 1, 2**24], np.int32)],
    right=[2**24 + 1, 2**24],
    wrong=Differs(),
    model=lambda b, x: b.add_all(Unique, x, sorted=False)[0],
)
def large_integers_among_unique(x: Node) -> Output:
    return ops.unique(x, None, False, "i64", "i64").output(0)


@quirk(
    ResizeNearest,
    when="an image has no pixels",
    what="reads foreign memory",
    avoided_by=[resizing.resize_nearest, unchecked.size_checks],
    inputs=[np.ones((1, 1, 0, 2), np.float32)],
    right=Raises(),
    wrong=Differs(),
    dies=True,
)
def image_of_nothing(x: Node) -> Node:
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return ops.interpolate(x, integers(4, 4), "nearest", "sizes", axes=integers(2, 3), **attributes)


@quirk(
    NonMaxSuppression,
    when="there are no boxes",
    what="returns no counts",
    avoided_by=suppression.non_max_suppression,
    inputs=[np.zeros((2, 0, 4), np.float32), np.zeros((2, 1, 0), np.float32)],
    right=np.zeros(2, np.int32),
    wrong=np.zeros(0, np.int32),
    open_sizes=True,
)
def counts_of_nothing(boxes: Node, scores: Node) -> Node:
    boxes = ops.reshape(boxes, integers(2, -1, 4), False)
    scores = ops.reshape(scores, integers(2, 1, -1), False)
    result = ops.multiclass_nms(boxes, scores, sort_result_type="classid", output_type="i32")
    return ops.convert(result.output(2), "i32")


@quirk(
    MaxPool2D,
    when="an image without pixels is padded, and indices are asked for",
    what="divides by zero, which ends the process",
    avoided_by=unchecked.size_checks,
    inputs=[np.zeros((1, 2, 1, 0), np.float32)],
    right=Raises("nothing to make elements of"),
    wrong=Dies(),
    open_sizes=True,
    dies=True,
)
def indices_of_nothing(x: Node) -> tuple[Output, ...]:
    return tuple(ops.max_pool(x, [1, 1], [1, 1], [0, 1], [0, 2], [1, 3], axis=2).outputs())


@quirk(
    Conv2D,
    Conv3D,
    when="an image without pixels is padded",
    what="leaves what the memory held before",
    avoided_by=unchecked.size_checks,
    inputs=[np.zeros((2, 2, 4, 0, 3), np.float32)],
    right=np.zeros((2, 2, 4, 1, 3), np.float32),
    wrong=Differs(),
    open_sizes=True,
)
def convolution_of_nothing(x: Node) -> Node:
    filters = ops.constant(np.ones((2, 2, 2, 2, 2), np.float32))
    return ops.convolution(x, filters, [1] * 3, [1, 1, 0], [0, 1, 1], [1] * 3)


@quirk(
    SearchSorted,
    when="the sequence has no elements",
    what="leaves what the memory held before",
    avoided_by=searching.search_sorted,
    before=[[[1, 2, 3], [4, 4]]],
    inputs=[[], [4, 4]],
    right=lists(0, 0),
    wrong=lists(3, 3),
    open_sizes=True,
    model=lambda b, sequence, values: b.add(SearchSorted, sequence, values),
)
def places_in_empty_sequence(sequence: Node, values: Node) -> Node:
    return ops.search_sorted(sequence, values)
