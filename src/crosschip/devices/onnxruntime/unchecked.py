"""Operators whose sizes in a run ONNX Runtime does not check, or that fail with empty inputs."""

from __future__ import annotations

from crosschip.devices.kits.size_checks import Sizes
from crosschip.ir import Model
from crosschip.ops.standard.activation import PRelu
from crosschip.ops.standard.adaptive_pooling import AdaptivePool
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from crosschip.ops.standard.indexing import GatherND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.normalization import GroupNormalization
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.pooling import Pool
from crosschip.ops.standard.recurrent import DynamicQuantizeLSTM
from crosschip.ops.standard.sampling import GridSample, RoiAlign

FAILS_OF_NOTHING = (
    *(AdaptivePool, Pool),
    *(Conv1D, Conv2D, Conv3D),
    *(DynamicQuantizeLSTM, GroupNormalization, MatMul, Reshape),
)
"""Operators that fail or hang with empty inputs (quirk `convolution-of-nothing`)."""

UNWRITTEN_OF_NOTHING = (MatMul,)
"""Operators that leave sums over no elements unwritten."""

UNCHECKED = (
    *(Conv1DTranspose, Conv2DTranspose, Conv3DTranspose),
    *(Concat, GatherND, GridSample, Pad, PRelu, RoiAlign),
)
"""Operators that compute although sizes do not fit (quirk `part-of-nothing`)."""


def sizes(model: Model) -> Sizes:
    """Return the checks of sizes that a model's runs need."""
    return Sizes("onnxruntime", model, UNCHECKED, FAILS_OF_NOTHING, UNWRITTEN_OF_NOTHING)
