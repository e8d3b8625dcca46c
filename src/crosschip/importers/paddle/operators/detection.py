"""Boxes proposed and decoded."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import ModelError, Operand
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.detection import PriorBox, YoloBox
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Abs, Exp, Log

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
