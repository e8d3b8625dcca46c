"""Boxes proposed and decoded."""

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
    """Boxes as offsets from other boxes, the priors, or back; each is x_min, y_min, x_max, y_max.

    Offsets are those of the centre, in sizes of the prior, and the logarithms of the ratios of the
    sizes. Where boxes are not normalized, the last pixel belongs to them.
    """
    prior, target = op.input("PriorBox"), op.input("TargetBox")
    is_encoding = op.one_of("code_type", _CODES, "encode_center_size")
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
        other = op.add(Mul, op.add(Add, first, last), 0.5)
        ratio = op.add(Div, op.add(Add, op.add(Sub, last, first), extra), size)
        moved = op.add(Div, op.add(Sub, other, centre), size)
        parts = [moved, op.add(Log, op.add(Abs, ratio))]
        codes = [op.add(Div, *pair) for pair in zip(parts, variances, strict=True)]
        op.make(Concat, parts=codes, axis=-1, output="OutputBox")
        return
    moved, ratio = (op.add(Mul, *pair) for pair in zip(_halves(op, target), variances, strict=True))
    other = op.add(Add, op.add(Mul, moved, size), centre)
    half = op.add(Mul, op.add(Mul, op.add(Exp, ratio), size), 0.5)
    corners = [op.add(Sub, other, half), op.add(Sub, op.add(Add, other, half), extra)]
    op.make(Concat, parts=corners, axis=-1, output="OutputBox")


def _halves(op: Context, boxes: Operand, axis: int | None = None) -> tuple[Operand, Operand]:
    """The first and the last two numbers of each box; with an axis of size 1 inserted, if any."""
    halves = (op.add(Slice, boxes, (-1,), (place,), (place + 2,)) for place in (0, 2))
    first, last = halves if axis is None else (op.add(Unsqueeze, half, (axis,)) for half in halves)
    return first, last


def _variances(op: Context, axis: int) -> tuple[Operand, Operand]:
    """The factors of offsets and ratios, for each prior or for all."""
    of_each = op.optional_input("PriorBoxVar")
    if of_each is not None:
        return _halves(op, of_each, axis)
    of_all = op.reals("variance", ()) or (1.0,) * 4
    if len(of_all) != 4:
        raise ModelError(f"variance: must be 4 numbers, not {len(of_all)}")
    return _halves(op, op.constant(np.array(of_all, np.float32), "variance"))


@imports("anchor_generator")
def anchor_generator(op: Context) -> None:
    """Boxes of some sizes and ratios around the middle of each cell of a grid, in pixels."""
    stride = op.reals("stride")
    if len(stride) != 2 or min(stride) <= 0:
        raise ModelError(f"stride: {list(stride)} are not two positive numbers")
    corners = []
    for ratio in op.reals("aspect_ratios"):
        for size in op.reals("anchor_sizes"):
            width = _rounded(math.sqrt(stride[0] * stride[1] / ratio))
            height = _rounded(width * ratio)
            half = np.array([width * size / stride[0] - 1, height * size / stride[1] - 1]) / 2
            corners.append([*-half, *half])
    offset = op.real("offset", 0.5)
    centres = [
        op.add(Add, op.add(Mul, _cells(op, axis), step), offset * (step - 1))
        for axis, step in ((3, stride[0]), (2, stride[1]))
    ]
    boxes = op.add(Add, _on_grid(op, *centres), np.array(corners, np.float32))
    op.define(boxes, "Anchors")
    _make_variances(op, boxes)


@imports("density_prior_box")
def density_prior_box(op: Context) -> None:
    """Boxes of some sizes and ratios, the more the denser, in each cell of a grid."""
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
        places = -average / 2 + shift / 2 + shift * np.arange(density)
        for ratio in op.reals("fixed_ratios", ()):
            half = size * np.array([math.sqrt(ratio), 1 / math.sqrt(ratio)]) / 2
            for y in places:
                corners += [[x - half[0], y - half[1], x + half[0], y + half[1]] for x in places]
    offset = op.real("offset", 0.5)
    centres = [
        op.add(Mul, op.add(Add, _cells(op, axis), offset), step)
        for axis, step in zip((3, 2), steps, strict=True)
    ]
    boxes = op.add(Add, _on_grid(op, *centres), np.array(corners, np.float32))
    sides = [
        _real(op, op.add(Unsqueeze, ragged.size(op, op.input("Image"), axis), (0,)))
        for axis in (3, 2)
    ]
    boxes = op.add(Div, boxes, op.add(Concat, parts=sides * 2, axis=0))
    least, most = np.array([0, 0, -np.inf, -np.inf]), np.array([np.inf, np.inf, 1, 1])
    boxes = op.add(Max, boxes, least.astype(np.float32))
    boxes = op.add(Min, boxes, most.astype(np.float32))
    if op.flag("clip", False):
        boxes = op.add(Clip, boxes, 0.0, 1.0)
    if op.flag("flatten_to_2d", False):
        boxes = op.add(Reshape, boxes, (-1, 4))
    op.define(boxes, "Boxes")
    _make_variances(op, boxes)


def _rounded(number: float) -> float:
    """The nearest whole number; of two, the greater one."""
    return math.floor(number + 0.5)


def _real(op: Context, operand: Operand) -> Operand:
    return op.as_type(operand, ElementType.FLOAT32)


def _cells(op: Context, axis: int) -> Operand:
    """0, 1, 2, … for the cells along an axis of the features."""
    return _real(op, ragged.numbers_up_to(op, ragged.size(op, op.input("Input"), axis)))


def _on_grid(op: Context, x: Operand, y: Operand) -> Operand:
    """The places x, y, x, y of the cells of a grid [H, W, 1, 4]."""
    rows, columns = op.add_all(Meshgrid, [y, x])
    return op.add(Unsqueeze, op.add(Stack, [columns, rows] * 2, 2), (2,))


def _make_variances(op: Context, boxes: Operand) -> None:
    """Make the factors of each box, which are the same for all."""
    variances = np.array(op.reals("variances", (0.1, 0.1, 0.2, 0.2)), np.float32)
    op.make(Expand, variances, op.shape(boxes), output="Variances")


def _steps(op: Context) -> tuple[float, float]:
    """How far cells are from one another, in pixels: as written, or else by the sizes."""
    steps = op.real("step_w", 0.0), op.real("step_h", 0.0)
    if all(steps):
        return steps
    sizes = [(op.input(slot).type.shape or ())[2:] for slot in ("Image", "Input")]
    known_sizes = [
        size for pair in zip(*sizes, strict=False) for size in pair if isinstance(size, int)
    ]
    if len(known_sizes) != 4 or not all(known_sizes):
        raise UnsupportedError("step_w and step_h: must be above 0 where sizes are not known")
    height, rows, width, columns = known_sizes
    return width / columns, height / rows


@imports("box_clip")
def box_clip(op: Context) -> None:
    """Boxes cut at the borders of their images, whose sizes are divided by a scale."""
    boxes, offsets = op.input("Input"), op.levels("Input")[-1]
    owner = ragged.sequence_of_rows(op, offsets, ragged.numbers_up_to(op, ragged.size(op, boxes)))
    information = op.add(Gather, op.input("ImInfo"), owner, 0)
    height, width, scale = op.add_all(Split, information, 1, (1, 1, 1))
    last = [
        op.add(Sub, op.add(Floor, op.add(Add, op.add(Div, size, scale), 0.5)), 1.0)
        for size in (width, height)
    ]
    most = op.add(Concat, parts=last * 2, axis=1)
    if (more := op.rank(boxes) - 2) > 0:
        most = op.add(Unsqueeze, most, tuple(range(1, 1 + more)))
    op.make(Max, op.add(Min, boxes, most), 0.0, output="Output")


@imports("polygon_box_transform")
def polygon_box_transform(op: Context) -> None:
    """Places of corners from their distances to each fourth pixel: x in even channels, y in odd."""
    x = op.input("Input")
    rows, columns = (
        op.add(Mul, _real(op, ragged.numbers_up_to(op, ragged.size(op, x, axis))), 4.0)
        for axis in (2, 3)
    )
    channels = (x.type.shape or ())[1:2]
    if len(channels) != 1 or not isinstance(channels[0], int):
        raise UnsupportedError(f"Input: {x.type} must have a known number of channels")
    is_row = (np.arange(channels[0]) % 2 == 1)[:, None, None]
    place = op.add(Where, is_row, op.add(Unsqueeze, rows, (1,)), columns)
    op.make(Sub, place, x, output="Output")
