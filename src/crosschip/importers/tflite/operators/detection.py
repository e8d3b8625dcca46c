"""Post-processing of object detectors."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.importers.tflite.custom_options import CustomOptions
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.standard.detection import DetectionPostProcess


@imports("custom.TFLite_Detection_PostProcess")
def detection_post_process(node: Node) -> Sequence[Operand]:
    options = CustomOptions(node.custom_options)
    return node.add_all(
        DetectionPostProcess,
        node.dequantized(node[0]),
        node.dequantized(node[1]),
        node.dequantized(node[2]),
        scale=tuple(options.real(f"{name}_scale") for name in "yxhw"),
        nms_iou_threshold=options.real("nms_iou_threshold"),
        nms_score_threshold=options.real("nms_score_threshold"),
        max_detections=options.integer("max_detections"),
        detections_per_class=options.integer("detections_per_class", 100),
        max_classes_per_detection=options.integer("max_classes_per_detection"),
        num_classes=options.integer("num_classes"),
        use_regular_nms=options.flag("use_regular_nms", False),
    )
