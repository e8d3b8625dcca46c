"""The rewrites of operations that OpenVINO computes wrong as they stand."""

from __future__ import annotations

from crosschip.devices.openvino.lowering import convolution
from crosschip.lowering.legalization import Rewrites
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D

REWRITES: Rewrites = {
    Conv2D: (
        convolution.in_float32,
        convolution.without_strided_padding,
        convolution.without_lone_column,
    ),
    Conv2DTranspose: (convolution.in_float32,),
    DeformableConv2D: (convolution.in_float32,),
}
"""By operator; a target states here what its converters may rely on."""
