"""Names and codes of non-maximum suppression in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, faces
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

faces(
    NonMaxSuppression,
    nnadapter=NNAdapter(94, translation="the indices are [K]; further outputs are not made"),
)

faces(
    NonMaxSuppressionIndices,
    onnx=("NonMaxSuppression",),
)
