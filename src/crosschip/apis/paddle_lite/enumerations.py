"""Paddle Lite's enumerations and `Place`, with the same numbers.

Source: lite/api/paddle_place.h of Paddle Lite 2.14.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np


class TargetType(IntEnum):
    """The hardware that runs an operator."""

    Unk = 0
    Host = 1
    X86 = 2
    ARM = 4
    OpenCL = 5
    Any = 6
    FPGA = 7
    XPU = 9
    BM = 10
    MLU = 11
    RKNPU = 12
    APU = 13
    HUAWEI_ASCEND_NPU = 14
    IMAGINATION_NNA = 15
    INTEL_FPGA = 16
    Metal = 17
    NNAdapter = 18


class PrecisionType(IntEnum):
    """The element type of a tensor."""

    Unk = 0
    FP32 = 1
    INT8 = 2
    INT32 = 3
    Any = 4
    FP16 = 5
    BOOL = 6
    INT64 = 7
    INT16 = 8
    UINT8 = 9
    FP64 = 10


class DataLayoutType(IntEnum):
    """The memory layout of a tensor."""

    Unk = 0
    NCHW = 1
    Any = 2
    NHWC = 3
    ImageDefault = 4
    ImageFolder = 5
    ImageNW = 6
    MetalTexture2DArray = 7
    MetalTexture2D = 8


class PowerMode(IntEnum):
    """The CPU cores that run, and their speed."""

    LITE_POWER_HIGH = 0
    LITE_POWER_LOW = 1
    LITE_POWER_FULL = 2
    LITE_POWER_NO_BIND = 3
    LITE_POWER_RAND_HIGH = 4
    LITE_POWER_RAND_LOW = 5


class CLTuneMode(IntEnum):
    """The effort of the search for OpenCL kernels."""

    CL_TUNE_NONE = 0
    CL_TUNE_RAPID = 1
    CL_TUNE_NORMAL = 2
    CL_TUNE_EXHAUSTIVE = 3


class CLPrecisionType(IntEnum):
    """The precision of OpenCL kernels."""

    CL_PRECISION_AUTO = 0
    CL_PRECISION_FP32 = 1
    CL_PRECISION_FP16 = 2


@dataclass(frozen=True)
class Place:
    """Hardware, with the element type and layout of the kernels to use.

    Attributes:
        target: the hardware.
        percision: the element type; the name is Paddle Lite's.
        layout: the layout.
        device: the index among several devices of this kind.
    """

    target: TargetType
    percision: PrecisionType = PrecisionType.FP32
    layout: DataLayoutType = DataLayoutType.NCHW
    device: int = 0

    def is_valid(self) -> bool:
        """Return whether target and element type are known."""
        return TargetType.Unk != self.target and PrecisionType.Unk != self.percision


DTYPES: Mapping[PrecisionType, np.dtype[Any]] = {
    PrecisionType.FP32: np.dtype(np.float32),
    PrecisionType.INT8: np.dtype(np.int8),
    PrecisionType.INT32: np.dtype(np.int32),
    PrecisionType.FP16: np.dtype(np.float16),
    PrecisionType.BOOL: np.dtype(np.bool_),
    PrecisionType.INT64: np.dtype(np.int64),
    PrecisionType.INT16: np.dtype(np.int16),
    PrecisionType.UINT8: np.dtype(np.uint8),
    PrecisionType.FP64: np.dtype(np.float64),
}
"""NumPy's type for each element type."""

TYPES: Mapping[np.dtype[Any], PrecisionType] = {dtype: type_ for type_, dtype in DTYPES.items()}
