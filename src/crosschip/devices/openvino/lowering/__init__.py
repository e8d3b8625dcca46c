"""The passes that adapt a model to OpenVINO, after which its converters map it one to one.

Each documents the version of OpenVINO and the symptom that it avoids.
"""

from __future__ import annotations

from crosschip.devices.openvino.lowering import convolution
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import RewriteOperations

PASSES: tuple[Pass, ...] = (
    RewriteOperations(convolution.in_float32, (Conv2D, Conv2DTranspose, DeformableConv2D)),
    RewriteOperations(convolution.without_strided_padding, (Conv2D,)),
    RewriteOperations(convolution.without_lone_column, (Conv2D,)),
)
"""In the order in which they run; `compiling.compile` runs them on every model."""
