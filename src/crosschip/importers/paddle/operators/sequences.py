"""Operators on tensors that hold sequences (LoD): Paddle 2's `sequence_*` and what goes with them.

Source: paddle/fluid/operators/sequence_ops of Paddle 2.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.activation import Softmax
from crosschip.ops.standard.arithmetic import Add, Div, FloorDiv, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Stack, Unstack
from crosschip.ops.standard.layout import Expand, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Not, Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import CumSum, ReduceMax, ReduceSum
from crosschip.ops.standard.searching import ArgMax, NonZero
from crosschip.ops.standard.unary import Sqrt

_POOLS = ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")


@imports("sequence_concat")
def sequence_concat(op: Context) -> None:
    """The first sequences of all inputs, one after the other, then the second ones, and so on."""
    parts, levels = op.inputs("X"), op.levels_of("X")
    finest = [of_part[-1] for of_part in levels]
    sizes = [ragged.size(op, part) for part in parts]
    before = [op.constant(np.zeros((), np.int64), "zero")]
    for size in sizes[:-1]:
        before.append(op.add(Add, before[-1], size))
    starts = [op.add(Add, ragged.starts(op, o), b) for o, b in zip(finest, before, strict=True)]
    longs = [ragged.lengths(op, offsets) for offsets in finest]
    in_order, first = (op.add(Reshape, op.add(Stack, p, 1), (-1,)) for p in (longs, starts))
    owner, place = ragged.repeated(op, in_order)
    rows = op.add(Add, op.add(Gather, first, owner, 0), place)
    op.make(Gather, op.add(Concat, parts=parts, axis=0), rows, 0)
    together = op.add(ReduceSum, op.add(Stack, longs, 1), (1,), keepdim=False)
    op.set_levels([ragged.offsets_of(op, together)])


@imports("sequence_conv")
def sequence_conv(op: Context) -> None:
    """Each row's neighbours of the same sequence beside each other, times the filter."""
    if op.flag("paddingTrainable", False):
        raise UnsupportedError("paddingTrainable True cannot be expressed; export with zeros")
    op.expect("contextStride", 1)
    x, offsets = op.input(), op.levels()[-1]
    rows = ragged.numbers_up_to(op, ragged.size(op, x))
    owner = ragged.sequence_of_rows(op, offsets, rows)
    low, high = (op.add(Gather, o, owner, 0) for o in _bounds(op, offsets))
    # Nothing is between these bounds where a row is in no sequence.
    high = op.add(Where, op.add(Less, owner, np.int64(0)), low, high)
    begin, parts = op.integer("contextStart", 0), []
    for shift in range(begin, begin + op.integer("contextLength")):
        other = op.add(Add, rows, np.int64(shift))
        parts.append(ragged.picked(op, x, other, ragged.is_between(op, other, low, high)))
    op.make(MatMul, op.add(Concat, parts=parts, axis=1), op.input("Filter"))


def _bounds(op: Context, offsets: Operand) -> tuple[Operand, Operand]:
    return ragged.starts(op, offsets), ragged.ends(op, offsets)


@imports("sequence_expand")
def sequence_expand(op: Context) -> None:
    """Each sequence, or row, as many times as a sequence of the other tensor is long."""
    x, levels = op.input(), op.levels("Y")
    place = op.integer("ref_level", -1)
    if not -1 <= place < len(levels):
        raise ModelError(f"ref_level: Y has {len(levels)} levels, and no level {place}")
    times = ragged.lengths(op, levels[place])
    owner, _ = ragged.repeated(op, times)
    if not op.holds_sequences("X"):
        op.make(Gather, x, owner, 0)
        return
    offsets = op.levels()[0]
    long = op.add(Gather, ragged.lengths(op, offsets), owner, 0)
    copy, inside = ragged.repeated(op, long)
    source = op.add(Gather, op.add(Gather, ragged.starts(op, offsets), owner, 0), copy, 0)
    op.make(Gather, x, op.add(Add, source, inside), 0)
    op.set_levels([ragged.offsets_of(op, long)])


@imports("sequence_expand_as")
def sequence_expand_as(op: Context) -> None:
    """Each row as many times as the other tensor's sequence is long."""
    offsets = op.levels("Y")[0]
    owner, _ = ragged.repeated(op, ragged.lengths(op, offsets))
    op.make(Gather, op.input(), owner, 0)
    op.set_levels([offsets])


@imports("sequence_pad")
def sequence_pad(op: Context) -> None:
    """The sequences beside each other, as long as the longest or as `padded_length`."""
    x, offsets, length = op.input(), op.levels()[-1], op.integer("padded_length", -1)
    longest: int | Operand = length
    if length == -1:
        longest = op.add(ReduceMax, ragged.lengths(op, offsets), (0,), keepdim=False)
    value = op.input("PadValue")
    if value.type.static_shape == (1,):
        value = op.add(Reshape, value, ())
    padded, _ = ragged.padded(op, x, offsets, value, longest)
    op.define(padded)
    op.define(ragged.lengths(op, offsets), "Length")


@imports("sequence_unpad")
def sequence_unpad(op: Context) -> None:
    """Of each row the first elements, as many as its length, one after the other."""
    lengths = op.as_type(op.add(Reshape, op.input("Length"), (-1,)), ElementType.INT64)
    rows = ragged.unpadded(op, op.input(), lengths)
    op.define(op.add(Unsqueeze, rows, (1,)) if op.rank(rows) == 1 else rows)
    op.set_levels([ragged.offsets_of(op, lengths)])


@imports("sequence_pool")
def sequence_pool(op: Context) -> None:
    """One row for each sequence; `pad_value` for an empty one."""
    kind, x, levels = op.text("pooltype", "AVERAGE"), op.input(), op.levels()
    if kind not in _POOLS:
        raise ModelError(f"pooltype: {kind!r} is not one of {', '.join(_POOLS)}")
    offsets = levels[-1]
    pooled = _pooled(op, kind, x, offsets)
    is_empty = op.add(Equal, ragged.lengths(op, offsets), np.int64(0))
    empty = ragged.with_axes_of_row(op, is_empty, x)
    value = np.array(op.real("pad_value", 0.0), x.type.element_type.dtype)
    op.make(Where, empty, value, pooled)
    if len(levels) > 1:
        op.set_levels(levels[:-1])


def _pooled(op: Context, kind: str, x: Operand, offsets: Operand) -> Operand:
    """The rows that sequences make; anything for an empty one."""
    if kind in ("FIRST", "LAST"):
        rows, after = _bounds(op, offsets)
        if kind == "LAST":
            rows = op.add(Sub, after, np.int64(1))
        is_there = op.add(Not, op.add(Equal, ragged.lengths(op, offsets), np.int64(0)))
        return ragged.picked(op, x, rows, is_there)
    dtype = x.type.element_type.dtype
    least = np.array(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min, dtype)
    filler = op.constant(least if kind == "MAX" else np.zeros((), dtype), "filler")
    beside, _ = ragged.padded(op, x, offsets, filler)
    if kind == "MAX":
        if op.is_read("MaxIndex"):
            _make_rows_of_greatest(op, x, beside, offsets)
        return op.add(ReduceMax, beside, (1,), keepdim=False)
    total = op.add(ReduceSum, beside, (1,), keepdim=False)
    if kind == "SUM":
        return total
    long = op.as_type(ragged.lengths(op, offsets), x.type.element_type)
    count = ragged.with_axes_of_row(op, long, x)
    return op.add(Div, total, count if kind == "AVERAGE" else op.add(Sqrt, count))


def _make_rows_of_greatest(op: Context, x: Operand, beside: Operand, offsets: Operand) -> None:
    """Make the row that each greatest element is in; -1 for an empty sequence."""
    first = ragged.with_axes_of_row(op, ragged.starts(op, offsets), x)
    rows = op.add(Add, op.add(ArgMax, beside, 1, keepdim=False), first)
    is_empty = op.add(Equal, ragged.lengths(op, offsets), np.int64(0))
    empty = ragged.with_axes_of_row(op, is_empty, x)
    greatest_rows = op.add(Where, empty, np.int64(-1), rows)
    op.make(Cast, greatest_rows, ElementType.INT32, output="MaxIndex")


@imports("sequence_reshape")
def sequence_reshape(op: Context) -> None:
    """Rows of another length."""
    x, width, offsets = op.input(), op.integer("new_dim"), op.levels()[0]
    old = (x.type.shape or (None, None))[1:]
    if len(old) != 1 or not isinstance(old[0], int) or width < 1:
        raise UnsupportedError(f"X: {x.type} must have rows of a known size, new_dim {width} too")
    op.make(Reshape, x, (-1, width))
    elements = op.add(Mul, offsets, np.int64(old[0]))
    op.set_levels([op.add(FloorDiv, elements, np.int64(width))])


@imports("sequence_reverse")
def sequence_reverse(op: Context) -> None:
    """Each sequence from its end to its beginning."""
    x, offsets = op.input(), op.levels()[-1]
    rows = ragged.numbers_up_to(op, ragged.size(op, x))
    owner = ragged.sequence_of_rows(op, offsets, rows)
    ends_of = op.add(Add, *_bounds(op, offsets))
    other = op.add(Sub, op.add(Sub, op.add(Gather, ends_of, owner, 0), np.int64(1)), rows)
    op.make(Gather, x, other, 0, output="Y")


@imports("sequence_softmax")
def sequence_softmax(op: Context) -> None:
    """Softmax over each sequence of numbers."""
    x, offsets = op.input(), op.levels()[-1]
    flat = op.add(Reshape, x, (-1,))
    least = np.array(-np.inf, x.type.element_type.dtype)
    beside, _ = ragged.padded(op, flat, offsets, op.constant(least, "least"))
    result = ragged.unpadded(op, op.add(Softmax, beside, 1), ragged.lengths(op, offsets))
    op.make(Reshape, result, op.shape(x))


@imports("im2sequence")
def im2sequence(op: Context) -> None:
    """A row for each window of an image, padded with zeros; the windows of an image are a sequence.

    Where `Y` has the height and width of each image, windows are as many as such an image has.
    """
    x, kernel = op.input(), _two(op, "kernels")
    stride, pads = _two(op, "strides"), op.integers("paddings", (0, 0, 0, 0))
    if len(pads) != 4:
        raise ModelError(f"paddings: must be 4 numbers, not {len(pads)}")
    sizes = _image_sizes(op, x)
    grid = [
        op.add(
            Add, op.add(FloorDiv, op.add(Add, size, np.int64(room)), np.int64(step)), np.int64(1)
        )
        for size, room, step in zip(
            sizes,
            (pads[0] + pads[2] - kernel[0], pads[1] + pads[3] - kernel[1]),
            stride,
            strict=True,
        )
    ]
    windows = op.add(Mul, *grid)
    owner, place = ragged.repeated(op, windows)
    width = op.add(Gather, grid[1], owner, 0)
    corners = op.add(FloorDiv, place, width), op.add(Mod, place, width)
    op.make(
        Reshape, _windows(op, x, owner, corners, kernel, stride, pads), (-1, _row(op, x, kernel))
    )
    op.set_levels([ragged.offsets_of(op, windows)])


@imports("var_conv_2d")
def var_conv_2d(op: Context) -> None:
    """A convolution of images of different sizes, padded by half of the kernel.

    An image is a sequence of numbers, [InputChannel, height, width] flattened, and so is a result.
    The heights are the lengths of the sequences of ROW and the widths of those of COLUMN; Paddle
    Lite has both as further levels of X. `Col` has for each image a column for each window,
    [InputChannel, KernelH, KernelW, windows].

    Source: lite/kernels/x86/var_conv_2d_compute.h of Paddle Lite.
    """
    op.expect("fuse_relu", False)
    offsets, *of_sizes = op.levels()
    if op.holds_sequences("ROW"):
        of_sizes = [op.levels("ROW")[-1], op.levels("COLUMN")[-1]]
    if len(of_sizes) != 2:
        raise ModelError("X: neither ROW and COLUMN nor two further levels have the images' sizes")
    sizes = [ragged.lengths(op, level) for level in of_sizes]
    strides = [np.int64(op.integer(name)) for name in ("StrideH", "StrideW")]
    grid = [
        op.add(FloorDiv, op.add(Add, size, stride - 1), stride)
        for size, stride in zip(sizes, strides, strict=True)
    ]
    windows = op.add(Mul, *grid)
    image, window = ragged.repeated(op, windows)
    width = op.add(Gather, grid[1], image, 0)
    corners = [
        op.add(Mul, op.add(operator, window, width), stride)
        for operator, stride in zip((FloorDiv, Mod), strides, strict=True)
    ]
    rows, row = _image_windows(op, offsets, image, sizes, corners)
    results = op.add(MatMul, rows, op.input("W"), transpose_y=True)
    tables = {"Out": (results, op.integer("OutputChannel")), "Col": (rows, row)}
    for output in filter(op.count, tables):
        table, count = tables[output]
        op.make(Unsqueeze, _columns(op, table, windows, count), (1,), output=output)
        lengths = op.add(Mul, windows, np.int64(count))
        op.set_levels([ragged.offsets_of(op, lengths)], output)


def _image_windows(
    op: Context,
    offsets: Operand,
    image: Operand,
    sizes: Sequence[Operand],
    corners: Sequence[Operand],
) -> tuple[Operand, int]:
    """The pixels [windows, row] of windows, 0 outside of their images, and the length of a row.

    Args:
        op: the operator.
        offsets: where each image begins.
        image: the image of each window.
        sizes: the heights and the widths of the images.
        corners: the row and the column of the pixel in the middle of each window.
    """
    channels, kernel = op.integer("InputChannel"), (op.integer("KernelH"), op.integer("KernelW"))
    height, width, begin, row, column = (
        op.add(Unsqueeze, operand, (1, 2, 3))
        for operand in (
            *(op.add(Gather, each, image, 0) for each in (*sizes, ragged.starts(op, offsets))),
            *corners,
        )
    )
    channel = op.constant(np.arange(channels).reshape(-1, 1, 1), "channels")
    rows = op.constant((np.arange(kernel[0]) - kernel[0] // 2).reshape(-1, 1), "rows")
    columns = op.constant(np.arange(kernel[1]) - kernel[1] // 2, "columns")
    row, column = op.add(Add, row, rows), op.add(Add, column, columns)
    is_inside = op.add(
        And,
        ragged.is_between(op, row, np.int64(0), height),
        ragged.is_between(op, column, np.int64(0), width),
    )
    line = op.add(Add, op.add(Mul, channel, height), row)
    pixel = op.add(Add, op.add(Add, op.add(Mul, line, width), column), begin)
    pixels = ragged.picked(op, op.add(Reshape, op.input(), (-1,)), pixel, is_inside)
    length = channels * math.prod(kernel)
    return op.add(Reshape, pixels, (-1, length)), length


def _columns(op: Context, table: Operand, lengths: Operand, count: int) -> Operand:
    """For sequences of rows, each sequence as a flattened table of which the rows are columns."""
    owner, place = ragged.repeated(op, op.add(Mul, lengths, np.int64(count)))
    length = op.add(Gather, lengths, owner, 0)
    first = op.add(Gather, op.add(Sub, op.add(CumSum, lengths, 0), lengths), owner, 0)
    row = op.add(Add, first, op.add(Mod, place, length))
    flat = op.add(Add, op.add(Mul, row, np.int64(count)), op.add(FloorDiv, place, length))
    return op.add(Gather, op.add(Reshape, table, (-1,)), flat, 0)


def _two(op: Context, name: str) -> tuple[int, int]:
    values = op.integers(name, (1, 1))
    if len(values) != 2 or min(values) < 1:
        raise ModelError(f"{name}: {list(values)} are not two positive numbers")
    return values[0], values[1]


def _image_sizes(op: Context, x: Operand) -> Sequence[Operand]:
    """The height and the width of each image [N], after what divides them."""
    size_input = op.optional_input("Y")
    if size_input is None:
        count = op.add(Reshape, ragged.size(op, x), (1,))
        return [op.add(Expand, ragged.size(op, x, axis), count) for axis in (2, 3)]
    sizes = op.as_type(op.add(Reshape, size_input, (-1, 2)), ElementType.INT64)
    divisors = op.integers("out_stride", (1, 1))
    over = op.constant(np.array(divisors, np.int64), "out_stride")
    # Rounded up.
    sizes = op.add(FloorDiv, op.add(Sub, op.add(Add, sizes, over), np.int64(1)), over)
    return op.add_all(Unstack, sizes, 1, 2)


def _windows(
    op: Context,
    x: Operand,
    owner: Operand,
    corners: Sequence[Operand],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pads: tuple[int, ...],
) -> Operand:
    """The pixels [rows, C, kernel_h, kernel_w] of windows, by their images and places in these."""
    sizes = [ragged.size(op, x, axis) for axis in (2, 3)]
    places, inside = [], []
    for axis, (corner, size) in enumerate(zip(corners, sizes, strict=True)):
        steps = np.arange(kernel[axis], dtype=np.int64).reshape((-1, 1) if axis == 0 else (-1,))
        first = op.add(Sub, op.add(Mul, corner, np.int64(stride[axis])), np.int64(pads[axis]))
        place = op.add(Add, op.add(Unsqueeze, first, (1, 2)), op.constant(steps, "steps"))
        places.append(place)
        inside.append(ragged.is_between(op, place, np.int64(0), size))
    row = op.add(Add, op.add(Mul, op.add(Unsqueeze, owner, (1, 2)), sizes[0]), places[0])
    pixel = op.add(Add, op.add(Mul, row, sizes[1]), places[1])
    pixels = op.add(Reshape, op.add(Transpose, x, (0, 2, 3, 1)), (-1, _channels(x)))
    window_pixels = ragged.picked(op, pixels, pixel, op.add(And, *inside))
    return op.add(Transpose, window_pixels, (0, 3, 1, 2))


def _channels(x: Operand) -> int:
    shape = x.type.shape
    if shape is None or len(shape) != 4 or not isinstance(shape[1], int):
        raise UnsupportedError(f"X: {x.type} must be images of a known number of channels")
    return shape[1]


def _row(op: Context, x: Operand, kernel: tuple[int, int]) -> int:
    return _channels(x) * math.prod(kernel)


@imports("split_lod_tensor")
def split_lod_tensor(op: Context) -> None:
    """The rows that a mask marks, and the others."""
    _expect_rows(op, "X")
    x, mask = op.input(), op.add(Reshape, op.input("Mask"), (-1,))
    for output, marked in (("OutTrue", mask), ("OutFalse", op.add(Not, mask))):
        rows = op.add(Squeeze, op.add(NonZero, marked), (0,))
        op.make(Gather, x, rows, 0, output=output)


@imports("merge_lod_tensor", "merge_lod_tensor_infer")
def merge_lod_tensor(op: Context) -> None:
    """The next row of one of two tensors, as a mask says."""
    _expect_rows(op, "X")
    mask = op.add(Reshape, op.input("Mask"), (-1,))
    yes, no = op.input("InTrue"), op.input("InFalse")
    mask_numbers = op.as_type(mask, ElementType.INT64)
    of_yes = op.add(Sub, op.add(CumSum, mask_numbers, 0), np.int64(1))
    unmarked = op.as_type(op.add(Not, mask), ElementType.INT64)
    of_no = op.add(Sub, op.add(CumSum, unmarked, 0), np.int64(1))
    rows = op.add(Where, mask, of_yes, op.add(Add, of_no, ragged.size(op, yes)))
    both = op.add(Concat, parts=[yes, no], axis=0)
    # There are as many rows as the two tensors have; those that no mark is for are never written.
    left = op.add(Sub, ragged.size(op, both), ragged.size(op, mask))
    nothing = op.add(Expand, ragged.size(op, both), op.add(Reshape, left, (1,)))
    rows = op.add(Concat, parts=[rows, nothing], axis=0)
    op.define(ragged.picked(op, both, rows, op.add(Less, rows, ragged.size(op, both))))


def _expect_rows(op: Context, slot: str) -> None:
    if op.holds_sequences(slot):
        raise UnsupportedError(f"{slot}: sequences are not split by a mask here, only rows are")
