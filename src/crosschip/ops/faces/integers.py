"""Names of products of bytes in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import faces
from crosschip.ops.standard.integers import Conv2DInteger, MatMulInteger

faces(
    Conv2DInteger,
    onnx=("ConvInteger",),
)

faces(
    MatMulInteger,
    onnx=("MatMulInteger",),
)
