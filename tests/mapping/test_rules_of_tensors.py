"""Invalid operations that move elements are refused with a message that names the slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import (
    Builder,
    DeviceError,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    TensorType,
)
from crosschip.ops.standard.blocks import (
    BatchToSpaceND,
    ChannelShuffle,
    DepthToSpace,
    SpaceToBatchND,
    SpaceToDepth,
)
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.conversion import BitCast
from crosschip.ops.standard.creation import Fill, FillLike, OneHot, Range
from crosschip.ops.standard.indexing import (
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
    SparseToDense,
)
from crosschip.ops.standard.joining import Meshgrid, Split, Stack, Unstack
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu
from crosschip.ops.standard.searching import NonZero, Unique
from crosschip.ops.standard.slicing import Crop, StridedSlice

IMAGE = (2, 6, 4, 6)


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def at(*rows: Any) -> Any:
    return np.array(rows, np.int64)


BROKEN: list[tuple[Callable[[Builder, Operand], object], str]] = [
    (lambda b, x: b.add(ChannelShuffle, x, 4), "CHANNEL_SHUFFLE.group: 4 does not divide 6"),
    (lambda b, x: b.add(ChannelShuffle, x, 0), "CHANNEL_SHUFFLE.group: 0 is not positive"),
    (lambda b, x: b.add(ChannelShuffle, ones(6), 2), "CHANNEL_SHUFFLE.input: has 1 axes"),
    (lambda b, x: b.add(DepthToSpace, x, 2), "DEPTH_TO_SPACE.block_size: .* 4 does not divide 6"),
    (lambda b, x: b.add(DepthToSpace, x, 1, 2), "DEPTH_TO_SPACE.mode: 2 is not a valid"),
    (lambda b, x: b.add(SpaceToDepth, x, 3), "SPACE_TO_DEPTH.block_size: 3 does not divide 4"),
    (lambda b, x: b.add(SpaceToDepth, ones(2, 2), 1), "SPACE_TO_DEPTH.input: has 2 axes"),
    (lambda b, x: b.add(SpaceToDepth, x, -1), "SPACE_TO_DEPTH.block_size: -1 is not positive"),
    (
        lambda b, x: b.add(BatchToSpaceND, x, (3, 1), (0,) * 4),
        "BATCH_TO_SPACE_ND.block_shape: .* 3 does not divide 2",
    ),
    (
        lambda b, x: b.add(BatchToSpaceND, x, (1, 1), (3, 2, 0, 0)),
        "BATCH_TO_SPACE_ND.crops: 3 and 2 are more than the 4",
    ),
    (
        lambda b, x: b.add(BatchToSpaceND, x, (1, 1), (0, -1, 0, 0)),
        "BATCH_TO_SPACE_ND.crops: .* none negative",
    ),
    (
        lambda b, x: b.add(SpaceToBatchND, x, (1,), (0, 0)),
        r"SPACE_TO_BATCH_ND.block_shape: \[1\] is not for 2 axes",
    ),
    (
        lambda b, x: b.add(SpaceToBatchND, x, (1, 1), (0, 0)),
        "SPACE_TO_BATCH_ND.pads: .* two numbers an axis",
    ),
    (
        lambda b, x: b.add(SpaceToBatchND, x, (3, 2), (1, 0, 0, 0)),
        "SPACE_TO_BATCH_ND.block_shape: 3 does not divide 5",
    ),
    (lambda b, x: b.add(Pad, x, (1, 1)), "PAD.pads: has 2 numbers, but the input has 4 axes"),
    (lambda b, x: b.add(Pad, ones(3), (-2, -2)), "PAD.pads: -2 and -2 take more than the 3"),
    (lambda b, x: b.add(Pad, ones(0), (1, 0), PadMode.EDGE), "PAD.mode: EDGE finds nothing"),
    (lambda b, x: b.add(Pad, ones(2), (-2, 1), PadMode.WRAP), "PAD.mode: WRAP finds nothing"),
    (lambda b, x: b.add(Pad, ones(2), (1, 1), value=ones(2)), "PAD.value: takes one element"),
    (lambda b, x: b.add(Pad, ones(2), (1, 1), value=at(1)), "PAD.value: is int64, but must be"),
    (lambda b, x: b.add(Tile, x, (1, -1)), r"TILE.repeats: \[1, -1\] has a negative number"),
    (lambda b, x: b.add(Roll, x, (1,), (4,)), r"ROLL.axes: 4 is not in \[-4, 4\)"),
    (lambda b, x: b.add(Roll, x, (1, 2), (0,)), "ROLL.shifts: has 2 numbers"),
    (lambda b, x: b.add(Roll, x, (1, 2)), "ROLL.shifts: has 2 numbers"),
    (
        lambda b, x: b.add(ReverseSequence, x, at(1, 1), 0, -4),
        "REVERSE_SEQUENCE.batch_axis: -4 is time_axis too",
    ),
    (
        lambda b, x: b.add(ReverseSequence, x, at(1, 1)),
        "REVERSE_SEQUENCE.lengths: .* 6 and 2 differ",
    ),
    (
        lambda b, x: b.add(ReverseSequence, x, at([1])),
        "REVERSE_SEQUENCE.lengths: has 2 axes, not 1",
    ),
    (lambda b, x: b.add(Trilu, ones(3)), "TRILU.input: has 1 axes"),
    (lambda b, x: b.add(Stack, [x, b.constant(ones(2))]), r"STACK.parts: have \[1, 4\] axes"),
    (
        lambda b, x: b.add(Stack, [b.constant(ones(2)), b.constant(ones(3))]),
        "STACK.parts: .* 2 and 3 differ",
    ),
    (lambda b, x: b.add(Stack, [x, x], axis=5), r"STACK.axis: 5 is not in \[-5, 5\)"),
    (lambda b, x: b.add_all(Unstack, x, 1, 5), "UNSTACK.num: .* 5 and 6 differ"),
    (lambda b, x: b.add_all(Unstack, ones(2, 0), 1), "UNSTACK.input: axis 1 has nothing"),
    (lambda b, x: b.add_all(Split, x, 1, (8, -2)), r"SPLIT.split: \[8, -2\] has a negative size"),
    (lambda b, x: b.add_all(Meshgrid, [x]), r"MESHGRID.parts: have \[4\] axes"),
    (lambda b, x: b.add(Crop, x, (3, 3, 3)), "CROP.shape: has 3 sizes, not 2 or 4"),
    (
        lambda b, x: b.add(Crop, x, (3, 3), 2, (0, 4)),
        "CROP.offset: the box from 4 to 7 is not in 6",
    ),
    (lambda b, x: b.add(Crop, x, (3, 3), 2, (-1,)), "CROP.offset: the box from -1"),
    (lambda b, x: b.add(Crop, x, (3, 3), 2, (0, 0, 0)), "CROP.offset: has 3 numbers, not 2 or 1"),
    (
        lambda b, x: b.add(StridedSlice, x, (0,), (1, 1), (1, 1)),
        "STRIDED_SLICE.begin: .* equally many",
    ),
    (lambda b, x: b.add(StridedSlice, x, (0,), (1,), (0,)), "STRIDED_SLICE.strides: 0 is not"),
    (
        lambda b, x: b.add(StridedSlice, x, (0,) * 5, (1,) * 5, (1,) * 5),
        "STRIDED_SLICE.begin: is for 5 axes, but the input has 4",
    ),
    (
        lambda b, x: b.add(StridedSlice, x, (0, 0), (1, 1), (1, 1), ellipsis_mask=3),
        "STRIDED_SLICE.ellipsis_mask: 3 has more than one bit",
    ),
    (
        lambda b, x: b.add(StridedSlice, x, (2,), (0,), (1,), shrink_axis_mask=1),
        "STRIDED_SLICE.begin: 2 is not an index of an axis of size 2",
    ),
    (lambda b, x: b.add(GatherND, x, at([0] * 5)), "GATHER_ND.indices: places have 5 indices"),
    (lambda b, x: b.add(GatherND, x, at([0], [0]), 2), "GATHER_ND.batch_dims: 2 is not less"),
    (lambda b, x: b.add(GatherND, x, at([0]), 1), "GATHER_ND.indices: .* 2 and 1 differ"),
    (lambda b, x: b.add(GatherElements, x, at(0)), "GATHER_ELEMENTS.indices: has 1 axes, but"),
    (
        lambda b, x: b.add(GatherElements, ones(2, 2), at([0], [0], [0]), 1),
        "GATHER_ELEMENTS.indices: has size 3 on axis 0, the input only 2",
    ),
    (
        lambda b, x: b.add(ScatterElements, ones(3), at(0, 1), ones(3)),
        "SCATTER_ELEMENTS.updates: .* 3 and 2 differ",
    ),
    (
        lambda b, x: b.add(ScatterElements, ones(3), at(0), ones(1, 1)),
        "SCATTER_ELEMENTS.updates: has 2 axes, but indices has 1",
    ),
    (
        lambda b, x: b.add(ScatterND, ones(3), at([0]), ones(2)),
        "SCATTER_ND.updates: .* 2 and 1 differ",
    ),
    (
        lambda b, x: b.add(ScatterND, ones(3), at([0]), ones(1, 1)),
        "SCATTER_ND.updates: has 2 axes, not 1",
    ),
    (
        lambda b, x: b.add(ScatterND, ones(3), at([0, 0]), ones(1)),
        "SCATTER_ND.indices: places have 2 indices for 1 axes",
    ),
    (
        lambda b, x: b.add(
            ScatterND, ones(3, dtype=np.bool_), at([0]), ones(1, dtype=np.bool_), Scatter.ADD
        ),
        "SCATTER_ND.reduction: ADD is not for bool",
    ),
    (
        lambda b, x: b.add(SparseToDense, at([0, 1]), ones(2), (2, 2)),
        "SPARSE_TO_DENSE.values: .* 1 and 2 differ",
    ),
    (
        lambda b, x: b.add(SparseToDense, at([0, 1]), ones(1), (2,)),
        "SPARSE_TO_DENSE.indices: .* 2 and 1 differ",
    ),
    (
        lambda b, x: b.add(SparseToDense, at(0), ones(1), (2,)),
        "SPARSE_TO_DENSE.indices: has 1 axes, not 2",
    ),
    (
        lambda b, x: b.add(OneHot, at(0), -1, np.int8(1), np.int8(0)),
        "ONE_HOT.depth: -1 is negative",
    ),
    (
        lambda b, x: b.add(OneHot, at(0), 2, ones(2), ones(1)),
        "ONE_HOT.on_value: takes one element",
    ),
    (
        lambda b, x: b.add(OneHot, at(0), 2, np.int8(1), np.int16(0)),
        "ONE_HOT.off_value: is int16, but must be int8",
    ),
    (lambda b, x: b.add(Fill, (2,), ones(2)), "FILL.value: takes one element"),
    (lambda b, x: b.add(FillLike, x, ones(2)), "FILL_LIKE.value: takes one element"),
    (
        lambda b, x: b.add(Range, np.int64(0), np.int64(1), np.int64(0)),
        "RANGE.step: must not be 0",
    ),
    (
        lambda b, x: b.add(Range, np.float32(0), np.float32(np.inf), np.float32(1)),
        "RANGE.start: 0.0 to inf by 1.0 never ends",
    ),
    (
        lambda b, x: b.add(Range, np.int64(0), np.int32(1), np.int64(1)),
        "RANGE.end: is int32, but must be int64",
    ),
    (lambda b, x: b.add(Range, at(0, 1), at(2), at(1)), "RANGE.start: takes one element"),
    (lambda b, x: b.add_all(Unique, x, 4), r"UNIQUE.axis: 4 is not in \[-4, 4\)"),
    (lambda b, x: b.add(BitCast, x, ElementType.INT64), "BIT_CAST.dtype: int64 has not as many"),
    (lambda b, x: b.add_all(Assert, x, [x]), "ASSERT.condition: takes bool, not float32"),
    (
        lambda b, x: b.add(Quantize, x, 1, (0.5,), (128.0,)),
        r"QUANTIZE.zero_point: \[128\] are beyond int8",
    ),
    (
        lambda b, x: b.add(Quantize, x, 1, (0.5,), (0.0,), ElementType.INT64),
        "QUANTIZE.dtype: int64 is not a quantized type",
    ),
    (
        lambda b, x: b.add(
            Dequantize,
            b.constant(ones(2, 3, dtype=np.int8), "q", Quantization((1.0, 2.0), axis=1)),
        ),
        "DEQUANTIZE.input: the size of an axis, and the number of its scales: 3 and 2 differ",
    ),
]


@pytest.mark.parametrize(("build", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_a_broken_rule_is_named(build: Callable[[Builder, Operand], object], message: str) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, IMAGE))
    with pytest.raises(ModelError, match=message):
        build(b, x)


def test_an_unknown_count_of_outputs_is_refused() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, None))
    with pytest.raises(ModelError, match=r"UNSTACK.num: must be given"):
        b.add_all(Unstack, x)


OUTSIDE: list[tuple[Callable[[Builder, Operand], object], Any, str]] = [
    (lambda b, i: b.add(GatherND, b.constant(ones(2, 2)), i), at([0, 2]), "out of bounds"),
    (lambda b, i: b.add(GatherElements, b.constant(ones(2)), i), at(-3), "out of bounds"),
    (
        lambda b, i: b.add(ScatterND, b.constant(ones(2)), i, ones(1)),
        at([2]),
        "out of bounds",
    ),
    (
        lambda b, i: b.add(ReverseSequence, b.constant(ones(2, 1)), i),
        at(3),
        "lengths: .* does not fit",
    ),
    (lambda b, i: b.add(Pad, b.constant(ones(2)), i), at(-2, -2), "pads: -2 and -2 take more"),
    (lambda b, i: b.add(Tile, b.constant(ones(2)), i), at(-1), "negative"),
    (
        lambda b, i: b.add_all(Split, b.constant(ones(3)), 0, i)[0],
        at(1, 1),
        "split: its sum, and the size of the axis",
    ),
    (lambda b, i: b.add(Fill, i, np.float32(1)), at(-1), "negative"),
]


@pytest.mark.parametrize(("build", "value", "message"), OUTSIDE)
def test_what_shows_only_in_a_run_stops_it(
    build: Callable[[Builder, Operand], Any], value: Any, message: str
) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT64, value.shape))
    b.output("y", build(b, x))
    with pytest.raises(DeviceError, match=message):
        ReferenceProgram(b.build()).run([value])


def test_shapes_of_unknown_rank() -> None:
    """With an input of unknown rank, only the sizes that depend on it are unknown."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, None))
    for made in (b.add(Pad, x, (1, 1)), b.add(Tile, x, (2,)), b.add(Trilu, x), b.add(NonZero, x)):
        assert made.type.shape is None
    result, first, inverse, counts = b.add_all(Unique, x)
    assert [len(o.type.shape or ()) for o in (result, first, inverse, counts)] == [1, 1, 1, 1]


def test_shapes_of_computed_parameters() -> None:
    """The rank is known where the size of a computed parameter determines it."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))
    numbers = b.input("n", TensorType(ElementType.INT64, (4,)))
    assert len(b.add(Pad, x, numbers).type.shape or ()) == 2
    assert len(b.add(Tile, x, numbers).type.shape or ()) == 4
    assert len(b.add(Fill, numbers, np.float32(1)).type.shape or ()) == 4
    assert len(b.add(SparseToDense, at([0] * 4), ones(1), numbers).type.shape or ()) == 4
    pair = b.input("pair", TensorType(ElementType.INT64, (2,)))
    cut = b.add(StridedSlice, x, pair, pair, (1, 1), shrink_axis_mask=1, new_axis_mask=2)
    assert len(cut.type.shape or ()) == 2
    one = b.input("one", TensorType(ElementType.INT64, (1,)))
    assert len(b.add(OneHot, at(0, 1), one, np.int8(1), np.int8(0)).type.shape or ()) == 2
    assert len(b.add(Range, one, one, one).type.shape or ()) == 1
