"""Paddle Lite's programming interface in Python, on crosschip's devices, without Paddle Lite.

Classes, functions and enumerations have the names of `paddlelite.lite`: a program that is written
for it runs with `from crosschip.apis.paddle_lite import *` in place of its own import line.
"""

from crosschip.apis.paddle_lite.config import CxxConfig, MobileConfig
from crosschip.apis.paddle_lite.enumerations import (
    CLPrecisionType,
    CLTuneMode,
    DataLayoutType,
    Place,
    PowerMode,
    PrecisionType,
    TargetType,
)
from crosschip.apis.paddle_lite.predictor import (
    CxxPredictor,
    LightPredictor,
    create_paddle_predictor,
)
from crosschip.apis.paddle_lite.tensor import Tensor

__all__ = [
    "CLPrecisionType",
    "CLTuneMode",
    "CxxConfig",
    "CxxPredictor",
    "DataLayoutType",
    "LightPredictor",
    "MobileConfig",
    "Place",
    "PowerMode",
    "PrecisionType",
    "TargetType",
    "Tensor",
    "create_paddle_predictor",
]
