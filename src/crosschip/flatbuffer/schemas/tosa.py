"""The schema of TOSA files (Arm's `tosa.fbs`, 2026), without its block-scaled types."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from crosschip.flatbuffer.table import (
    BOOL,
    INT32,
    UINT8,
    UINT32,
    UINT64,
    Table,
    scalar,
    string,
    strings,
    table,
    tables,
    union,
    vector,
)


class DType(IntEnum):
    """Type of a tensor's elements."""

    UNKNOWN = 0
    BOOL = 1
    INT4 = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT48 = 6
    FP32 = 7
    FP16 = 8
    BF16 = 9
    SHAPE = 10
    FP8E4M3 = 11
    FP8E5M2 = 12
    FP6E2M3 = 13
    FP6E3M2 = 14
    FP4E2M1 = 15
    FP8UE8M0 = 16
    INT64 = 17
    MXINT8 = 18


class ResizeMode(IntEnum):
    """Interpolation of RESIZE."""

    UNKNOWN = 0
    NEAREST = 1
    BILINEAR = 2


class NanPropagationMode(IntEnum):
    """Whether NaN is a result, or ignored."""

    UNKNOWN = 0
    PROPAGATE = 1
    IGNORE = 2


class RoundingMode(IntEnum):
    """Rounding of RESCALE."""

    UNKNOWN = 0
    SINGLE_ROUND = 1
    INEXACT_ROUND = 2
    DOUBLE_ROUND = 3


class Op(IntEnum):
    """Operator; the value is also the code of its attributes."""

    UNKNOWN = 0
    ARGMAX = 1
    AVG_POOL2D = 2
    CONV2D = 3
    CONV3D = 4
    DEPTHWISE_CONV2D = 5
    FFT2D = 6
    MATMUL = 7
    MAX_POOL2D = 8
    RFFT2D = 9
    TRANSPOSE_CONV2D = 10
    CLAMP = 11
    ERF = 12
    SIGMOID = 13
    TANH = 14
    ADD = 15
    ARITHMETIC_RIGHT_SHIFT = 16
    BITWISE_AND = 17
    BITWISE_OR = 18
    BITWISE_XOR = 19
    INTDIV = 20
    LOGICAL_AND = 21
    LOGICAL_LEFT_SHIFT = 22
    LOGICAL_RIGHT_SHIFT = 23
    LOGICAL_OR = 24
    LOGICAL_XOR = 25
    MAXIMUM = 26
    MINIMUM = 27
    MUL = 28
    POW = 29
    SUB = 30
    TABLE = 31
    ABS = 32
    BITWISE_NOT = 33
    CEIL = 34
    CLZ = 35
    COS = 36
    EXP = 37
    FLOOR = 38
    LOG = 39
    LOGICAL_NOT = 40
    NEGATE = 41
    RECIPROCAL = 42
    RSQRT = 43
    SIN = 44
    SELECT = 45
    EQUAL = 46
    GREATER = 47
    GREATER_EQUAL = 48
    REDUCE_ALL = 49
    REDUCE_ANY = 50
    REDUCE_MAX = 51
    REDUCE_MIN = 52
    REDUCE_PRODUCT = 53
    REDUCE_SUM = 54
    CONCAT = 55
    PAD = 56
    RESHAPE = 57
    REVERSE = 58
    SLICE = 59
    TILE = 60
    TRANSPOSE = 61
    GATHER = 62
    SCATTER = 63
    RESIZE = 64
    CAST = 65
    RESCALE = 66
    CONST = 67
    IDENTITY = 68
    CUSTOM = 69
    COND_IF = 70
    WHILE_LOOP = 71
    VARIABLE = 72
    VARIABLE_WRITE = 73
    VARIABLE_READ = 74
    CONST_SHAPE = 75
    MATMUL_T_BLOCK_SCALED = 76
    CAST_FROM_BLOCK_SCALED = 77
    CAST_TO_BLOCK_SCALED = 78
    DIM = 79
    CONCAT_SHAPE = 80
    ADD_SHAPE = 81
    SUB_SHAPE = 82
    MUL_SHAPE = 83
    SLICE_SHAPE = 84
    EXP2_SHAPE = 85
    LOG2_CEIL_SHAPE = 86
    LOG2_FLOOR_SHAPE = 87
    MAX_SHAPE = 88
    MIN_SHAPE = 89
    MOD_SHAPE = 90
    DIV_CEIL_SHAPE = 91
    DIV_FLOOR_SHAPE = 92
    ASSERT_EQUAL_SHAPE = 93
    CONV2D_BLOCK_SCALED = 94
    MAX_POOL2D_ADAPTIVE = 95
    AVG_POOL2D_ADAPTIVE = 96
    RESHAPE_BLOCK_SCALED = 97
    ROW_GATHER_BLOCK_SCALED = 98
    ROW_GATHER = 99
    MATMUL_T = 100


_WINDOWS = ("pad", "stride", "dilation")


def _axis() -> dict[str, Any]:
    return {"axis": scalar(INT32)}


def _nan_mode() -> dict[str, Any]:
    return {"nan_mode": scalar(UINT32)}


def _lists(*names: str) -> dict[str, Any]:
    return {name: vector(INT32) for name in names}


def _sums() -> dict[str, Any]:
    return {"local_bound": scalar(BOOL, False), "acc_type": scalar(UINT32)}


_WITH_FIELDS: Mapping[Op, Mapping[str, Any]] = {
    Op.ARGMAX: {**_axis(), **_nan_mode()},
    Op.AVG_POOL2D: {**_lists("kernel", "stride", "pad"), "acc_type": scalar(UINT32)},
    Op.CONV2D: {**_lists(*_WINDOWS), **_sums()},
    Op.CONV3D: {**_lists(*_WINDOWS), **_sums()},
    Op.DEPTHWISE_CONV2D: {**_lists(*_WINDOWS), **_sums()},
    Op.MAX_POOL2D: {**_lists("kernel", "stride", "pad"), **_nan_mode()},
    Op.TRANSPOSE_CONV2D: {**_lists("out_pad", "stride"), **_sums()},
    Op.CLAMP: {"min_val": vector(UINT8, 8), "max_val": vector(UINT8, 8), **_nan_mode()},
    Op.ARITHMETIC_RIGHT_SHIFT: {"round": scalar(BOOL, False)},
    Op.MAXIMUM: _nan_mode(),
    Op.MINIMUM: _nan_mode(),
    Op.REDUCE_ALL: _axis(),
    Op.REDUCE_ANY: _axis(),
    Op.REDUCE_MAX: {**_axis(), **_nan_mode()},
    Op.REDUCE_MIN: {**_axis(), **_nan_mode()},
    Op.REDUCE_PRODUCT: _axis(),
    Op.REDUCE_SUM: _axis(),
    Op.CONCAT: _axis(),
    Op.REVERSE: _axis(),
    Op.TRANSPOSE: _lists("perms"),
    Op.RESIZE: {"mode": scalar(UINT32)},
    Op.RESCALE: {
        "scale32": scalar(BOOL, False),
        "rounding_mode": scalar(UINT32),
        "per_channel": scalar(BOOL, False),
        "input_unsigned": scalar(BOOL, False),
        "output_unsigned": scalar(BOOL, False),
    },
}
ATTRIBUTES: Mapping[Op, type[Table]] = {
    op: type(f"{op.name}_attribute", (Table,), dict(_WITH_FIELDS.get(op, {})))
    for op in Op
    if op is not Op.UNKNOWN
}
"""The attributes of each operator; those of operators that are not written have no fields."""


class Version(Table):
    """The version of the specification."""

    major = scalar(INT32, -1)
    minor = scalar(INT32, -1)
    patch = scalar(INT32, -1)
    draft = scalar(BOOL, True)


class SoftwareVersion(Table):
    """The version of the serialization library."""

    major = scalar(INT32, -1)
    minor = scalar(INT32, -1)
    micro = scalar(INT32, -1)
    modifier = string()


class SerializationCompatibility(Table):
    """What readers must be able to read."""

    min_reader_version = table(SoftwareVersion)
    features = scalar(UINT64)


class TosaTensor(Table):
    """A tensor, with elements if it is constant."""

    name = string()
    shape = vector(INT32)
    type = scalar(UINT32)
    data = vector(UINT8, 8)
    variable = scalar(BOOL, False)
    is_unranked = scalar(BOOL, False)
    variable_name = string()
    offset = scalar(UINT64)
    size = scalar(UINT64)
    scale_type = scalar(UINT32)
    scale_data = vector(UINT8, 8)
    block_shape = scalar(UINT32)
    scale_offset = scalar(UINT64)
    scale_size = scalar(UINT64)


class TosaShape(Table):
    """A constant list of sizes."""

    name = string()
    rank = scalar(UINT32)
    data = vector(UINT8, 8)


class OpLocation(Table):
    """Where an operator comes from."""

    text = string()


class TosaOperator(Table):
    """An operator, with the names of its inputs and outputs."""

    op = scalar(UINT32)
    attribute = union({int(op): attributes for op, attributes in ATTRIBUTES.items()})
    inputs = strings()
    outputs = strings()
    location = table(OpLocation)


class TosaBasicBlock(Table):
    """Operators in order, and the tensors between them."""

    name = string()
    operators = tables(TosaOperator)
    tensors = tables(TosaTensor)
    inputs = strings()
    outputs = strings()
    shapes = tables(TosaShape)


class TosaRegion(Table):
    """A function."""

    name = string()
    blocks = tables(TosaBasicBlock)


class TosaGraph(Table):
    """A file."""

    version = table(Version)
    regions = tables(TosaRegion)
    software_version = table(SoftwareVersion)
    compatibility = table(SerializationCompatibility)
