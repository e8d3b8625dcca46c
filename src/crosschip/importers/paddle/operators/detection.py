"""Boxes proposed, decoded and selected."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ops.standard.detection import PriorBox, YoloBox
from crosschip.ops.standard.suppression import NonMaxSuppression


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


@imports("multiclass_nms3")
def multiclass_nms3(op: Context) -> None:
    op.make_each(
        NonMaxSuppression,
        op.input("BBoxes"),
        op.input("Scores"),
        op.optional_input("RoisNum"),
        background_label=op.integer("background_label", 0),
        score_threshold=op.real("score_threshold"),
        nms_top_k=op.integer("nms_top_k"),
        keep_top_k=op.integer("keep_top_k"),
        nms_threshold=op.real("nms_threshold", 0.3),
        normalized=op.flag("normalized", True),
        nms_eta=op.real("nms_eta", 1.0),
        return_index=True,
        outputs=("Out", "NmsRoisNum", "Index"),
    )
