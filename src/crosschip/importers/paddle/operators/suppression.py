"""Selection of boxes."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import UnsupportedError
from crosschip.ops.standard.suppression import NonMaxSuppression


@imports("multiclass_nms3")
def multiclass_nms3(op: Context) -> None:
    boxes = op.input("BBoxes")
    numbers = (boxes.type.shape or (None,))[-1]
    if numbers in (8, 16, 24, 32):
        raise UnsupportedError(f"BBoxes: {boxes.type} are polygons; only rectangles are expressed")
    op.make_each(
        NonMaxSuppression,
        boxes,
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
