"""The tables of TensorFlow Lite's schema that are written, and their encoding as a FlatBuffer.

Source: https://github.com/tensorflow/tensorflow/blob/master/tensorflow/compiler/mlir/lite/schema/schema.fbs
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from flatbuffers import Builder
from flatbuffers.number_types import (
    BoolFlags,
    Float32Flags,
    Int8Flags,
    Int32Flags,
    Uint8Flags,
    Uint32Flags,
    Uint64Flags,
    UOffsetTFlags,
)

IDENTIFIER = b"TFL3"
_BUFFER_ALIGNMENT = 16

_NUMBERS: Mapping[str, Any] = {
    "bool": BoolFlags,
    "float32": Float32Flags,
    "int8": Int8Flags,
    "int32": Int32Flags,
    "uint8": Uint8Flags,
    "uint32": Uint32Flags,
    "uint64": Uint64Flags,
}
_VECTORS = {"[float32]": np.float32, "[int32]": np.int32, "[int64]": np.int64, "[uint8]": np.uint8}


class Padding(IntEnum):
    """The rule for padding an image."""

    SAME = 0
    VALID = 1


class Activation(IntEnum):
    """An activation that is fused with an operator."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3


class MirrorPadMode(IntEnum):
    """The elements that a mirrored padding repeats."""

    REFLECT = 0
    SYMMETRIC = 1


class Type(IntEnum):
    """The element type of a tensor."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    BOOL = 6
    INT16 = 7
    INT8 = 9
    FLOAT64 = 10
    UINT64 = 12
    UINT32 = 15
    UINT16 = 16
    INT4 = 17


_TABLES = {
    "Model": "version uint32, operator_codes [OperatorCode], subgraphs [SubGraph], "
    "description string, buffers [Buffer], -, -, signature_defs [SignatureDef]",
    "OperatorCode": "deprecated_builtin_code int8, custom_code string, version int32, "
    "builtin_code int32",
    "SubGraph": "tensors [Tensor], inputs [int32], outputs [int32], operators [Operator], "
    "name string",
    "Buffer": "data [uint8]",
    "SignatureDef": "inputs [TensorMap], outputs [TensorMap], signature_key string, -, "
    "subgraph_index uint32",
    "TensorMap": "name string, tensor_index uint32",
    "Tensor": "shape [int32], type int8, buffer uint32, name string, "
    "quantization QuantizationParameters, -, -, -, has_rank bool",
    "QuantizationParameters": "-, -, scale [float32], zero_point [int64], -, -, "
    "quantized_dimension int32",
    "Operator": "opcode_index uint32, inputs [int32], outputs [int32], "
    "builtin_options_type uint8, builtin_options Options, custom_options [uint8]",
    "AddOptions": "fused_activation_function int8",
    "ArgMaxOptions": "output_type int8",
    "ArgMinOptions": "output_type int8",
    "BatchMatMulOptions": "adj_x bool, adj_y bool, asymmetric_quantize_inputs bool",
    "CastOptions": "in_data_type int8, out_data_type int8",
    "ConcatenationOptions": "axis int32, fused_activation_function int8",
    "Conv2DOptions": "padding int8, stride_w int32, stride_h int32, "
    "fused_activation_function int8, dilation_w_factor int32, dilation_h_factor int32",
    "CumsumOptions": "exclusive bool, reverse bool",
    "DepthToSpaceOptions": "block_size int32",
    "DepthwiseConv2DOptions": "padding int8, stride_w int32, stride_h int32, "
    "depth_multiplier int32, fused_activation_function int8, dilation_w_factor int32, "
    "dilation_h_factor int32",
    "DivOptions": "fused_activation_function int8",
    "FullyConnectedOptions": "fused_activation_function int8, weights_format int8, "
    "keep_num_dims bool, asymmetric_quantize_inputs bool",
    "GatherOptions": "axis int32, batch_dims int32",
    "GeluOptions": "approximate bool",
    "LeakyReluOptions": "alpha float32",
    "MirrorPadOptions": "mode int8",
    "MulOptions": "fused_activation_function int8",
    "PackOptions": "values_count int32, axis int32",
    "Pool2DOptions": "padding int8, stride_w int32, stride_h int32, filter_width int32, "
    "filter_height int32, fused_activation_function int8",
    "ReducerOptions": "keep_dims bool",
    "ReshapeOptions": "new_shape [int32]",
    "ResizeBilinearOptions": "-, -, align_corners bool, half_pixel_centers bool",
    "ResizeNearestNeighborOptions": "align_corners bool, half_pixel_centers bool",
    "ReverseSequenceOptions": "seq_dim int32, batch_dim int32",
    "SoftmaxOptions": "beta float32",
    "SpaceToDepthOptions": "block_size int32",
    "SplitVOptions": "num_splits int32",
    "StridedSliceOptions": "begin_mask int32, end_mask int32, ellipsis_mask int32, "
    "new_axis_mask int32, shrink_axis_mask int32",
    "SubOptions": "fused_activation_function int8",
    "TransposeConvOptions": "padding int8, stride_w int32, stride_h int32, "
    "fused_activation_function int8",
    "UnpackOptions": "num int32, axis int32",
}
"""The fields of each table in the order of their numbers; `-` is one that is never written."""


def _numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (e.partition("=") for e in text.split())}


CODES = _numbers("""
    ADD=0 AVERAGE_POOL_2D=1 CONCATENATION=2 CONV_2D=3 DEPTHWISE_CONV_2D=4 DEPTH_TO_SPACE=5
    DEQUANTIZE=6 FLOOR=8 FULLY_CONNECTED=9 LOGISTIC=14 MAX_POOL_2D=17 MUL=18 RELU=19
    RELU_N1_TO_1=20 RELU6=21 RESHAPE=22 RESIZE_BILINEAR=23 SOFTMAX=25 SPACE_TO_DEPTH=26
    TANH=28 PAD=34 GATHER=36 TRANSPOSE=39 MEAN=40 SUB=41 DIV=42 STRIDED_SLICE=45 EXP=47
    TOPK_V2=48 LOG_SOFTMAX=50 CAST=53 PRELU=54 MAXIMUM=55 ARG_MAX=56 MINIMUM=57 LESS=58
    NEG=59 PADV2=60 GREATER=61 GREATER_EQUAL=62 LESS_EQUAL=63 SLICE=65 SIN=66
    TRANSPOSE_CONV=67 TILE=69 EQUAL=71 NOT_EQUAL=72 LOG=73 SUM=74 SQRT=75 RSQRT=76 POW=78
    ARG_MIN=79 REDUCE_PROD=81 REDUCE_MAX=82 PACK=83 LOGICAL_OR=84 LOGICAL_AND=86
    LOGICAL_NOT=87 UNPACK=88 REDUCE_MIN=89 FLOOR_DIV=90 REDUCE_ANY=91 SQUARE=92 FLOOR_MOD=95
    RESIZE_NEAREST_NEIGHBOR=97 LEAKY_RELU=98 SQUARED_DIFFERENCE=99 MIRROR_PAD=100 ABS=101
    SPLIT_V=102 CEIL=104 GATHER_ND=107 COS=108 ELU=111 REVERSE_SEQUENCE=112 QUANTIZE=114
    ROUND=116 HARD_SWISH=117 SELECT_V2=123 BATCH_MATMUL=126 CUMSUM=128 BROADCAST_TO=130
    REDUCE_ALL=140 GELU=150 ATAN2=156 SIGN=158 BITWISE_XOR=160
""")
"""The number of each operator."""

OPTIONS = _numbers("""
    Conv2DOptions=1 DepthwiseConv2DOptions=2 Pool2DOptions=5 FullyConnectedOptions=8
    SoftmaxOptions=9 ConcatenationOptions=10 AddOptions=11 ResizeBilinearOptions=15
    ReshapeOptions=17 SpaceToDepthOptions=19 MulOptions=21 PadOptions=22 GatherOptions=23
    TransposeOptions=26 ReducerOptions=27 SubOptions=28 DivOptions=29 StridedSliceOptions=32
    ExpOptions=33 TopKV2Options=34 LogSoftmaxOptions=36 CastOptions=37 DequantizeOptions=38
    MaximumMinimumOptions=39 ArgMaxOptions=40 LessOptions=41 NegOptions=42 PadV2Options=43
    GreaterOptions=44 GreaterEqualOptions=45 LessEqualOptions=46 SliceOptions=48
    TransposeConvOptions=49 TileOptions=51 EqualOptions=53 NotEqualOptions=54 PowOptions=56
    ArgMinOptions=57 PackOptions=59 LogicalOrOptions=60 LogicalAndOptions=62
    LogicalNotOptions=63 UnpackOptions=64 FloorDivOptions=65 SquareOptions=66
    FloorModOptions=72 ResizeNearestNeighborOptions=74 LeakyReluOptions=75
    MirrorPadOptions=77 AbsOptions=78 SplitVOptions=79 GatherNdOptions=83 CosOptions=84
    ReverseSequenceOptions=87 QuantizeOptions=89 HardSwishOptions=91 DepthToSpaceOptions=94
    SelectV2Options=98 BatchMatMulOptions=101 CumsumOptions=102 BroadcastToOptions=104
    GeluOptions=116 ATan2Options=122 SignOptions=123 BitwiseXorOptions=125
""")
"""The number of each table of options."""


def encode(root: Mapping[str, Any]) -> bytes:
    """Return a `Model` table, given by its fields, as a file."""
    size = sum(len(buffer.get("data", b"")) for buffer in root["buffers"])
    builder = Builder(size + size // 8 + 2**16)
    builder.Finish(_table(builder, "Model", root), IDENTIFIER)
    return bytes(builder.Output())


def _table(builder: Builder, name: str, fields: Mapping[str, Any]) -> int:
    """Write a table after the tables, vectors and texts that it refers to; return its offset."""
    declared = [text.rpartition(" ") for text in _TABLES.get(name, "").split(", ") if text]
    numbers = {field: (number, kind) for number, (field, _, kind) in enumerate(declared)}
    values = {
        field: value
        if numbers[field][1] in _NUMBERS
        else _reference(builder, field, numbers[field][1], value)
        for field, value in fields.items()
    }
    builder.StartObject(len(declared))
    for field, value in values.items():
        number, kind = numbers[field]
        if kind in _NUMBERS:
            builder.PrependSlot(_NUMBERS[kind], number, value, None)
        else:
            builder.PrependUOffsetTRelativeSlot(number, value, 0)
    return int(builder.EndObject())


def _reference(builder: Builder, field: str, kind: str, value: Any) -> int:
    """Write what a field refers to; return its offset."""
    if kind == "string":
        return int(builder.CreateString(value))
    if kind == "Options":
        name, fields = value
        return _table(builder, name, fields)
    if kind in _VECTORS:
        array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
        return _vector(builder, np.asarray(array, _VECTORS[kind]), field)
    if not kind.startswith("["):
        return _table(builder, kind, value)
    offsets = [_table(builder, kind[1:-1], each) for each in value]
    builder.StartVector(UOffsetTFlags.bytewidth, len(offsets), UOffsetTFlags.bytewidth)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _vector(builder: Builder, array: Any, field: str) -> int:
    """Write a vector of numbers; the data of buffers are aligned as engines expect it."""
    if field == "data":
        builder.Prep(_BUFFER_ALIGNMENT, array.nbytes)
    return int(builder.CreateNumpyVector(array))
