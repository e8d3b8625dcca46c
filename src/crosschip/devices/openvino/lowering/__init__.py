"""The passes that adapt a model to OpenVINO, after which its converters map it one to one.

Each documents the version of OpenVINO and the symptom that it avoids.
"""

from __future__ import annotations

from crosschip.devices.openvino.lowering import chains, convolution, quantization, reduction
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.quantization import Quantize
from crosschip.ops.standard.reduction import (
    ReduceL1,
    ReduceL2,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import RewriteOperations

_REDUCTIONS = (ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum)

PASSES: tuple[Pass, ...] = (
    # What depends on other operations of a model.
    RewriteOperations(
        chains.with_another_axis, (FullyConnected, MatMul), chains.wrongly_chained_products
    ),
    RewriteOperations(reduction.apart_from_scales, _REDUCTIONS, reduction.reduces_scaled_integers),
    RewriteOperations(reduction.apart_from_constants, _REDUCTIONS, reduction.meets_constants),
    RewriteOperations(quantization.nan_as_least, (Quantize,), quantization.quantizes_nan),
    # What depends on the operation alone.
    RewriteOperations(convolution.in_float32, (Conv2D, Conv2DTranspose, DeformableConv2D)),
    RewriteOperations(convolution.without_strided_padding, (Conv2D,)),
    RewriteOperations(convolution.without_lone_column, (Conv2D,)),
)
"""In the order in which they run; `compiling.compile` runs them on every model."""
