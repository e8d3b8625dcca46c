"""Uses of the operators that find things in images."""

import numpy as np

from uses import Array, Attributes, fixed, integers, normal, positive, saved, use

FEATURES = normal(2, 4, 8, 10)


def boxes(count: int, size: float, seed: int = 0) -> Array:
    """Boxes of left, top, right and bottom, inside a square."""
    random = np.random.RandomState(seed)
    corner = random.uniform(0, 0.6 * size, (count, 2))
    extent = random.uniform(0.1 * size, 0.4 * size, (count, 2))
    return np.concatenate([corner, corner + extent], 1).astype(np.float32)


ROIS = {"X": FEATURES, "ROIs": boxes(5, 16), "RoisNum": fixed(integers(2, 3))}
POOLED: Attributes = {"pooled_height": 3, "pooled_width": 2}
use("roi_align", "default", ROIS, **POOLED)
use("roi_align", "aligned", ROIS, **POOLED, aligned=True, spatial_scale=0.5)
use("roi_align", "2 samples", ROIS, **POOLED, sampling_ratio=2, spatial_scale=0.5)
use("roi_align", "saved counts", ROIS | {"RoisNum": saved(integers(4, 1))}, **POOLED)
use("roi_align", "none of the first", ROIS | {"RoisNum": fixed(integers(0, 5))}, **POOLED)

PRIORS = {"Input": normal(1, 4, 3, 5), "Image": normal(1, 3, 30, 40)}
VARIANCES: Attributes = {"variances": [0.1, 0.1, 0.2, 0.2]}
MADE = "Boxes Variances"
use("prior_box", "one size", PRIORS, outputs=MADE, min_sizes=[8.0], **VARIANCES)
use(
    "prior_box",
    "fixed sizes",
    {slot: fixed(array) for slot, array in PRIORS.items()},
    outputs=MADE,
    min_sizes=[8.0],
    max_sizes=[14.0],
    aspect_ratios=[2.0],
    **VARIANCES,
)
use(
    "prior_box",
    "ratios",
    PRIORS,
    outputs=MADE,
    min_sizes=[8.0, 12.0],
    max_sizes=[14.0, 20.0],
    aspect_ratios=[1.0, 2.0, 3.0],
    flip=True,
    **VARIANCES,
)
use(
    "prior_box",
    "ratios, clipped",
    PRIORS,
    outputs=MADE,
    min_sizes=[8.0],
    aspect_ratios=[0.5, 2.0],
    clip=True,
    flip=False,
    variances=[0.1, 0.2, 0.3, 0.4],
)
use(
    "prior_box",
    "steps",
    PRIORS,
    outputs=MADE,
    min_sizes=[8.0],
    max_sizes=[14.0],
    aspect_ratios=[2.0],
    step_w=7.0,
    step_h=9.0,
    offset=0.25,
    **VARIANCES,
)
use(
    "prior_box",
    "ordered",
    PRIORS,
    outputs=MADE,
    min_sizes=[8.0, 12.0],
    max_sizes=[14.0, 20.0],
    aspect_ratios=[2.0],
    flip=True,
    min_max_aspect_ratios_order=True,
    **VARIANCES,
)

YOLO = {"X": normal(2, 14, 3, 4), "ImgSize": integers(96, 128, 100, 90).reshape(2, 2)}
YOLO_SETTING: Attributes = {
    "anchors": [10, 13, 16, 30],
    "class_num": 2,
    "downsample_ratio": 32,
    "conf_thresh": 0.3,
}
YOLO_CHANGES: dict[str, Attributes] = {
    "default": {},
    "unclipped": {"clip_bbox": False},
    "scaled": {"scale_x_y": 1.2},
    "low threshold": {"conf_thresh": 0.01},
}
for setting, changed in YOLO_CHANGES.items():
    use("yolo_box", setting, YOLO, outputs="Boxes Scores", **YOLO_SETTING | changed)
use(
    "yolo_box",
    "iou aware",
    YOLO | {"X": normal(2, 16, 3, 4)},
    outputs="Boxes Scores",
    iou_aware=True,
    iou_aware_factor=0.4,
    **YOLO_SETTING,
)

SCORES = np.random.RandomState(2).dirichlet(np.ones(3), (2, 12)).transpose(0, 2, 1)
FOUND = {
    "BBoxes": np.stack([boxes(12, 10, 1), boxes(12, 10, 2)]),
    "Scores": SCORES.astype(np.float32),
}
NMS: Attributes = {
    "background_label": 0,
    "score_threshold": 0.2,
    "nms_top_k": 10,
    "keep_top_k": 8,
    "nms_threshold": 0.3,
    "normalized": True,
    "nms_eta": 1.0,
}
KEPT = "Out Index NmsRoisNum"
NMS_CHANGES: dict[str, Attributes] = {
    "default": {},
    "no background": {"background_label": -1},
    "in pixels": {"normalized": False},
    "everything kept": {"keep_top_k": -1, "nms_top_k": -1, "background_label": -1},
    "few kept": {"keep_top_k": 3},
    "adaptive": {"nms_eta": 0.8, "nms_threshold": 0.7, "background_label": -1},
    "nothing kept": {"score_threshold": 0.99},
}
for setting, changed in NMS_CHANGES.items():
    use("multiclass_nms3", setting, FOUND, outputs=KEPT, **NMS | changed)
use(
    "multiclass_nms3",
    "by RoisNum",
    {
        "BBoxes": np.stack([boxes(9, 10, seed) for seed in (3, 4)], 1),
        "Scores": positive(9, 2),
        "RoisNum": fixed(integers(5, 4)),
    },
    outputs=KEPT,
    **(NMS | {"background_label": -1}),
)

CORNERS = np.sort(positive(5, 2, 2, seed=4), axis=1).reshape(5, 4)
OTHERS = np.sort(positive(3, 2, 2, seed=5), axis=1).reshape(3, 4)
BOXES = {"PriorBox": fixed(CORNERS), "TargetBox": fixed(OTHERS)}
SPREAD = fixed(positive(5, 4, seed=6))
CODES = {"PriorBox": fixed(CORNERS), "TargetBox": fixed(normal(3, 5, 4, seed=7))}
DECODED: Attributes = {"code_type": "decode_center_size", "outputs": "OutputBox"}
use("box_coder", "encoded", BOXES, outputs="OutputBox", variance=[0.1, 0.1, 0.2, 0.2])
use("box_coder", "encoded pixels", BOXES, outputs="OutputBox", box_normalized=False)
use("box_coder", "encoded, variances", {**BOXES, "PriorBoxVar": SPREAD}, outputs="OutputBox")
use("box_coder", "decoded", CODES, **DECODED)
use("box_coder", "decoded, variances", {**CODES, "PriorBoxVar": SPREAD}, **DECODED)
use(
    "box_coder",
    "decoded pixels, other axis",
    {"PriorBox": fixed(OTHERS), "TargetBox": fixed(normal(3, 5, 4, seed=7))},
    **DECODED,
    axis=1,
    box_normalized=False,
    variance=[0.1, 0.1, 0.2, 0.2],
)
