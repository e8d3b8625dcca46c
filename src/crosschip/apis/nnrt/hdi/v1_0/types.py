"""The structures and enumerations of the interface, with the document's names and values.

The document is OpenHarmony's NNRt V1_0: `NnrtTypes.idl` and `ModelTypes.idl`. Two of its
descriptions are wrong and not followed: `ELTWISE_MODE_SUM` as a difference, and `NODE_TYPE_SQUEEZE`
and `NODE_TYPE_SQUARED_DIFFERENCE`, which are swapped.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

import msgspec

UnsignedInt = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
Int = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class DeviceType(IntEnum):
    """The kind of a chip."""

    OTHER = 0
    CPU = 1
    GPU = 2
    ACCELERATOR = 3


class DeviceStatus(IntEnum):
    """The state of a chip."""

    AVAILABLE = 0
    BUSY = 1
    OFFLINE = 2
    UNKNOWN = 3


class PerformanceMode(IntEnum):
    """The trade-off between speed and power."""

    PERFORMANCE_NONE = 0
    PERFORMANCE_LOW = 1
    PERFORMANCE_MEDIUM = 2
    PERFORMANCE_HIGH = 3
    PERFORMANCE_EXTREME = 4


class Priority(IntEnum):
    """The priority of runs."""

    PRIORITY_NONE = 0
    PRIORITY_LOW = 1
    PRIORITY_MEDIUM = 2
    PRIORITY_HIGH = 3


class Format(IntEnum):
    """The memory layout of an image."""

    FORMAT_NONE = -1
    FORMAT_NCHW = 0
    FORMAT_NHWC = 1


class DataType(IntEnum):
    """The element type of a tensor."""

    DATA_TYPE_UNKNOWN = 0
    DATA_TYPE_BOOL = 30
    DATA_TYPE_INT8 = 32
    DATA_TYPE_INT16 = 33
    DATA_TYPE_INT32 = 34
    DATA_TYPE_INT64 = 35
    DATA_TYPE_UINT8 = 37
    DATA_TYPE_UINT16 = 38
    DATA_TYPE_UINT32 = 39
    DATA_TYPE_UINT64 = 40
    DATA_TYPE_FLOAT16 = 42
    DATA_TYPE_FLOAT32 = 43
    DATA_TYPE_FLOAT64 = 44


class QuantType(IntEnum):
    """Whether a node computes on quantized tensors."""

    QUANT_TYPE_NONE = 0
    QUANT_TYPE_ALL = 1


class NodeType(IntEnum):
    """The operator of a node."""

    NODE_TYPE_NONE = 0
    NODE_TYPE_ACTIVATION = 2
    NODE_TYPE_ADD_FUSION = 5
    NODE_TYPE_ARGMAX_FUSION = 11
    NODE_TYPE_AVGPOOL_FUSION = 17
    NODE_TYPE_BATCH_TO_SPACE_ND = 22
    NODE_TYPE_BIAS_ADD = 23
    NODE_TYPE_CAST = 28
    NODE_TYPE_CONCAT = 31
    NODE_TYPE_CONV2D_FUSION = 35
    NODE_TYPE_CONV2D_TRANSPOSE_FUSION = 36
    NODE_TYPE_DIV_FUSION = 47
    NODE_TYPE_ELTWISE = 52
    NODE_TYPE_EXPAND_DIMS = 56
    NODE_TYPE_FILL = 66
    NODE_TYPE_FULL_CONNECTION = 67
    NODE_TYPE_FUSED_BATCH_NORM = 68
    NODE_TYPE_GATHER = 69
    NODE_TYPE_LAYER_NORM_FUSION = 75
    NODE_TYPE_LESS_EQUAL = 78
    NODE_TYPE_MATMUL_FUSION = 89
    NODE_TYPE_MAXIMUM = 90
    NODE_TYPE_MAX_POOL_FUSION = 92
    NODE_TYPE_MUL_FUSION = 99
    NODE_TYPE_ONE_HOT = 105
    NODE_TYPE_PAD_FUSION = 107
    NODE_TYPE_POW_FUSION = 110
    NODE_TYPE_PRELU_FUSION = 112
    NODE_TYPE_QUANT_DTYPE_CAST = 113
    NODE_TYPE_REDUCE_FUSION = 118
    NODE_TYPE_RESHAPE = 119
    NODE_TYPE_RESIZE = 120
    NODE_TYPE_RSQRT = 126
    NODE_TYPE_SCALE_FUSION = 127
    NODE_TYPE_SHAPE = 130
    NODE_TYPE_SLICE_FUSION = 135
    NODE_TYPE_SOFTMAX = 138
    NODE_TYPE_SPACE_TO_BATCH_ND = 141
    NODE_TYPE_SPLIT = 145
    NODE_TYPE_SQRT = 146
    NODE_TYPE_SQUEEZE = 147
    NODE_TYPE_SQUARED_DIFFERENCE = 149
    NODE_TYPE_STACK = 150
    NODE_TYPE_STRIDED_SLICE = 151
    NODE_TYPE_SUB_FUSION = 152
    NODE_TYPE_TILE_FUSION = 160
    NODE_TYPE_TOPK_FUSION = 161
    NODE_TYPE_TRANSPOSE = 162
    NODE_TYPE_UNSQUEEZE = 165


class ResizeMethod(IntEnum):
    """The interpolation of `Resize`."""

    RESIZE_METHOD_UNKNOWN = -1
    RESIZE_METHOD_LINEAR = 0
    RESIZE_METHOD_NEAREST = 1
    RESIZE_METHOD_CUBIC = 2


class CoordinateTransformMode(IntEnum):
    """The coordinate transformation of `Resize`."""

    COORDINATE_TRANSFORM_MODE_ASYMMETRIC = 0
    COORDINATE_TRANSFORM_MODE_ALIGN_CORNERS = 1
    COORDINATE_TRANSFORM_MODE_HALF_PIXEL = 2


class NearestMode(IntEnum):
    """The rounding of coordinates of `Resize`."""

    NEAREST_MODE_NORMAL = 0
    NEAREST_MODE_ROUND_HALF_DOWN = 1
    NEAREST_MODE_ROUND_HALF_UP = 2
    NEAREST_MODE_FLOOR = 3
    NEAREST_MODE_CEIL = 4


class ActivationType(IntEnum):
    """An activation function."""

    ACTIVATION_TYPE_NO_ACTIVATION = 0
    ACTIVATION_TYPE_RELU = 1
    ACTIVATION_TYPE_SIGMOID = 2
    ACTIVATION_TYPE_RELU6 = 3
    ACTIVATION_TYPE_ELU = 4
    ACTIVATION_TYPE_LEAKY_RELU = 5
    ACTIVATION_TYPE_ABS = 6
    ACTIVATION_TYPE_RELU1 = 7
    ACTIVATION_TYPE_SOFTSIGN = 8
    ACTIVATION_TYPE_SOFTPLUS = 9
    ACTIVATION_TYPE_TANH = 10
    ACTIVATION_TYPE_SELU = 11
    ACTIVATION_TYPE_HSWISH = 12
    ACTIVATION_TYPE_HSIGMOID = 13
    ACTIVATION_TYPE_THRESHOLDRELU = 14
    ACTIVATION_TYPE_LINEAR = 15
    ACTIVATION_TYPE_HARD_TANH = 16
    ACTIVATION_TYPE_SIGN = 17
    ACTIVATION_TYPE_SWISH = 18
    ACTIVATION_TYPE_GELU = 19
    ACTIVATION_TYPE_UNKNOWN = 20


class ReduceMode(IntEnum):
    """The reduction of `ReduceFusion`."""

    REDUCE_MODE_MEAN = 0
    REDUCE_MODE_MAX = 1
    REDUCE_MODE_MIN = 2
    REDUCE_MODE_PROD = 3
    REDUCE_MODE_SUM = 4
    REDUCE_MODE_SUM_SQUARE = 5
    REDUCE_MODE_ASUM = 6
    REDUCE_MODE_ALL = 7


class EltwiseMode(IntEnum):
    """The operation of `Eltwise`."""

    ELTWISE_MODE_PROD = 0
    ELTWISE_MODE_SUM = 1
    ELTWISE_MODE_MAXIMUM = 2
    ELTWISE_MODE_UNKNOWN = 3


class PadMode(IntEnum):
    """The specification of a window's padding."""

    PAD_MODE_PAD = 0
    PAD_MODE_SAME = 1
    PAD_MODE_VALID = 2


class RoundMode(IntEnum):
    """The rounding of the number of windows of `AvgPoolFusion`."""

    ROUND_MODE_FLOOR = 0
    ROUND_MODE_CEIL = 1


class PaddingMode(IntEnum):
    """The values that `PadFusion` pads with."""

    PADDING_MODE_CONSTANT = 0
    PADDING_MODE_REFLECT = 1
    PADDING_MODE_SYMMETRIC = 2
    PADDING_MODE_RESERVED = 3


class SharedBuffer(msgspec.Struct, frozen=True):
    """A range of shared memory.

    Attributes:
        fd: the memory's file descriptor; -1 for none.
        bufferSize: the number of bytes of the memory.
        offset: the byte offset of the data.
        dataSize: the number of bytes of the data.
    """

    fd: Int = -1
    bufferSize: UnsignedInt = 0
    offset: UnsignedInt = 0
    dataSize: UnsignedInt = 0


class ModelConfig(msgspec.Struct, frozen=True):
    """The configuration of a model to prepare.

    Attributes:
        enableFloat16: whether float32 operations may be computed in float16.
        mode: the trade-off between speed and power.
        priority: the priority of runs.
    """

    enableFloat16: bool = False
    mode: PerformanceMode = PerformanceMode.PERFORMANCE_NONE
    priority: Priority = Priority.PRIORITY_NONE


class QuantParam(msgspec.Struct, frozen=True):
    """Quantization parameters: `real = (integer - zeroPoint) * scale`.

    Attributes:
        numBits: the integers' number of bits.
        zeroPoint: the integer that represents 0.
        scale: the difference between the reals of consecutive integers.
    """

    numBits: Int
    zeroPoint: Int
    scale: float


class IOTensor(msgspec.Struct, frozen=True):
    """An input or output of a run.

    Attributes:
        name: the name.
        dataType: the element type.
        dimensions: the shape.
        format: the memory layout of an image.
        data: the memory of the elements.
    """

    name: str
    dataType: DataType
    dimensions: tuple[Int, ...]
    format: Format
    data: SharedBuffer


class Tensor(msgspec.Struct, frozen=True):
    """A tensor of a model.

    Attributes:
        name: the name.
        dataType: the element type.
        dims: the shape, with -1 for dynamic dimensions.
        format: the memory layout of an image.
        data: the memory of a constant's elements; the descriptor is -1 for other tensors.
        quantParams: the quantization parameters, one or one per channel; empty if not
            quantized.
    """

    name: str
    dataType: DataType
    dims: tuple[Int, ...]
    format: Format = Format.FORMAT_NONE
    data: SharedBuffer = SharedBuffer()
    quantParams: tuple[QuantParam, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """An operation of a model.

    Attributes:
        name: the name.
        nodeType: the operator.
        nodeAttr: the operator's attributes, encoded by the module `attributes`.
        inputIndex: the indices of the input tensors, in the operator's order.
        outputIndex: the indices of the output tensors.
        quantType: whether it computes on quantized tensors.
    """

    name: str
    nodeType: NodeType
    nodeAttr: bytes
    inputIndex: tuple[UnsignedInt, ...]
    outputIndex: tuple[UnsignedInt, ...]
    quantType: QuantType = QuantType.QUANT_TYPE_NONE


class SubGraph(msgspec.Struct, frozen=True):
    """A subgraph of a model.

    Attributes:
        name: the name.
        inputIndices: the indices of the input tensors.
        outputIndices: the indices of the output tensors.
        nodeIndices: the indices of the nodes.
    """

    name: str
    inputIndices: tuple[UnsignedInt, ...]
    outputIndices: tuple[UnsignedInt, ...]
    nodeIndices: tuple[UnsignedInt, ...]


class Model(msgspec.Struct, frozen=True):
    """A model.

    Attributes:
        name: the name.
        inputIndex: the indices of the input tensors.
        outputIndex: the indices of the output tensors.
        nodes: the operations.
        allTensors: the tensors.
        subGraph: the subgraphs: at most one, which is the whole model.
    """

    name: str
    inputIndex: tuple[UnsignedInt, ...]
    outputIndex: tuple[UnsignedInt, ...]
    nodes: tuple[Node, ...]
    allTensors: tuple[Tensor, ...]
    subGraph: tuple[SubGraph, ...] = ()
