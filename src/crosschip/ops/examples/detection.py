"""Examples of object detectors."""

from __future__ import annotations

import numpy as np

from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.standard.detection import DetectionPostProcess, PriorBox, YoloBox

examples(
    PriorBox,
    example(input=random(1, 2, 3, 4), image=random(1, 3, 30, 50), min_sizes=(8.0,)),
    example(
        input=random(1, 2, 3, 2),
        image=random(1, 3, 30, 40),
        min_sizes=(8.0, 12.0),
        max_sizes=(15.0, 20.0),
        aspect_ratios=(1.0, 2.0, 0.5),
        flip=True,
        clip=True,
    ),
    example(
        input=random(1, 2, 2, 3),
        image=random(1, 3, 30, 40),
        min_sizes=(8.0,),
        max_sizes=(15.0,),
        aspect_ratios=(2.0, 3.0),
        variances=(0.1, 0.2, 0.3, 0.4),
        step_w=12.0,
        step_h=16.0,
        offset=0.25,
        min_max_aspect_ratios_order=True,
    ),
)

examples(
    YoloBox,
    example(
        input=random(2, 14, 3, 4),
        imgsize=model_input(np.array([[40, 60], [33, 47]], np.int32)),
        anchors=(10, 13, 16, 30),
        class_num=2,
        conf_thresh=0.4,
        downsample_ratio=16,
    ),
    example(
        input=random(1, 16, 3, 4),
        imgsize=model_input(np.array([[40, 60]], np.int32)),
        anchors=(10, 13, 16, 30),
        class_num=2,
        conf_thresh=0.5,
        downsample_ratio=8,
        clip_bbox=False,
        scale_x_y=1.2,
        iou_aware=True,
        iou_aware_factor=0.4,
    ),
)

_generator = np.random.default_rng(8)

examples(
    DetectionPostProcess,
    *(
        example(
            bbox=model_input(_generator.normal(size=(1, 9, 4)).astype(np.float32)),
            scores=model_input(_generator.uniform(0, 1, (1, 9, 4)).astype(np.float32)),
            anchors=model_input(_generator.uniform(0.2, 0.6, (9, 4)).astype(np.float32)),
            nms_score_threshold=0.4,
            nms_iou_threshold=0.4,
            max_detections=5,
            num_classes=3,
            **settings,
        )
        for settings in (
            {},
            {"max_classes_per_detection": 2},
            {"use_regular_nms": True, "detections_per_class": 2},
        )
    ),
)
