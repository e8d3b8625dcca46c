"""Names of integer convolution and matrix multiplication in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import map_operator
from crosschip.ops.standard.integers import (
    Conv1DInteger,
    Conv2DInteger,
    Conv3DInteger,
    MatMulInteger,
)

for _operator in (Conv1DInteger, Conv2DInteger, Conv3DInteger):
    map_operator(_operator, onnx=("ConvInteger",))
map_operator(MatMulInteger, onnx=("MatMulInteger",))
