"""Uses of the operators that propose regions, place anchors, and choose among boxes."""

import numpy as np

from uses import Attributes, fixed, integers, normal, positive, ragged, use
from uses.detection import boxes

ANCHORS = {"Input": normal(1, 4, 3, 5)}
PLACED = "Anchors Variances"
SETTING: Attributes = {"variances": [0.1, 0.1, 0.2, 0.2], "stride": [16.0, 8.0]}
use(
    "anchor_generator",
    "sizes and ratios",
    ANCHORS,
    outputs=PLACED,
    **SETTING,
    anchor_sizes=[32.0, 64.0],
    aspect_ratios=[0.5, 1.0, 2.0],
)
use(
    "anchor_generator",
    "one, offset",
    ANCHORS,
    outputs=PLACED,
    **SETTING,
    anchor_sizes=[24.0],
    aspect_ratios=[1.0],
    offset=0.25,
)
PRIORS = {"Input": fixed(normal(1, 4, 3, 5)), "Image": fixed(normal(1, 3, 30, 40))}
DENSE: Attributes = {
    "fixed_sizes": [12.0, 20.0],
    "fixed_ratios": [1.0, 2.0],
    "densities": [2, 1],
    "variances": [0.1, 0.1, 0.2, 0.2],
}
use("density_prior_box", "sizes", PRIORS, outputs="Boxes Variances", **DENSE)
use(
    "density_prior_box",
    "clipped, flat",
    PRIORS,
    outputs="Boxes Variances",
    **DENSE,
    clip=True,
    flatten_to_2d=True,
    step_w=9.0,
    step_h=7.0,
    offset=0.25,
)

COUNT = 3 * 4 * 5
PROPOSED: dict[str, object] = {
    "Scores": fixed(normal(2, 3, 4, 5)),
    "BboxDeltas": fixed(0.3 * normal(2, 12, 4, 5, seed=1)),
    "Anchors": fixed(boxes(COUNT, 60, 2).reshape(4, 5, 3, 4)),
    "Variances": fixed(positive(4, 5, 3, 4, seed=3)),
}
RPN: Attributes = {"pre_nms_topN": 40, "post_nms_topN": 10, "nms_thresh": 0.5, "min_size": 3.0}
MADE = "RpnRois RpnRoiProbs RpnRoisNum"
INFORMATION = fixed(np.array([[50, 60, 1.5], [64, 40, 1]], np.float32))
use(
    "generate_proposals",
    "default",
    PROPOSED | {"ImInfo": INFORMATION},
    outputs=MADE,
    **RPN,
    eta=1.0,
)
SHAPES = fixed(np.array([[50, 60], [64, 40]], np.float32))
for setting, changed in (
    ("pixels", {"pixel_offset": True}),
    ("adaptive", {"pixel_offset": False, "eta": 0.8, "nms_thresh": 0.7}),
    ("everything", {"pixel_offset": False, "pre_nms_topN": 0, "post_nms_topN": 0}),
    ("nothing large enough", {"pixel_offset": False, "min_size": 200.0}),
):
    settings: Attributes = {**RPN, "eta": 1.0, **changed}
    shapes = PROPOSED | {"ImShape": SHAPES}
    use("generate_proposals_v2", setting, shapes, outputs=MADE, **settings)

REGIONS = 8 * boxes(9, 60, 4)
LEVELS: Attributes = {"min_level": 2, "max_level": 4, "refer_level": 3, "refer_scale": 100}
DIVIDED = "MultiFpnRois*3 RestoreIndex MultiLevelRoIsNum*3"
use(
    "distribute_fpn_proposals",
    "counts",
    {"FpnRois": REGIONS, "RoisNum": fixed(integers(4, 5))},
    outputs=DIVIDED,
    **LEVELS,
    pixel_offset=False,
)
use(
    "distribute_fpn_proposals",
    "sequences",
    {"FpnRois": ragged(REGIONS, (0, 4, 9))},
    outputs=DIVIDED,
    **LEVELS,
)
use(
    "collect_fpn_proposals",
    "counts",
    {
        "MultiLevelRois": [boxes(4, 60, 1), boxes(5, 60, 2)],
        "MultiLevelScores": [positive(4, 1), positive(5, 1, seed=1)],
        "MultiLevelRoIsNum": [fixed(integers(1, 3)), fixed(integers(3, 2))],
    },
    outputs="FpnRois RoisNum",
    post_nms_topN=6,
)
use("polygon_box_transform", "corners", {"Input": normal(2, 8, 3, 4)})

SCORES = np.random.RandomState(2).dirichlet(np.ones(3), (2, 12)).transpose(0, 2, 1)
FOUND = {
    "BBoxes": np.stack([boxes(12, 10, 1), boxes(12, 10, 2)]),
    "Scores": SCORES.astype(np.float32),
}
MATRIX: Attributes = {
    "background_label": 0,
    "score_threshold": 0.1,
    "post_threshold": 0.05,
    "nms_top_k": 8,
    "keep_top_k": 10,
    "normalized": True,
    "use_gaussian": False,
    "gaussian_sigma": 2.0,
}
for setting, changed in (
    ("default", {}),
    ("gaussian, in pixels", {"use_gaussian": True, "normalized": False}),
    ("everything", {"nms_top_k": -1, "keep_top_k": -1, "background_label": -1}),
    ("nothing left", {"score_threshold": 0.99}),
):
    use("matrix_nms", setting, FOUND, outputs="Out Index RoisNum", **{**MATRIX, **changed})
NMS: Attributes = {
    "background_label": 0,
    "score_threshold": 0.2,
    "nms_top_k": 10,
    "keep_top_k": 8,
    "nms_threshold": 0.3,
    "normalized": False,
    "nms_eta": 1.0,
}
use("multiclass_nms", "default", FOUND, **NMS)
use("multiclass_nms", "nothing left", FOUND, **{**NMS, "score_threshold": 0.99})
use("multiclass_nms2", "default", FOUND, outputs="Out Index", **NMS)
use(
    "multiclass_nms2",
    "nothing left",
    FOUND,
    outputs="Out Index",
    **{**NMS, "score_threshold": 0.99},
)
INSIDE_OUT = FOUND | {
    "BBoxes": np.random.RandomState(3).uniform(0, 3, (2, 12, 4)).astype(np.float32)
}
use("multiclass_nms2", "turned inside out", INSIDE_OUT, outputs="Out Index", **NMS)

use("nms", "overlaps", {"Boxes": boxes(20, 30, 5)}, iou_threshold=0.3)
