"""Operators on sequences with LoD: Paddle 2's `sequence_*` and related operators.

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
    """Concatenate the first sequences of all inputs, then the second ones, and so on."""
    parts, levels = op.inputs("X"), op.levels_of("X")
    finest = [part_levels[-1] for part_levels in levels]
    sizes = [ragged.size(op, part) for part in parts]
    first_rows = [op.constant(np.zeros((), np.int64), "zero")]
    for size in sizes[:-1]:
        first_rows.append(op.add(Add, first_rows[-1], size))
    starts = [op.add(Add, ragged.starts(op, o), b) for o, b in zip(finest, first_rows, strict=True)]
    lengths = [ragged.lengths(op, offsets) for offsets in finest]
    counts, firsts = (op.add(Reshape, op.add(Stack, p, 1), (-1,)) for p in (lengths, starts))
    sequence, position = ragged.sequence_positions(op, counts)
    rows = op.add(Add, op.add(Gather, firsts, sequence, 0), position)
    op.make(Gather, op.add(Concat, parts=parts, axis=0), rows, 0)
    total_lengths = op.add(ReduceSum, op.add(Stack, lengths, 1), (1,), keepdim=False)
    op.set_levels([ragged.offsets_from_lengths(op, total_lengths)])


@imports("sequence_conv")
def sequence_conv(op: Context) -> None:
    """Convolve along sequences: multiply the concatenated neighbours of each row by the filter."""
    if op.flag("paddingTrainable", False):
        raise UnsupportedError("trainable padding cannot be expressed; export zero padding")
    op.expect("contextStride", 1)
    x, offsets = op.input(), op.levels()[-1]
    rows = ragged.arange(op, ragged.size(op, x))
    sequence = ragged.row_sequences(op, offsets, rows)
    low, high = (op.add(Gather, o, sequence, 0) for o in _bounds(op, offsets))
    # The range is empty for a row in no sequence.
    high = op.add(Where, op.add(Less, sequence, np.int64(0)), low, high)
    begin, parts = op.integer("contextStart", 0), []
    for shift in range(begin, begin + op.integer("contextLength")):
        shifted = op.add(Add, rows, np.int64(shift))
        parts.append(ragged.gather_rows(op, x, shifted, ragged.in_range(op, shifted, low, high)))
    op.make(MatMul, op.add(Concat, parts=parts, axis=1), op.input("Filter"))


def _bounds(op: Context, offsets: Operand) -> tuple[Operand, Operand]:
    return ragged.starts(op, offsets), ragged.ends(op, offsets)


@imports("sequence_expand")
def sequence_expand(op: Context) -> None:
    """Repeat each sequence or row by the length of the corresponding sequence of `Y`."""
    x, levels = op.input(), op.levels("Y")
    level = op.integer("ref_level", -1)
    if not -1 <= level < len(levels):
        raise ModelError(f"ref_level: Y has {len(levels)} levels, and no level {level}")
    times = ragged.lengths(op, levels[level])
    sequence, _ = ragged.sequence_positions(op, times)
    if not op.holds_sequences("X"):
        op.make(Gather, x, sequence, 0)
        return
    offsets = op.levels()[0]
    repeated_lengths = op.add(Gather, ragged.lengths(op, offsets), sequence, 0)
    copy_index, inside = ragged.sequence_positions(op, repeated_lengths)
    source = op.add(Gather, op.add(Gather, ragged.starts(op, offsets), sequence, 0), copy_index, 0)
    op.make(Gather, x, op.add(Add, source, inside), 0)
    op.set_levels([ragged.offsets_from_lengths(op, repeated_lengths)])


@imports("sequence_expand_as")
def sequence_expand_as(op: Context) -> None:
    """Repeat each row by the length of the corresponding sequence of `Y`."""
    offsets = op.levels("Y")[0]
    sequence, _ = ragged.sequence_positions(op, ragged.lengths(op, offsets))
    op.make(Gather, op.input(), sequence, 0)
    op.set_levels([offsets])


@imports("sequence_pad")
def sequence_pad(op: Context) -> None:
    """Import `sequence_pad`: the sequences padded to the longest, or to `padded_length`."""
    x, offsets, length = op.input(), op.levels()[-1], op.integer("padded_length", -1)
    padded_length: int | Operand = length
    if length == -1:
        padded_length = op.add(ReduceMax, ragged.lengths(op, offsets), (0,), keepdim=False)
    value = op.input("PadValue")
    if value.type.static_shape == (1,):
        value = op.add(Reshape, value, ())
    padded, _ = ragged.pad_sequences(op, x, offsets, value, padded_length)
    op.define(padded)
    op.define(ragged.lengths(op, offsets), "Length")


@imports("sequence_unpad")
def sequence_unpad(op: Context) -> None:
    """Import `sequence_unpad`: the concatenation of padded sequences without their padding."""
    lengths = op.as_type(op.add(Reshape, op.input("Length"), (-1,)), ElementType.INT64)
    rows = ragged.unpad_sequences(op, op.input(), lengths)
    op.define(op.add(Unsqueeze, rows, (1,)) if op.rank(rows) == 1 else rows)
    op.set_levels([ragged.offsets_from_lengths(op, lengths)])


@imports("sequence_pool")
def sequence_pool(op: Context) -> None:
    """Reduce each sequence to one row; `pad_value` for an empty sequence."""
    kind, x, levels = op.text("pooltype", "AVERAGE"), op.input(), op.levels()
    if kind not in _POOLS:
        raise ModelError(f"pooltype: {kind!r} is not one of {', '.join(_POOLS)}")
    offsets = levels[-1]
    pooled = _pool(op, kind, x, offsets)
    is_empty = op.add(Equal, ragged.lengths(op, offsets), np.int64(0))
    empty = ragged.expand_to_rows(op, is_empty, x)
    value = np.array(op.real("pad_value", 0.0), x.type.element_type.dtype)
    op.make(Where, empty, value, pooled)
    if len(levels) > 1:
        op.set_levels(levels[:-1])


def _pool(op: Context, kind: str, x: Operand, offsets: Operand) -> Operand:
    """Reduce each sequence to one row, which is undefined for an empty sequence."""
    if kind in ("FIRST", "LAST"):
        rows, after = _bounds(op, offsets)
        if kind == "LAST":
            rows = op.add(Sub, after, np.int64(1))
        is_not_empty = op.add(Not, op.add(Equal, ragged.lengths(op, offsets), np.int64(0)))
        return ragged.gather_rows(op, x, rows, is_not_empty)
    dtype = x.type.element_type.dtype
    lowest = np.array(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min, dtype)
    filler = op.constant(lowest if kind == "MAX" else np.zeros((), dtype), "filler")
    padded, _ = ragged.pad_sequences(op, x, offsets, filler)
    if kind == "MAX":
        if op.is_read("MaxIndex"):
            _make_max_index(op, x, padded, offsets)
        return op.add(ReduceMax, padded, (1,), keepdim=False)
    total = op.add(ReduceSum, padded, (1,), keepdim=False)
    if kind == "SUM":
        return total
    lengths = op.as_type(ragged.lengths(op, offsets), x.type.element_type)
    count = ragged.expand_to_rows(op, lengths, x)
    return op.add(Div, total, count if kind == "AVERAGE" else op.add(Sqrt, count))


def _make_max_index(op: Context, x: Operand, padded: Operand, offsets: Operand) -> None:
    """Set `MaxIndex` to the row of each maximum; -1 for an empty sequence."""
    first = ragged.expand_to_rows(op, ragged.starts(op, offsets), x)
    rows = op.add(Add, op.add(ArgMax, padded, 1, keepdim=False), first)
    is_empty = op.add(Equal, ragged.lengths(op, offsets), np.int64(0))
    empty = ragged.expand_to_rows(op, is_empty, x)
    greatest_rows = op.add(Where, empty, np.int64(-1), rows)
    op.make(Cast, greatest_rows, ElementType.INT32, output="MaxIndex")


@imports("sequence_reshape")
def sequence_reshape(op: Context) -> None:
    """Reshape rows to another width, and scale the LoD accordingly."""
    x, width, offsets = op.input(), op.integer("new_dim"), op.levels()[0]
    old = (x.type.shape or (None, None))[1:]
    if len(old) != 1 or not isinstance(old[0], int) or width < 1:
        raise UnsupportedError(f"X: {x.type} must have rows of a known size, new_dim {width} too")
    op.make(Reshape, x, (-1, width))
    elements = op.add(Mul, offsets, np.int64(old[0]))
    op.set_levels([op.add(FloorDiv, elements, np.int64(width))])


@imports("sequence_reverse")
def sequence_reverse(op: Context) -> None:
    """Import `sequence_reverse`: each sequence in reverse order."""
    x, offsets = op.input(), op.levels()[-1]
    rows = ragged.arange(op, ragged.size(op, x))
    sequence = ragged.row_sequences(op, offsets, rows)
    bound_sums = op.add(Add, *_bounds(op, offsets))
    source = op.add(Sub, op.add(Sub, op.add(Gather, bound_sums, sequence, 0), np.int64(1)), rows)
    op.make(Gather, x, source, 0, output="Y")


@imports("sequence_softmax")
def sequence_softmax(op: Context) -> None:
    """Softmax over each sequence of scalars."""
    x, offsets = op.input(), op.levels()[-1]
    flat = op.add(Reshape, x, (-1,))
    lowest = np.array(-np.inf, x.type.element_type.dtype)
    padded, _ = ragged.pad_sequences(op, flat, offsets, op.constant(lowest, "least"))
    result = ragged.unpad_sequences(op, op.add(Softmax, padded, 1), ragged.lengths(op, offsets))
    op.make(Reshape, result, op.shape(x))


@imports("im2sequence")
def im2sequence(op: Context) -> None:
    """Import `im2sequence`: a row per window of a zero-padded image, a sequence per image.

    If `Y` has the height and width of each image, they determine the number of windows.
    """
    x, kernel = op.input(), _pair(op, "kernels")
    stride, pads = _pair(op, "strides"), op.integers("paddings", (0, 0, 0, 0))
    if len(pads) != 4:
        raise ModelError(f"paddings: must be 4 numbers, not {len(pads)}")
    sizes = _image_sizes(op, x)
    grid = [
        op.add(
            Add, op.add(FloorDiv, op.add(Add, size, np.int64(extent)), np.int64(step)), np.int64(1)
        )
        for size, extent, step in zip(
            sizes,
            (pads[0] + pads[2] - kernel[0], pads[1] + pads[3] - kernel[1]),
            stride,
            strict=True,
        )
    ]
    windows = op.add(Mul, *grid)
    image, window = ragged.sequence_positions(op, windows)
    width = op.add(Gather, grid[1], image, 0)
    corners = op.add(FloorDiv, window, width), op.add(Mod, window, width)
    pixels = _gather_windows(op, x, image, corners, kernel, stride, pads)
    op.make(Reshape, pixels, (-1, _channels(x) * math.prod(kernel)))
    op.set_levels([ragged.offsets_from_lengths(op, windows)])


@imports("var_conv_2d")
def var_conv_2d(op: Context) -> None:
    """Convolve images of different sizes, padded by half of the kernel.

    Each image, and each result, is a sequence of numbers: [InputChannel, height, width] flattened.
    The heights and widths are the lengths of the sequences of ROW and COLUMN, or in Paddle Lite of
    two further LoD levels of X. `Col` has [InputChannel, KernelH, KernelW, windows] for each image.

    Source: lite/kernels/x86/var_conv_2d_compute.h of Paddle Lite.
    """
    op.expect("fuse_relu", False)
    offsets, *size_levels = op.levels()
    if op.holds_sequences("ROW"):
        size_levels = [op.levels("ROW")[-1], op.levels("COLUMN")[-1]]
    if len(size_levels) != 2:
        raise ModelError("X: neither ROW and COLUMN nor two further levels have the images' sizes")
    sizes = [ragged.lengths(op, level) for level in size_levels]
    strides = [np.int64(op.integer(name)) for name in ("StrideH", "StrideW")]
    grid = [
        op.add(FloorDiv, op.add(Add, size, stride - 1), stride)
        for size, stride in zip(sizes, strides, strict=True)
    ]
    windows = op.add(Mul, *grid)
    image, window = ragged.sequence_positions(op, windows)
    width = op.add(Gather, grid[1], image, 0)
    corners = [
        op.add(Mul, op.add(operator, window, width), stride)
        for operator, stride in zip((FloorDiv, Mod), strides, strict=True)
    ]
    rows, row = _gather_image_windows(op, offsets, image, sizes, corners)
    results = op.add(MatMul, rows, op.input("W"), transpose_y=True)
    tables = {"Out": (results, op.integer("OutputChannel")), "Col": (rows, row)}
    for output in filter(op.count, tables):
        table, count = tables[output]
        op.make(Unsqueeze, _transpose_ragged(op, table, windows, count), (1,), output=output)
        lengths = op.add(Mul, windows, np.int64(count))
        op.set_levels([ragged.offsets_from_lengths(op, lengths)], output)


def _gather_image_windows(
    op: Context,
    offsets: Operand,
    image: Operand,
    sizes: Sequence[Operand],
    corners: Sequence[Operand],
) -> tuple[Operand, int]:
    """Gather the pixels [windows, n] of windows, 0 outside of their images; return them and n.

    Args:
        op: the operator.
        offsets: the offsets of the images.
        image: the image index of each window.
        sizes: the heights and the widths of the images.
        corners: the row and the column of each window's centre.
    """
    channels, kernel = op.integer("InputChannel"), (op.integer("KernelH"), op.integer("KernelW"))
    height, width, begin, row, column = (
        op.add(Unsqueeze, operand, (1, 2, 3))
        for operand in (
            *(op.add(Gather, value, image, 0) for value in (*sizes, ragged.starts(op, offsets))),
            *corners,
        )
    )
    channel = op.constant(np.arange(channels).reshape(-1, 1, 1), "channels")
    rows = op.constant((np.arange(kernel[0]) - kernel[0] // 2).reshape(-1, 1), "rows")
    columns = op.constant(np.arange(kernel[1]) - kernel[1] // 2, "columns")
    row, column = op.add(Add, row, rows), op.add(Add, column, columns)
    is_inside = op.add(
        And,
        ragged.in_range(op, row, np.int64(0), height),
        ragged.in_range(op, column, np.int64(0), width),
    )
    line = op.add(Add, op.add(Mul, channel, height), row)
    pixel = op.add(Add, op.add(Add, op.add(Mul, line, width), column), begin)
    pixels = ragged.gather_rows(op, op.add(Reshape, op.input(), (-1,)), pixel, is_inside)
    length = channels * math.prod(kernel)
    return op.add(Reshape, pixels, (-1, length)), length


def _transpose_ragged(op: Context, table: Operand, lengths: Operand, count: int) -> Operand:
    """Transpose the matrix [length, count] of each sequence, and flatten it."""
    sequence, position = ragged.sequence_positions(op, op.add(Mul, lengths, np.int64(count)))
    length = op.add(Gather, lengths, sequence, 0)
    first = op.add(Gather, op.add(Sub, op.add(CumSum, lengths, 0), lengths), sequence, 0)
    row = op.add(Add, first, op.add(Mod, position, length))
    flat = op.add(Add, op.add(Mul, row, np.int64(count)), op.add(FloorDiv, position, length))
    return op.add(Gather, op.add(Reshape, table, (-1,)), flat, 0)


def _pair(op: Context, name: str) -> tuple[int, int]:
    values = op.integers(name, (1, 1))
    if len(values) != 2 or min(values) < 1:
        raise ModelError(f"{name}: {list(values)} are not two positive numbers")
    return values[0], values[1]


def _image_sizes(op: Context, x: Operand) -> Sequence[Operand]:
    """Return the heights and widths [N] of the images, divided by `out_stride`."""
    size_input = op.optional_input("Y")
    if size_input is None:
        count = op.add(Reshape, ragged.size(op, x), (1,))
        return [op.add(Expand, ragged.size(op, x, axis), count) for axis in (2, 3)]
    sizes = op.as_type(op.add(Reshape, size_input, (-1, 2)), ElementType.INT64)
    divisors = op.integers("out_stride", (1, 1))
    divisor = op.constant(np.array(divisors, np.int64), "out_stride")
    # Division rounded up.
    sizes = op.add(FloorDiv, op.add(Sub, op.add(Add, sizes, divisor), np.int64(1)), divisor)
    return op.add_all(Unstack, sizes, 1, 2)


def _gather_windows(
    op: Context,
    x: Operand,
    image: Operand,
    corners: Sequence[Operand],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pads: tuple[int, ...],
) -> Operand:
    """Gather the pixels [windows, C, kernel_h, kernel_w] of windows in their images."""
    sizes = [ragged.size(op, x, axis) for axis in (2, 3)]
    coordinates, inside = [], []
    for axis, (corner, size) in enumerate(zip(corners, sizes, strict=True)):
        steps = np.arange(kernel[axis], dtype=np.int64).reshape((-1, 1) if axis == 0 else (-1,))
        first = op.add(Sub, op.add(Mul, corner, np.int64(stride[axis])), np.int64(pads[axis]))
        coordinate = op.add(Add, op.add(Unsqueeze, first, (1, 2)), op.constant(steps, "steps"))
        coordinates.append(coordinate)
        inside.append(ragged.in_range(op, coordinate, np.int64(0), size))
    row = op.add(Add, op.add(Mul, op.add(Unsqueeze, image, (1, 2)), sizes[0]), coordinates[0])
    pixel = op.add(Add, op.add(Mul, row, sizes[1]), coordinates[1])
    pixels = op.add(Reshape, op.add(Transpose, x, (0, 2, 3, 1)), (-1, _channels(x)))
    window_pixels = ragged.gather_rows(op, pixels, pixel, op.add(And, *inside))
    return op.add(Transpose, window_pixels, (0, 3, 1, 2))


def _channels(x: Operand) -> int:
    shape = x.type.shape
    if shape is None or len(shape) != 4 or not isinstance(shape[1], int):
        raise UnsupportedError(f"X: {x.type} must be images of a known number of channels")
    return shape[1]


@imports("split_lod_tensor")
def split_lod_tensor(op: Context) -> None:
    """Import `split_lod_tensor`: the rows where a mask is true, and the rows where it is false."""
    _check_no_sequences(op, "X")
    x, mask = op.input(), op.add(Reshape, op.input("Mask"), (-1,))
    for output, marked in (("OutTrue", mask), ("OutFalse", op.add(Not, mask))):
        rows = op.add(Squeeze, op.add(NonZero, marked), (0,))
        op.make(Gather, x, rows, 0, output=output)


@imports("merge_lod_tensor", "merge_lod_tensor_infer")
def merge_lod_tensor(op: Context) -> None:
    """Merge the rows of two tensors by a mask that selects the tensor of each next row."""
    _check_no_sequences(op, "X")
    mask = op.add(Reshape, op.input("Mask"), (-1,))
    true_rows, false_rows = op.input("InTrue"), op.input("InFalse")
    mask_numbers = op.as_type(mask, ElementType.INT64)
    true_index = op.add(Sub, op.add(CumSum, mask_numbers, 0), np.int64(1))
    unmarked = op.as_type(op.add(Not, mask), ElementType.INT64)
    false_index = op.add(Sub, op.add(CumSum, unmarked, 0), np.int64(1))
    rows = op.add(Where, mask, true_index, op.add(Add, false_index, ragged.size(op, true_rows)))
    all_rows = op.add(Concat, parts=[true_rows, false_rows], axis=0)
    # The output has the rows of both tensors; those beyond the mask are 0.
    missing = op.add(Sub, ragged.size(op, all_rows), ragged.size(op, mask))
    out_of_range = op.add(Expand, ragged.size(op, all_rows), op.add(Reshape, missing, (1,)))
    rows = op.add(Concat, parts=[rows, out_of_range], axis=0)
    op.define(ragged.gather_rows(op, all_rows, rows, op.add(Less, rows, ragged.size(op, all_rows))))


def _check_no_sequences(op: Context, slot: str) -> None:
    if op.holds_sequences(slot):
        raise UnsupportedError(f"{slot}: sequences are not split by a mask here, only rows are")
