"""Names and codes of object detection operators in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import NNAdapter, NNRt, map_operator
from crosschip.ops.standard.detection import DetectionPostProcess, PriorBox, YoloBox

map_operator(PriorBox, nnadapter=NNAdapter(58))
map_operator(YoloBox, nnadapter=NNAdapter(95))

map_operator(
    DetectionPostProcess,
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
            outputs=4,
        ),
    ),
)
