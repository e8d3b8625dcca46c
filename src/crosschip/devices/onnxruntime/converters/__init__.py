"""Which ONNX nodes stand for each standard operator: a file a family, a function an operator."""

from crosschip.devices.onnxruntime.converters import (
    arithmetic,
    images,
    quantization,
    resampling,
    tensors,
)
from crosschip.devices.onnxruntime.converters.table import converters

__all__ = ["arithmetic", "converters", "images", "quantization", "resampling", "tensors"]
