"""MediaPipe's pooling with the positions of the largest elements, and its inverse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.enumerations import ActivationFunctionType
from crosschip.importers.facts import static_shape_of
from crosschip.importers.tflite.custom_options import unpack
from crosschip.importers.tflite.node import Node, imports
from crosschip.importers.tflite.operators.stablehlo_indexing import element_numbers
from crosschip.ir import ElementType, ModelError, Operand
from crosschip.ir.budget import spend
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mod
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather, ScatterND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.reduction import ReduceMax
from crosschip.ops.standard.searching import ArgMax
from crosschip.ops.standard.slicing import Slice

_SAME, _VALID = 1, 2
"""The paddings by TfLitePadding, which counts from 1."""


@dataclass(frozen=True)
class _Window:
    """A pooling's window on one axis.

    Attributes:
        size: of the window.
        stride: the distance between windows.
    """

    size: int
    stride: int

    def padding(self, length: int, count: int) -> int:
        """Return the padding before an axis of some length with a number of windows."""
        return max(0, (count - 1) * self.stride + self.size - length) // 2


def _windows(node: Node) -> tuple[int, list[_Window], int]:
    """Return the padding, the windows of rows and columns, and the activation of the options."""
    padding, stride_w, stride_h, width, height, code = unpack("<6i", node.custom_options)
    windows = [_Window(height, stride_h), _Window(width, stride_w)]
    if padding not in (_SAME, _VALID) or min(height, width, stride_h, stride_w) < 1:
        raise ModelError(f"padding {padding} and windows {windows}")
    return padding, windows, ActivationFunctionType(code)


@imports("custom.MaxPoolingWithArgmax2D")
def max_pooling_with_argmax(node: Node) -> tuple[Operand, Operand]:
    """Import the largest elements of windows, and their positions in them plus 0.1."""
    padding, windows, code = _windows(node)
    _, *image, _ = static_shape_of(node[0])
    parts, pads = node[0], [0] * 8
    counts = []
    for axis, (length, window) in enumerate(zip(image, windows, strict=True), 1):
        covered = length + window.stride - (1 if padding == _SAME else window.size)
        counts.append(covered // window.stride)
        if counts[-1] < 1:
            raise ModelError(f"windows of {window.size} on an axis of {length}")
        before = window.padding(length, counts[-1]) if padding == _SAME else 0
        needed = (counts[-1] - 1) * window.stride + window.size
        pads[2 * axis : 2 * axis + 2] = before, max(0, needed - length - before)
    if any(pads):
        parts = node.add(Pad, parts, tuple(pads), value=np.float32(-np.inf))
    for axis, count, window in zip((1, 3), counts, windows, strict=True):
        spend(bytes=8 * count * window.size)
        positions = np.arange(count)[:, None] * window.stride + np.arange(window.size)
        parts = node.add(Gather, parts, positions.astype(np.int64), axis=axis)
    # [N, rows, height, columns, width, C]
    parts = node.add(Transpose, parts, (0, 1, 3, 5, 2, 4))
    parts = node.add(Reshape, parts, (0, 0, 0, 0, windows[0].size * windows[1].size))
    largest = node.add(ReduceMax, parts, (4,), False)
    number = node.add(Cast, node.add(ArgMax, parts, axis=4, keepdim=False), ElementType.FLOAT32)
    low, high = node.fuse_code(code).bounds
    if np.isfinite([low, high]).any():
        largest = node.add(Clip, largest, low, high)
    return largest, node.add(Add, number, np.float32(0.1))


@imports("custom.MaxUnpooling2D")
def max_unpooling(node: Node) -> Operand:
    """Import elements at their positions in windows, and zeros elsewhere."""
    _, windows, _ = _windows(node)
    batch, *image, channels = static_shape_of(node[0])
    sizes = [count * window.size for count, window in zip(image, windows, strict=True)]
    shape = (batch, sizes[0], sizes[1], channels)
    spend(bytes=4 * 8 * batch * image[0] * image[1] * channels)
    index = node.add(Cast, node[1], ElementType.INT64)
    width = np.array(windows[1].size, np.int64)
    offsets = node.add(Div, index, width), node.add(Mod, index, width)
    grid = np.indices((batch, *image, channels), np.int64)
    positions: list[Operand] = [node.constant(grid[0])]
    for axis, (offset, window) in enumerate(zip(offsets, windows, strict=True)):
        before = window.padding(sizes[axis], image[axis])
        start = grid[axis + 1] * window.stride - before
        positions.append(node.add(Add, offset, start))
    positions.append(node.constant(grid[3]))
    return _scattered(node, positions, shape)


def _scattered(node: Node, positions: Sequence[Operand], shape: Sequence[int]) -> Operand:
    """Return zeros with the elements of the first input at positions, of which all may be outside.

    Args:
        node: the operator.
        positions: the position of each element on each axis.
        shape: the shape of the result.
    """
    columns = [node.add(Unsqueeze, each, axes=(4,)) for each in positions]
    numbers = element_numbers(node, node.add(Concat, parts=columns, axis=4), shape)
    count = int(np.prod(shape))
    scattered = node.add(
        ScatterND,
        np.zeros(count + 1, np.float32),
        node.add(Reshape, numbers, (-1, 1)),
        node.add(Reshape, node[0], (-1,)),
    )
    inside = node.add(Slice, scattered, axes=(0,), starts=(0,), ends=(count,))
    return node.add(Reshape, inside, tuple(shape))
