"""Names of integer convolution and matrix multiplication in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import map_operator
from crosschip.ops.standard.integers import Conv2DInteger, MatMulInteger

map_operator(Conv2DInteger, onnx=("ConvInteger",))
map_operator(MatMulInteger, onnx=("MatMulInteger",))
