"""That names, values and fields are the document's, which are written out here once more."""

from __future__ import annotations

import enum

import msgspec
import pytest

from crosschip.apis.nnrt.hdi.v1_0 import attributes, types
from crosschip.apis.nnrt.hdi.v1_0.attributes import ATTRIBUTES, decode, encode
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.apis.nnrt.hdi.v1_0.types import NodeType

ENUMERATIONS = """
DeviceType: OTHER 0 CPU 1 GPU 2 ACCELERATOR 3
DeviceStatus: AVAILABLE 0 BUSY 1 OFFLINE 2 UNKNOWN 3
PerformanceMode PERFORMANCE: NONE 0 LOW 1 MEDIUM 2 HIGH 3 EXTREME 4
Priority PRIORITY: NONE 0 LOW 1 MEDIUM 2 HIGH 3
Format FORMAT: NONE -1 NCHW 0 NHWC 1
DataType DATA_TYPE: UNKNOWN 0 BOOL 30 INT8 32 INT16 33 INT32 34 INT64 35 UINT8 37 UINT16 38
 UINT32 39 UINT64 40 FLOAT16 42 FLOAT32 43 FLOAT64 44
QuantType QUANT_TYPE: NONE 0 ALL 1
NodeType NODE_TYPE: NONE 0 ACTIVATION 2 ADD_FUSION 5 ARGMAX_FUSION 11 AVGPOOL_FUSION 17
 BATCH_TO_SPACE_ND 22 BIAS_ADD 23 CAST 28 CONCAT 31 CONV2D_FUSION 35 CONV2D_TRANSPOSE_FUSION 36
 DIV_FUSION 47 ELTWISE 52 EXPAND_DIMS 56 FILL 66 FULL_CONNECTION 67 FUSED_BATCH_NORM 68 GATHER 69
 LAYER_NORM_FUSION 75 LESS_EQUAL 78 MATMUL_FUSION 89 MAXIMUM 90 MAX_POOL_FUSION 92 MUL_FUSION 99
 ONE_HOT 105 PAD_FUSION 107 POW_FUSION 110 PRELU_FUSION 112 QUANT_DTYPE_CAST 113
 REDUCE_FUSION 118 RESHAPE 119 RESIZE 120 RSQRT 126 SCALE_FUSION 127 SHAPE 130 SLICE_FUSION 135
 SOFTMAX 138 SPACE_TO_BATCH_ND 141 SPLIT 145 SQRT 146 SQUEEZE 147 SQUARED_DIFFERENCE 149 STACK 150
 STRIDED_SLICE 151 SUB_FUSION 152 TILE_FUSION 160 TOPK_FUSION 161 TRANSPOSE 162 UNSQUEEZE 165
ResizeMethod RESIZE_METHOD: UNKNOWN -1 LINEAR 0 NEAREST 1 CUBIC 2
CoordinateTransformMode COORDINATE_TRANSFORM_MODE: ASYMMETRIC 0 ALIGN_CORNERS 1 HALF_PIXEL 2
NearestMode NEAREST_MODE: NORMAL 0 ROUND_HALF_DOWN 1 ROUND_HALF_UP 2 FLOOR 3 CEIL 4
ActivationType ACTIVATION_TYPE: NO_ACTIVATION 0 RELU 1 SIGMOID 2 RELU6 3 ELU 4 LEAKY_RELU 5 ABS 6
 RELU1 7 SOFTSIGN 8 SOFTPLUS 9 TANH 10 SELU 11 HSWISH 12 HSIGMOID 13 THRESHOLDRELU 14 LINEAR 15
 HARD_TANH 16 SIGN 17 SWISH 18 GELU 19 UNKNOWN 20
ReduceMode REDUCE_MODE: MEAN 0 MAX 1 MIN 2 PROD 3 SUM 4 SUM_SQUARE 5 ASUM 6 ALL 7
EltwiseMode ELTWISE_MODE: PROD 0 SUM 1 MAXIMUM 2 UNKNOWN 3
PadMode PAD_MODE: PAD 0 SAME 1 VALID 2
RoundMode ROUND_MODE: FLOOR 0 CEIL 1
PaddingMode PADDING_MODE: CONSTANT 0 REFLECT 1 SYMMETRIC 2 RESERVED 3
"""

STRUCTURES = """
SharedBuffer: fd bufferSize offset dataSize
ModelConfig: enableFloat16 mode priority
QuantParam: numBits zeroPoint scale
IOTensor: name dataType dimensions format data
Tensor: name dataType dims format data quantParams
Node: name nodeType nodeAttr inputIndex outputIndex quantType
SubGraph: name inputIndices outputIndices nodeIndices
Model: name inputIndex outputIndex nodes allTensors subGraph
"""

FIELDS = """
Activation: activationType alpha minVal maxVal approximate
AddFusion: activationType
ArgMaxFusion: axis topK keepDims outMaxValue
AvgPoolFusion: kernelSize strides pad padMode roundMode format global activationType
BatchToSpaceND: blockShape crops
BiasAdd:
Cast:
Concat: axis
Conv2DFusion: kernelSize stride dilation padMode padList group inChannel outChannel activationType
Conv2dTransposeFusion: kernelSize stride dilation padMode padList group inChannel outChannel
 activationType outputPaddings
DivFusion: activationType
Eltwise: mode
ExpandDims:
Fill:
FullConnection: hasBias useAxis axis activationType
FusedBatchNorm: epsilon
Gather:
LayerNormFusion: beginNormAxis epsilon elementwiseAffine beginParamsAxis
LessEqual:
MatMulFusion: transposeA transposeB activationType
Maximum:
MaxPoolFusion: kernelSize strides pad padMode format global activationType
MulFusion: activationType
OneHot: axis
PadFusion: paddings paddingMode constantValue
PowFusion: scale shift
PReLUFusion: channelShared
QuantDTypeCast: srcT dstT
ReduceFusion: keepDims mode reduceToEnd coeff
Reshape:
Resize: method newHeight newWidth preserveAspectRatio coordinateTransformMode cubicCoeff
 excludeOutside extrapolationValue nearestMode
Rsqrt:
ScaleFusion: axis activationType
Shape:
SliceFusion: axes
Softmax: axis
SpaceToBatchND: blockShape paddings
Split: outputNum sizeSplits axis
Sqrt:
SquaredDifference:
Squeeze: axis
Stack: axis
StridedSlice: beginMask endMask ellipsisMask newAxisMask shrinkAxisMask
SubFusion: activationType
TileFusion: dims
TopKFusion: sorted axis
Transpose:
Unsqueeze: axis
"""


def listed(text: str) -> dict[str, list[str]]:
    lines = text.replace("\n ", " ").strip().splitlines()
    return {head: rest.split() for head, _, rest in (line.partition(":") for line in lines)}


def test_enumerations() -> None:
    known = {
        name: {one.name: one.value for one in found}
        for name, found in vars(types).items()
        if isinstance(found, enum.EnumType) and issubclass(found, enum.IntEnum)
    }
    known.pop("IntEnum")
    wanted = {}
    for head, words in listed(ENUMERATIONS).items():
        name, _, prefix = head.partition(" ")
        pairs = zip(words[::2], map(int, words[1::2]), strict=True)
        wanted[name] = {f"{prefix}_{word}" if prefix else word: value for word, value in pairs}
    assert known == wanted


def test_structures() -> None:
    for name, fields in listed(STRUCTURES).items():
        assert list(getattr(types, name).__struct_fields__) == fields
    for name, fields in listed(FIELDS).items():
        own = msgspec.structs.fields(getattr(attributes, name))
        assert [field.encode_name for field in own] == fields
    assert [one.__name__ for one in ATTRIBUTES.values()] == list(listed(FIELDS))
    assert sorted(ATTRIBUTES) == [one for one in NodeType if one]


@pytest.mark.parametrize("node_type", ATTRIBUTES)
def test_attributes_are_read_as_they_are_written(node_type: NodeType) -> None:
    structure = ATTRIBUTES[node_type]
    changed = {
        field.encode_name: _another(field.default) for field in msgspec.structs.fields(structure)
    }
    one = msgspec.convert(changed, structure)
    assert decode(node_type, encode(one)) == one
    assert msgspec.msgpack.decode(encode(one)) == changed


def _another(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return value + 0.5
    return [] if value == () else 1


BAD = {
    "an unknown field": {"activationType": 0, "more": 1},
    "an unknown number": {"activationType": 21},
    "another type": {"activationType": "RELU"},
    "a real": {"activationType": 0.5},
    "a list": [0],
    "nothing": None,
}


@pytest.mark.parametrize("bad", BAD)
def test_attributes_that_are_not_the_structures_are_refused(bad: str) -> None:
    with pytest.raises(HdiError, match="nodeAttr is no AddFusion") as caught:
        decode(NodeType.NODE_TYPE_ADD_FUSION, msgspec.msgpack.encode(BAD[bad]))
    assert caught.value.code is ReturnCode.HDF_ERR_INVALID_PARAM


def test_attributes_that_are_cut_off_or_out_of_range_are_refused() -> None:
    whole = encode(attributes.Concat(3))
    for bad in (b"", whole[:-1], whole + b"\0", b"\xff" * 9):
        with pytest.raises(HdiError):
            decode(NodeType.NODE_TYPE_CONCAT, bad)
    for axis in (2**63, -(2**63) - 1):
        with pytest.raises((HdiError, OverflowError)):
            decode(NodeType.NODE_TYPE_CONCAT, msgspec.msgpack.encode({"axis": axis}))
    with pytest.raises(HdiError, match=r"there is no operator .*NODE_TYPE_NONE") as caught:
        decode(NodeType.NODE_TYPE_NONE, b"")
    assert caught.value.code is ReturnCode.HDF_ERR_NOT_SUPPORT


def test_no_bytes_are_the_attributes_of_a_node_without_any() -> None:
    assert decode(NodeType.NODE_TYPE_SQRT, b"") == attributes.Sqrt()
