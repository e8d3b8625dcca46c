"""Generation, encoding and decoding of boxes."""

from __future__ import annotations

import math

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.detection import PriorBox, YoloBox
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Abs, Exp, Floor, Log

_CODES = {"encode_center_size": True, "decode_center_size": False}


@imports("prior_box")
def prior_box(op: Context) -> None:
    op.make_each(
        PriorBox,
        op.input("Input"),
        op.input("Image"),
        min_sizes=op.reals("min_sizes"),
        max_sizes=op.reals("max_sizes", ()),
        aspect_ratios=op.reals("aspect_ratios", ()),
        variances=op.reals("variances", (0.1, 0.1, 0.2, 0.2)),
        flip=op.flag("flip", False),
        clip=op.flag("clip", False),
        step_w=op.real("step_w", 0.0),
        step_h=op.real("step_h", 0.0),
        offset=op.real("offset", 0.5),
        min_max_aspect_ratios_order=op.flag("min_max_aspect_ratios_order", False),
        outputs=("Boxes", "Variances"),
    )


@imports("yolo_box")
def yolo_box(op: Context) -> None:
    op.make_each(
        YoloBox,
        op.input("X"),
        op.input("ImgSize"),
        anchors=op.integers("anchors"),
        class_num=op.integer("class_num"),
        conf_thresh=op.real("conf_thresh"),
        downsample_ratio=op.integer("downsample_ratio"),
        clip_bbox=op.flag("clip_bbox", True),
        scale_x_y=op.real("scale_x_y", 1.0),
        iou_aware=op.flag("iou_aware", False),
        iou_aware_factor=op.real("iou_aware_factor", 0.5),
        outputs=("Boxes", "Scores"),
    )


@imports("box_coder")
def box_coder(op: Context) -> None:
    """Encode boxes (x_min, y_min, x_max, y_max) relative to prior boxes, or decode them.

    A code is the centre's offset, in units of the prior's size, and the logarithm of the ratio of
    the sizes. Boxes that are not normalized include their last pixel.
    """
    prior, target = op.input("PriorBox"), op.input("TargetBox")
    is_encoding = op.option("code_type", _CODES, "encode_center_size")
    extra = 0.0 if op.flag("box_normalized", True) else 1.0
    axis = op.integer("axis", 0)
    if axis not in (0, 1):
        raise ModelError(f"axis: {axis} is not 0 or 1")
    along = 0 if is_encoding else axis
    first, last = _halves(op, prior, along)
    size = op.add(Add, op.add(Sub, last, first), extra)
    centre = op.add(Add, first, op.add(Mul, size, 0.5))
    variances = _variances(op, along)
    if is_encoding:
        first, last = _halves(op, target, 1)
        target_mid = op.add(Mul, op.add(Add, first, last), 0.5)
        ratio = op.add(Div, op.add(Add, op.add(Sub, last, first), extra), size)
        offset = op.add(Div, op.add(Sub, target_mid, centre), size)
        parts = [offset, op.add(Log, op.add(Abs, ratio))]
        codes = [op.add(Div, *pair) for pair in zip(parts, variances, strict=True)]
        op.make(Concat, parts=codes, axis=-1, output="OutputBox")
        return
    offset, ratio = (
        op.add(Mul, *pair) for pair in zip(_halves(op, target), variances, strict=True)
    )
    target_mid = op.add(Add, op.add(Mul, offset, size), centre)
    half = op.add(Mul, op.add(Mul, op.add(Exp, ratio), size), 0.5)
    corners = [op.add(Sub, target_mid, half), op.add(Sub, op.add(Add, target_mid, half), extra)]
    op.make(Concat, parts=corners, axis=-1, output="OutputBox")


def _halves(op: Context, boxes: Operand, axis: int | None = None) -> tuple[Operand, Operand]:
    """Split boxes into minimum and maximum corners; optionally insert an axis of size 1."""
    halves = (op.add(Slice, boxes, (-1,), (start,), (start + 2,)) for start in (0, 2))
    first, last = halves if axis is None else (op.add(Unsqueeze, half, (axis,)) for half in halves)
    return first, last


def _variances(op: Context, axis: int) -> tuple[Operand, Operand]:
    """Return the variances of offsets and ratios, for each prior or for all."""
    by_prior = op.optional_input("PriorBoxVar")
    if by_prior is not None:
        return _halves(op, by_prior, axis)
    shared = op.reals("variance", ()) or (1.0,) * 4
    if len(shared) != 4:
        raise ModelError(f"variance: must be 4 numbers, not {len(shared)}")
    return _halves(op, op.constant(np.array(shared, np.float32), "variance"))


@imports("anchor_generator")
def anchor_generator(op: Context) -> None:
    """Generate boxes, in pixels, of all sizes and ratios around the centre of each grid cell."""
    stride = op.reals("stride")
    if len(stride) != 2 or min(stride) <= 0:
        raise ModelError(f"stride: {list(stride)} are not two positive numbers")
    corners = []
    for ratio in op.reals("aspect_ratios"):
        for size in op.reals("anchor_sizes"):
            width = _round_half_up(math.sqrt(stride[0] * stride[1] / ratio))
            height = _round_half_up(width * ratio)
            half = np.array([width * size / stride[0] - 1, height * size / stride[1] - 1]) / 2
            corners.append([*-half, *half])
    offset = op.real("offset", 0.5)
    centres = [
        op.add(Add, op.add(Mul, _cell_indices(op, axis), step), offset * (step - 1))
        for axis, step in ((3, stride[0]), (2, stride[1]))
    ]
    boxes = op.add(Add, _grid_centres(op, *centres), np.array(corners, np.float32))
    op.define(boxes, "Anchors")
    _make_variances(op, boxes)


@imports("density_prior_box")
def density_prior_box(op: Context) -> None:
    """Generate boxes of fixed sizes and ratios at `density * density` points in each cell."""
    sizes, densities = op.reals("fixed_sizes", ()), op.integers("densities", ())
    if len(sizes) != len(densities) or min(densities, default=1) < 1:
        raise ModelError(
            f"densities {list(densities)}: must be positive, one for each of the sizes"
        )
    steps = _steps(op)
    average = int(np.float32(steps[0] + steps[1]) * np.float32(0.5))
    corners = []
    for size, density in zip(sizes, densities, strict=True):
        shift = average // density
        offsets = -average / 2 + shift / 2 + shift * np.arange(density)
        for ratio in op.reals("fixed_ratios", ()):
            half = size * np.array([math.sqrt(ratio), 1 / math.sqrt(ratio)]) / 2
            for y in offsets:
                corners += [[x - half[0], y - half[1], x + half[0], y + half[1]] for x in offsets]
    offset = op.real("offset", 0.5)
    centres = [
        op.add(Mul, op.add(Add, _cell_indices(op, axis), offset), step)
        for axis, step in zip((3, 2), steps, strict=True)
    ]
    boxes = op.add(Add, _grid_centres(op, *centres), np.array(corners, np.float32))
    image_size = [
        _real(op, op.add(Unsqueeze, ragged.size(op, op.input("Image"), axis), (0,)))
        for axis in (3, 2)
    ]
    boxes = op.add(Div, boxes, op.add(Concat, parts=image_size * 2, axis=0))
    lower, upper = np.array([0, 0, -np.inf, -np.inf]), np.array([np.inf, np.inf, 1, 1])
    boxes = op.add(Max, boxes, lower.astype(np.float32))
    boxes = op.add(Min, boxes, upper.astype(np.float32))
    if op.flag("clip", False):
        boxes = op.add(Clip, boxes, 0.0, 1.0)
    if op.flag("flatten_to_2d", False):
        boxes = op.add(Reshape, boxes, (-1, 4))
    op.define(boxes, "Boxes")
    _make_variances(op, boxes)


def _round_half_up(number: float) -> float:
    """Round to nearest, halves up."""
    return math.floor(number + 0.5)


def _real(op: Context, operand: Operand) -> Operand:
    return op.as_type(operand, ElementType.FLOAT32)


def _cell_indices(op: Context, axis: int) -> Operand:
    """Return the float indices of the cells along an axis of the features."""
    return _real(op, ragged.arange(op, ragged.size(op, op.input("Input"), axis)))


def _grid_centres(op: Context, x: Operand, y: Operand) -> Operand:
    """Return the coordinates (x, y, x, y) of all grid cells, [H, W, 1, 4]."""
    rows, columns = op.add_all(Meshgrid, [y, x])
    return op.add(Unsqueeze, op.add(Stack, [columns, rows] * 2, 2), (2,))


def _make_variances(op: Context, boxes: Operand) -> None:
    """Set the output `Variances`, which are equal for all boxes."""
    variances = np.array(op.reals("variances", (0.1, 0.1, 0.2, 0.2)), np.float32)
    op.make(Expand, variances, op.shape(boxes), output="Variances")


def _steps(op: Context) -> tuple[float, float]:
    """Return the size of grid cells in pixels, from the attributes or else from the shapes."""
    steps = op.real("step_w", 0.0), op.real("step_h", 0.0)
    if all(steps):
        return steps
    sizes = [(op.input(slot).type.shape or ())[2:] for slot in ("Image", "Input")]
    static_sizes = [
        size for pair in zip(*sizes, strict=False) for size in pair if isinstance(size, int)
    ]
    if len(static_sizes) != 4 or not all(static_sizes):
        raise UnsupportedError("step_w and step_h: must be above 0 where sizes are not known")
    height, rows, width, columns = static_sizes
    return width / columns, height / rows


@imports("box_clip")
def box_clip(op: Context) -> None:
    """Import `box_clip`: boxes clipped to their images, whose sizes are divided by a scale."""
    boxes, offsets = op.input("Input"), op.levels("Input")[-1]
    image = ragged.row_sequences(op, offsets, ragged.arange(op, ragged.size(op, boxes)))
    information = op.add(Gather, op.input("ImInfo"), image, 0)
    height, width, scale = op.add_all(Split, information, 1, (1, 1, 1))
    last = [
        op.add(Sub, op.add(Floor, op.add(Add, op.add(Div, size, scale), 0.5)), 1.0)
        for size in (width, height)
    ]
    upper = op.add(Concat, parts=last * 2, axis=1)
    if (inner_axes := op.rank(boxes) - 2) > 0:
        upper = op.add(Unsqueeze, upper, tuple(range(1, 1 + inner_axes)))
    op.make(Max, op.add(Min, boxes, upper), 0.0, output="Output")


@imports("polygon_box_transform")
def polygon_box_transform(op: Context) -> None:
    """Corners from distances to pixels in steps of 4: x in even channels, y in odd channels."""
    x = op.input("Input")
    rows, columns = (
        op.add(Mul, _real(op, ragged.arange(op, ragged.size(op, x, axis))), 4.0) for axis in (2, 3)
    )
    channels = (x.type.shape or ())[1:2]
    if len(channels) != 1 or not isinstance(channels[0], int):
        raise UnsupportedError(f"Input: {x.type} must have a known number of channels")
    is_row = (np.arange(channels[0]) % 2 == 1)[:, None, None]
    coordinate = op.add(Where, is_row, op.add(Unsqueeze, rows, (1,)), columns)
    op.make(Sub, coordinate, x, output="Output")
