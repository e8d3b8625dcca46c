"""Custom operators of MediaPipe."""

from __future__ import annotations

import math

import numpy as np

from crosschip.flatbuffer.schemas.tflite.enumerations import Padding
from crosschip.importers.facts import rank_of, size_of
from crosschip.importers.tflite.custom_options import CustomOptions, unpack
from crosschip.importers.tflite.node import Node, imports
from crosschip.importers.tflite.operators.convolution import add_transposed
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.comparison import GreaterEqual, LessEqual
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin, ReduceSum
from crosschip.ops.standard.sampling import GridSample
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Neg, Sqrt, Square

_PADDINGS = {1: Padding.SAME, 2: Padding.VALID}
"""The paddings by TfLitePadding, which counts from 1."""


@imports("custom.Convolution2DTransposeBias")
def convolution_2d_transpose_bias(node: Node) -> Operand:
    """Import a transposed convolution with a filter [C_out, H, W, C_in]; padding gives its size."""
    padding, stride_w, stride_h = unpack("<iii", node.custom_options)
    if padding not in _PADDINGS:
        raise ModelError(f"padding {padding} is neither 1 nor 2")
    input, filter = node[0], node[1]
    sizes = [size_of(input, 0)]
    for axis, stride in ((1, stride_h), (2, stride_w)):
        size, kernel = size_of(input, axis), size_of(filter, axis)
        cut = max(0, kernel - (size - 1) % stride - 1) if padding == 1 else 0
        sizes.append(stride * (size - 1) + kernel - cut)
    shape = node.constant(np.array([*sizes, size_of(filter, 0)], np.int32))
    strides = stride_h, stride_w
    transposed = node.transpose(filter, (3, 0, 1, 2))
    return add_transposed(
        node, input, transposed, node.optional(2), shape, _PADDINGS[padding], strides
    )


@imports("custom.Landmarks2TransformMatrix")
def landmarks_to_transform_matrix(node: Node) -> Operand:
    """Import the matrix that maps a crop's pixels to the image.

    The crop is the bounding box of some landmarks, after a rotation that makes the line between two
    of them horizontal.
    """
    if node.version != 2:
        raise UnsupportedError(f"version {node.version} of this operator; convert the model again")
    options = CustomOptions(node.custom_options)
    points = node.add(Reshape, node[0], (-1, 3))
    points = node.add(Slice, points, (1,), (0,), (2,))
    ends = [options.integer(f"{side}_rotation_idx") for side in ("left", "right")]
    left, right = (node.add(Gather, points, np.array(index), 0) for index in ends)
    line = node.add(Sub, right, left)
    length = node.add(Sqrt, node.add(ReduceSum, node.add(Square, line), (0,)))
    direction = node.add(Div, line, length)
    # The rotation is by the target's angle minus the line's.
    angle = options.real("target_rotation_radians", 0.0)
    turn = np.array([[math.cos(angle), math.sin(angle)], [math.sin(angle), -math.cos(angle)]])
    cos_sin = node.add(MatMul, turn.astype(np.float32), direction)
    cos, sin = (node.add(Slice, cos_sin, (0,), (n,), (n + 1,)) for n in (0, 1))
    inverse = _matrix(node, [cos, sin, node.add(Neg, sin), cos], (2, 2))
    subset = np.array(options.integers("subset_idxs"), np.int64)
    # A point times the inverse rotation's matrix is the rotated point.
    rotated = node.add(MatMul, node.add(Gather, points, subset, 0), inverse)
    low, high = node.add(ReduceMin, rotated, (0,), False), node.add(ReduceMax, rotated, (0,), False)
    centre = node.add(Mul, node.add(Add, low, high), np.float32(0.5))
    size = np.array([options.integer("output_width"), options.integer("output_height")], np.float32)
    factors = np.array([options.real("scale_x"), options.real("scale_y")], np.float32) / size
    scaled = node.add(Mul, inverse, node.add(Mul, node.add(Sub, high, low), factors))
    shift = node.add(MatMul, scaled, -size / np.float32(2))
    shift = node.add(Add, node.add(MatMul, inverse, centre), shift)
    return _affine(node, scaled, shift)


def _matrix(node: Node, elements: list[Operand], shape: tuple[int, ...]) -> Operand:
    """Return a matrix of elements [1]."""
    return node.add(Reshape, node.add(Concat, parts=elements, axis=0), shape)


def _affine(node: Node, linear: Operand, shift: Operand) -> Operand:
    """Return the matrix [1, 4, 4] of a linear map [2, 2] and a shift [2] of the first axes."""
    zeros = node.constant(np.zeros((2, 1), np.float32))
    top = node.add(Concat, parts=[linear, zeros, node.add(Reshape, shift, (2, 1))], axis=1)
    bottom = node.constant(np.eye(4, dtype=np.float32)[2:])
    return node.add(Reshape, node.add(Concat, parts=[top, bottom], axis=0), (1, 4, 4))


def _transform(node: Node, points: Operand, matrix: Operand, scale: float = 1.0) -> Operand:
    """Return points [M, 2] mapped by the first two rows of a matrix [1, 4, 4]."""
    rows = node.add(Slice, node.add(Reshape, matrix, (4, 4)), (0,), (0,), (2,))
    linear = node.add(Slice, rows, (1,), (0,), (2,))
    shift = node.add(Reshape, node.add(Slice, rows, (1,), (3,), (4,)), (2,))
    if scale != 1:
        shift = node.add(Mul, shift, np.float32(scale))
    return node.add(Add, node.add(MatMul, points, linear, transpose_y=True), shift)


@imports("custom.TransformLandmarks")
def transform_landmarks(node: Node) -> Operand:
    """Import the mapping of landmarks' first two coordinates by a matrix."""
    landmarks = node[0]
    dimensions, scale = size_of(landmarks, rank_of(landmarks) - 1), 1.0
    if node.version == 1:
        options = CustomOptions(node.custom_options)
        dimensions, scale = options.integer("dimensions", 3), options.real("scale", 1.0)
    if dimensions not in (2, 3):
        raise ModelError(f"landmarks of {dimensions} dimensions")
    points = node.add(Reshape, landmarks, (-1, dimensions))
    plane = node.add(Slice, points, (1,), (0,), (2,))
    moved = _transform(node, plane, node[1], scale)
    if dimensions == 3:
        depth = node.add(Slice, points, (1,), (2,), (3,))
        moved = node.add(Concat, parts=[moved, depth], axis=1)
    shape = landmarks.type.static_shape
    if shape is None:
        raise UnsupportedError("landmarks of unknown number")
    return node.add(Reshape, moved, shape)


@imports("custom.TransformTensorBilinear", "custom.TransformTensor")
def transform_tensor_bilinear(node: Node) -> Operand:
    """Import the pixels at a matrix's positions; those outside the image are 0."""
    options = CustomOptions(node.custom_options)
    height, width = options.integer("output_height"), options.integer("output_width")
    image = node[0]
    # From version 2 on, coordinates are of pixels' centres.
    half = np.float32(0.5 if node.version > 1 else 0)
    rows, columns = np.mgrid[:height, :width].astype(np.float32) + half
    pixels = np.stack([columns, rows], axis=-1).reshape(-1, 2)
    coordinates = node.add(Sub, _transform(node, node.constant(pixels), node[1]), half)
    last = np.array([size_of(image, 2) - 1, size_of(image, 1) - 1], np.float32)
    inside = node.add(
        And,
        node.add(GreaterEqual, coordinates, np.float32(0)),
        node.add(LessEqual, coordinates, last),
    )
    inside = node.add(Reshape, inside, (1, 1, height, width, 2))
    columns_inside, rows_inside = (node.add(Gather, inside, np.array(index), 4) for index in (0, 1))
    grid = node.add(Sub, node.add(Mul, coordinates, 2 / np.maximum(last, 1)), np.float32(1))
    sampled = node.add(
        GridSample,
        node.channels_first(image),
        node.add(Reshape, grid, (1, height, width, 2)),
        align_corners=True,
        pad_mode=PadMode.EDGE,
    )
    visible = node.add(And, columns_inside, rows_inside)
    return node.channels_last(node.add(Where, visible, sampled, np.float32(0)))
