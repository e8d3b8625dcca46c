"""The rewrites of operations that OpenVINO computes wrong as they stand."""

from __future__ import annotations

from crosschip.devices.openvino.lowering import convolution
from crosschip.lowering.legalization import Rewrites
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from crosschip.ops.standard.deformable import DeformableConv2D

_CONV = (
    convolution.in_float32,
    convolution.without_strided_padding,
    convolution.without_lone_column,
)
REWRITES: Rewrites = {
    **dict.fromkeys((Conv1D, Conv2D, Conv3D), _CONV),
    **dict.fromkeys(
        (Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, DeformableConv2D),
        (convolution.in_float32,),
    ),
}
"""By operator; a target states here what its converters may rely on."""
