"""`paddle.inference`'s enumerations, with the same numbers.

Source: paddle/fluid/inference/api/paddle_analysis_config.h and paddle_api.h of Paddle 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import ml_dtypes
import numpy as np


class PrecisionType(IntEnum):
    """The precision of a predictor."""

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


class PlaceType(IntEnum):
    """The hardware that holds a tensor."""

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 4


class DataType(IntEnum):
    """The element type of a tensor."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BOOL = 6
    FLOAT64 = 7
    BFLOAT16 = 8


DTYPES: Mapping[DataType, np.dtype] = {
    DataType.FLOAT32: np.dtype(np.float32),
    DataType.INT64: np.dtype(np.int64),
    DataType.INT32: np.dtype(np.int32),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.INT8: np.dtype(np.int8),
    DataType.FLOAT16: np.dtype(np.float16),
    DataType.BOOL: np.dtype(np.bool_),
    DataType.FLOAT64: np.dtype(np.float64),
    DataType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
}
"""NumPy's type for each element type."""

TYPES: Mapping[np.dtype, DataType] = {dtype: type_ for type_, dtype in DTYPES.items()}


def get_num_bytes_of_data_type(type: DataType) -> int:
    """Return the number of bytes per element."""
    return DTYPES[DataType(type)].itemsize
