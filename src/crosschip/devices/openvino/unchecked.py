"""Operators whose sizes in a run OpenVINO does not check, or that fail with empty inputs."""

from __future__ import annotations

from crosschip.devices.kits.size_checks import Sizes
from crosschip.ir import Model
from crosschip.ops.standard.activation import PRelu
from crosschip.ops.standard.adaptive_pooling import AdaptivePool
from crosschip.ops.standard.convolution import (
    Conv,
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from crosschip.ops.standard.deformable import DeformableConv2D
from crosschip.ops.standard.indexing import GatherElements, GatherND, ScatterElements, ScatterND
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.normalization import (
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    RMSNormalization,
)
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.pooling import MaxPool, Pool
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.sampling import GridSample, RoiAlign

FAILS_OF_NOTHING = (
    *(AdaptivePool, Pool),
    *(GRU, LSTM, RNN),
    *(ResizeCubic, ResizeLinear, ResizeNearest),
)
"""Operators that fail or crash with empty inputs (quirk `image-of-nothing`)."""

UNWRITTEN_OF_NOTHING = (Conv, MaxPool)
"""Operators that OpenVINO does not compute, or that crash, if all pixels are padding."""

UNCHECKED = (
    *(BatchNormalization, GroupNormalization, InstanceNormalization, LayerNormalization),
    *(PRelu, RMSNormalization),
    *(Conv1D, Conv2D, Conv3D, DeformableConv2D, FullyConnected),
    *(Conv1DTranspose, Conv2DTranspose, Conv3DTranspose),
    *(Dequantize, Quantize),
    *(GRU, LSTM, RNN),
    *(GatherElements, GatherND, ScatterElements, ScatterND),
    *(GridSample, Pad, RoiAlign),
)
"""Operators that crash or return arbitrary elements if the sizes of operands do not match."""


def size_checks(model: Model) -> Sizes:
    """Return the checks of sizes in a model's runs."""
    return Sizes("openvino", model, UNCHECKED, FAILS_OF_NOTHING, UNWRITTEN_OF_NOTHING)
