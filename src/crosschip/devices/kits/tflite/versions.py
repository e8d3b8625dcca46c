"""Versions of operators: what each one needs of the engine that runs it.

Source: https://github.com/tensorflow/tensorflow/blob/master/tensorflow/lite/tools/versioning/op_version.cc
"""

from __future__ import annotations

from crosschip.devices.kits.tflite.native import Native
from crosschip.ir import ElementType

_INT8_SINCE: dict[str, int] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), 3),
    "FULLY_CONNECTED": 4,
    **dict.fromkeys(
        (
            *("ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D", "CONCATENATION", "PAD"),
            *("PADV2", "RELU", "RELU6", "SOFTMAX", "LOGISTIC", "TANH", "TRANSPOSE"),
            *("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "SLICE", "STRIDED_SLICE", "SPLIT_V"),
            *("MAXIMUM", "MINIMUM", "QUANTIZE", "DEQUANTIZE", "GATHER", "LEAKY_RELU", "PACK"),
            *("TRANSPOSE_CONV", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_DEPTH"),
            *("LOG_SOFTMAX", "SQUARED_DIFFERENCE", "ABS", "BATCH_MATMUL"),
        ),
        2,
    ),
}
"""The version since which int8 is computed."""

_INT16_SINCE: dict[str, int] = dict.fromkeys(("SOFTMAX", "LOGISTIC", "TANH", "ABS"), 3)
"""The version since which int16 is computed."""

_USUAL: dict[str, int] = {
    "BROADCAST_TO": 2,
}
_TRANSPOSE_CONV_WITH_BIAS = 3
_FULLY_CONNECTED_KEEPING_AXES = 5
_FULLY_CONNECTED_WITHOUT_BIAS = 6


def version_of(operation: Native) -> int:
    """Return the version of an operator that its types, ranks and options need."""
    code = operation.code
    version = _USUAL.get(code, 1)
    types = {o.type.element_type for o in operation.inputs if o is not None}
    if ElementType.INT8 in types:
        version = max(version, _INT8_SINCE.get(code, 1))
    if ElementType.INT16 in types:
        version = max(version, _INT16_SINCE.get(code, 1))
    if code == "TRANSPOSE_CONV":
        version = max(version, _TRANSPOSE_CONV_WITH_BIAS)
    if code == "FULLY_CONNECTED":
        if operation.options.get("keep_num_dims"):
            version = max(version, _FULLY_CONNECTED_KEEPING_AXES)
        if operation.inputs[2] is None:
            version = max(version, _FULLY_CONNECTED_WITHOUT_BIAS)
    return version
