"""Which OpenVINO operations stand for each standard operator: a file a family."""

from crosschip.devices.openvino.converters import (
    arithmetic,
    images,
    quantization,
    resampling,
    tensors,
)
from crosschip.devices.openvino.converters.table import converters

__all__ = ["arithmetic", "converters", "images", "quantization", "resampling", "tensors"]
