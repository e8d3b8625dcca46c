"""Paddle Inference's programming interface, on crosschip's devices, without Paddle.

Classes and functions have the names of `paddle.inference`. `install` lets programs that say `import
paddle.inference` find this package; others import it under its own name.
"""

from importlib.metadata import version as _version

from crosschip.apis.paddle_inference.config import Config
from crosschip.apis.paddle_inference.enumerations import (
    DataType,
    PlaceType,
    PrecisionType,
    get_num_bytes_of_data_type,
)
from crosschip.apis.paddle_inference.import_hook import VERSION, install
from crosschip.apis.paddle_inference.predictor import (
    Predictor,
    PredictorPool,
    create_predictor,
)
from crosschip.apis.paddle_inference.tensor import Tensor
from crosschip.ir import UnsupportedError


def get_version() -> str:
    """Return the Paddle version that this interface follows, and crosschip's version."""
    return f"version: {VERSION}\ncommit: crosschip {_version('crosschip')}\nbranch: crosschip\n"


def get_trt_compile_version() -> tuple[int, int, int]:
    """Return the version of TensorRT that the package is built with: none."""
    return (0, 0, 0)


get_trt_runtime_version = get_trt_compile_version


def convert_to_mixed_precision(*args: object, **kwargs: object) -> None:
    """Raise `UnsupportedError`: crosschip does not write Paddle's files.

    Raises:
        UnsupportedError: always.
    """
    raise UnsupportedError(
        "convert_to_mixed_precision: crosschip writes no programs of Paddle's; run the model as it "
        "is, with the arithmetic that a setting of Config chooses"
    )


__all__ = [
    "Config",
    "DataType",
    "PlaceType",
    "PrecisionType",
    "Predictor",
    "PredictorPool",
    "Tensor",
    "convert_to_mixed_precision",
    "create_predictor",
    "get_num_bytes_of_data_type",
    "get_trt_compile_version",
    "get_trt_runtime_version",
    "get_version",
    "install",
]
