"""Names and codes of deformable convolutions in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import NNAdapter, map_operator
from crosschip.ops.standard.deformable import DeformableConv2D

map_operator(DeformableConv2D, nnadapter=NNAdapter(18), onnx=("DeformConv",))
