"""The objects that a detector's output stands for, in one step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, ElementType, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.examples import example, given
from crosschip.ops.faces import NNRt
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.overlap import overlaps, random_scores, ranked, suppressed
from crosschip.ops.shapes import of_rank, same
from crosschip.ops.slots import flag, integer, real, reals, tensor

_generator = np.random.default_rng(8)


@operator(
    "DETECTION_POST_PROCESS",
    nnrt=(
        NNRt(
            92,
            "DETECTION_POST_PROCESS",
            inputs=("bbox", "scores", "anchors"),
            parameters={
                "INPUT_SIZE": "input_size",
                "SCALE": "scale",
                "NMS_IOU_THRESHOLD": "nms_iou_threshold",
                "NMS_SCORE_THRESHOLD": "nms_score_threshold",
                "MAX_DETECTIONS": "max_detections",
                "DETECTIONS_PER_CLASS": "detections_per_class",
                "MAX_CLASSES_PER_DETECTION": "max_classes_per_detection",
                "NUM_CLASSES": "num_classes",
                "USE_REGULAR_NMS": "use_regular_nms",
                "OUT_QUANTIZED": "out_quantized",
            },
        ),
    ),
    core=True,
)
class DetectionPostProcess(Operator):
    """The objects that an SSD detector's output stands for.

    For one image and M candidates: `bbox` [1, M, 4] (y, x, h, w, encoded), `scores` [1, M,
    num_classes], or [1, M, num_classes + 1] with a background class in front that is left out, and
    `anchors` [M, 4] (y, x, h, w of the centre and the sides). With `scale` = (s_y, s_x, s_h, s_w),
    a candidate's centre is `y / s_y * anchor_h + anchor_y`, likewise x, its height `exp(h / s_h) *
    anchor_h`, likewise the width.

    Without `use_regular_nms`, candidates are taken by falling score of their best class, if that is
    at least `nms_score_threshold`, until there are `max_detections`, and kept unless their overlap
    with one that has been kept is greater than `nms_iou_threshold`; each gives its
    `max_classes_per_detection` best classes (or as many as there are). With it, that is done for
    each class by itself, until there are `detections_per_class`, and the best `max_detections` of
    all classes stay. Equal scores are in the order of the candidates (and of the classes). An
    overlap is common area over the area of either, 0 if an area is not positive.

    Outputs, with `D = max_detections * max_classes_per_detection` places (`max_detections` of which
    `use_regular_nms` fills), all float32: boxes [1, D, 4] as y_min, x_min, y_max, x_max; classes
    [1, D], counted from 0 without the background; scores [1, D]; and [1] the number of objects.
    Places without an object are 0. `input_size` and `out_quantized` change nothing: boxes are in
    the unit of the anchors, and outputs are quantized if they declare a quantization.

    Sources: NNRt's DETECTION_POST_PROCESS, which is TensorFlow Lite's TFLite_Detection_PostProcess.
    """

    __slots__ = ()
    bbox = tensor(FLOATS)
    scores = tensor(FLOATS)
    anchors = tensor(FLOATS)
    input_size = integer(0)
    scale = reals((10.0, 10.0, 5.0, 5.0))
    nms_iou_threshold = real(0.5)
    nms_score_threshold = real(0.0)
    max_detections = integer(10)
    detections_per_class = integer(100)
    max_classes_per_detection = integer(1)
    num_classes = integer()
    use_regular_nms = flag(False)
    out_quantized = flag(False)

    examples = tuple(
        example(
            bbox=given(_generator.normal(size=(1, 9, 4)).astype(np.float32)),
            scores=random_scores(1, 9, 4),
            anchors=given(_generator.uniform(0.2, 0.6, (9, 4)).astype(np.float32)),
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
    )

    def output_count(self) -> int:
        return 4

    def infer_element_type(self) -> ElementType:
        return ElementType.FLOAT32

    def infer_shape(self) -> Sequence[Shape]:
        boxes = of_rank(shape_of(self.bbox), 3, "bbox")
        scores = of_rank(shape_of(self.scores), 3, "scores")
        anchors = of_rank(shape_of(self.anchors), 2, "anchors")
        for slot, shape in (("bbox", boxes), ("scores", scores)):
            same(shape[0], 1, f"{slot}: its first size, and the one image that there can be")
            same(shape[1], anchors[0], f"{slot}: its second size, and the number of anchors")
        for slot, shape in (("bbox", boxes), ("anchors", anchors)):
            same(shape[-1], 4, f"{slot}: the size of its last axis, and the numbers of a box")
        if isinstance(scores[2], int) and scores[2] - self.num_classes not in (0, 1):
            raise ValueError(f"scores: has {scores[2]} classes, but num_classes {self.num_classes}")
        if len(self.scale) != 4:
            raise ValueError(f"scale: has {len(self.scale)} numbers, but must have 4")
        for slot, least in (("max_detections", 0), ("max_classes_per_detection", 1)):
            if getattr(self, slot) < least:
                raise ValueError(f"{slot}: {getattr(self, slot)} must not be less than {least}")
        places = self.max_detections * self.max_classes_per_detection
        return [(1, places, 4), (1, places), (1, places), (1,)]

    def reference(
        self,
        bbox: Array,
        scores: Array,
        anchors: Array,
        input_size: int,
        scale: Sequence[float],
        nms_iou_threshold: float,
        nms_score_threshold: float,
        max_detections: int,
        detections_per_class: int,
        max_classes_per_detection: int,
        num_classes: int,
        use_regular_nms: bool,
        out_quantized: bool,
    ) -> Sequence[Array]:
        encoded = bbox[0] / np.array(scale, bbox.dtype)
        centre = encoded[:, :2] * anchors[:, 2:] + anchors[:, :2]
        half = np.exp(encoded[:, 2:]) * anchors[:, 2:] / 2
        boxes = np.concatenate([centre - half, centre + half], axis=1)
        marks = scores[0][:, scores.shape[2] - num_classes :]
        overlap = overlaps(boxes, 0.0)

        def picked(ranking: Array, most: int) -> list[int]:
            order = ranked(ranking, nms_score_threshold, np.greater_equal)
            return suppressed(order, overlap, nms_iou_threshold, 1.0, most)

        places = max_detections * max_classes_per_detection
        found: list[tuple[int, int]] = []
        if use_regular_nms:
            most = min(detections_per_class, max_detections)
            for label in range(num_classes):
                found += [(box, label) for box in picked(marks[:, label], most)]
            found = sorted(found, key=lambda entry: -marks[entry])[:max_detections]
            filled, objects = list(range(len(found))), len(found)
        else:
            kept = picked(marks.max(axis=1), max_detections) if num_classes else []
            ranks = np.argsort(-marks, axis=1, kind="stable")[:, :max_classes_per_detection]
            found = [(box, int(label)) for box in kept for label in ranks[box]]
            filled = [
                place * max_classes_per_detection + rank
                for place in range(len(kept))
                for rank in range(ranks.shape[1])
            ]
            objects = len(kept)
        outputs = [np.zeros((1, places, 4)), np.zeros((1, places)), np.zeros((1, places))]
        for place, (box, label) in zip(filled, found, strict=True):
            for output, value in zip(outputs, (boxes[box], label, marks[box, label]), strict=True):
                output[0, place] = value
        return [*outputs, np.array([objects], np.float32)]
