"""Conversion of standard operators to those of TensorFlow Lite: one module per family."""

from crosschip.devices.kits.tflite.converters import (  # noqa: F401
    arithmetic,
    blocks,
    convolution,
    creation,
    indexing,
    layout,
    logical,
    matrix,
    pooling,
    quantization,
    reduction,
    resizing,
    searching,
    unary,
)
from crosschip.devices.kits.tflite.converters.table import converters, images

__all__ = ["converters", "images"]
