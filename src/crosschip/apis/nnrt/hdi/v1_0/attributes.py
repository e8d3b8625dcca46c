"""The attributes of nodes, with the document's names, and their bytes in `Node.nodeAttr`.

The bytes are one MessagePack map for each structure, from a field's name to its value. How
OpenHarmony lays these structures out in a parcel is not public, so its own bytes cannot be read.
A field that is missing has the value that changes nothing; a field that the structure does not
have, or of another type, is refused. No bytes at all are the structure of a node without fields,
and for other nodes what a caller sends that could not say them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.apis.nnrt.hdi.v1_0.types import (
    ActivationType,
    CoordinateTransformMode,
    EltwiseMode,
    Format,
    Long,
    NearestMode,
    NodeType,
    PaddingMode,
    PadMode,
    ReduceMode,
    ResizeMethod,
    RoundMode,
)


class Attributes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the attributes of nodes."""


class Activation(Attributes, frozen=True):
    """The attributes of activations.

    `alpha` is of ELU and LEAKY_RELU, `minVal` and `maxVal` are of HARD_TANH, `maxVal` is of
    THRESHOLDRELU too, and `approximate` of GELU.
    """

    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION
    alpha: float = 0.0
    minVal: float = 0.0
    maxVal: float = 0.0
    approximate: bool = False


class AddFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ADD_FUSION`."""

    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class ArgMaxFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ARGMAX_FUSION`."""

    axis: Long = 0
    topK: Long = 1
    keepDims: bool = False
    outMaxValue: bool = False


class AvgPoolFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_AVGPOOL_FUSION`."""

    kernelSize: tuple[Long, ...] = ()
    strides: tuple[Long, ...] = ()
    pad: tuple[Long, ...] = ()
    padMode: PadMode = PadMode.PAD_MODE_PAD
    roundMode: RoundMode = RoundMode.ROUND_MODE_FLOOR
    format: Format = Format.FORMAT_NONE
    global_: bool = msgspec.field(default=False, name="global")
    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class BatchToSpaceND(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_BATCH_TO_SPACE_ND`."""

    blockShape: tuple[Long, ...] = ()
    crops: tuple[tuple[Long, ...], ...] = ()


class BiasAdd(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_BIAS_ADD`: none."""


class Cast(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_CAST`: none."""


class Concat(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_CONCAT`."""

    axis: Long = 0


class Conv2DFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_CONV2D_FUSION`."""

    kernelSize: tuple[Long, ...] = ()
    stride: tuple[Long, ...] = ()
    dilation: tuple[Long, ...] = ()
    padMode: PadMode = PadMode.PAD_MODE_PAD
    padList: tuple[Long, ...] = ()
    group: Long = 1
    inChannel: Long = 0
    outChannel: Long = 0
    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class Conv2dTransposeFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_CONV2D_TRANSPOSE_FUSION`."""

    kernelSize: tuple[Long, ...] = ()
    stride: tuple[Long, ...] = ()
    dilation: tuple[Long, ...] = ()
    padMode: PadMode = PadMode.PAD_MODE_PAD
    padList: tuple[Long, ...] = ()
    group: Long = 1
    inChannel: Long = 0
    outChannel: Long = 0
    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION
    outputPaddings: tuple[Long, ...] = ()


class DivFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_DIV_FUSION`."""

    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class Eltwise(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ELTWISE`."""

    mode: EltwiseMode = EltwiseMode.ELTWISE_MODE_UNKNOWN


class ExpandDims(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_EXPAND_DIMS`: none."""


class Fill(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_FILL`: none."""


class FullConnection(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_FULL_CONNECTION`."""

    hasBias: bool = False
    useAxis: bool = False
    axis: Long = 0
    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class FusedBatchNorm(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_FUSED_BATCH_NORM`."""

    epsilon: float = 0.0


class Gather(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_GATHER`: none."""


class LayerNormFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LAYER_NORM_FUSION`."""

    beginNormAxis: Long = 0
    epsilon: float = 0.0
    elementwiseAffine: bool = False
    beginParamsAxis: Long = 0


class LessEqual(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LESS_EQUAL`: none."""


class MatMulFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_MATMUL_FUSION`."""

    transposeA: bool = False
    transposeB: bool = False
    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class Maximum(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_MAXIMUM`: none."""


class MaxPoolFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_MAX_POOL_FUSION`."""

    kernelSize: tuple[Long, ...] = ()
    strides: tuple[Long, ...] = ()
    pad: tuple[Long, ...] = ()
    padMode: PadMode = PadMode.PAD_MODE_PAD
    format: Format = Format.FORMAT_NONE
    global_: bool = msgspec.field(default=False, name="global")
    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class MulFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_MUL_FUSION`."""

    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class OneHot(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ONE_HOT`."""

    axis: Long = 0


class PadFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_PAD_FUSION`."""

    paddings: tuple[tuple[Long, ...], ...] = ()
    paddingMode: PaddingMode = PaddingMode.PADDING_MODE_CONSTANT
    constantValue: float = 0.0


class PowFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_POW_FUSION`."""

    scale: float = 1.0
    shift: float = 0.0


class PReLUFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_PRELU_FUSION`."""

    channelShared: bool = False


class QuantDTypeCast(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_QUANT_DTYPE_CAST`."""

    srcT: Long = 0
    dstT: Long = 0


class ReduceFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_REDUCE_FUSION`."""

    keepDims: bool = False
    mode: ReduceMode = ReduceMode.REDUCE_MODE_MEAN
    reduceToEnd: bool = False
    coeff: float = 1.0


class Reshape(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_RESHAPE`: none."""


class Resize(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_RESIZE`."""

    method: ResizeMethod = ResizeMethod.RESIZE_METHOD_UNKNOWN
    newHeight: Long = 0
    newWidth: Long = 0
    preserveAspectRatio: bool = False
    coordinateTransformMode: CoordinateTransformMode = (
        CoordinateTransformMode.COORDINATE_TRANSFORM_MODE_ASYMMETRIC
    )
    cubicCoeff: float = -0.75
    excludeOutside: Long = 0
    extrapolationValue: float = 0.0
    nearestMode: NearestMode = NearestMode.NEAREST_MODE_NORMAL


class Rsqrt(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_RSQRT`: none."""


class ScaleFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SCALE_FUSION`."""

    axis: Long = 0
    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class Shape(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SHAPE`: none."""


class SliceFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SLICE_FUSION`."""

    axes: tuple[Long, ...] = ()


class Softmax(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SOFTMAX`."""

    axis: tuple[Long, ...] = ()


class SpaceToBatchND(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SPACE_TO_BATCH_ND`."""

    blockShape: tuple[Long, ...] = ()
    paddings: tuple[tuple[Long, ...], ...] = ()


class Split(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SPLIT`."""

    outputNum: Long = 0
    sizeSplits: tuple[Long, ...] = ()
    axis: Long = 0


class Sqrt(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SQRT`: none."""


class SquaredDifference(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SQUARED_DIFFERENCE`: none."""


class Squeeze(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SQUEEZE`."""

    axis: tuple[Long, ...] = ()


class Stack(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_STACK`."""

    axis: Long = 0


class StridedSlice(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_STRIDED_SLICE`."""

    beginMask: Long = 0
    endMask: Long = 0
    ellipsisMask: Long = 0
    newAxisMask: Long = 0
    shrinkAxisMask: Long = 0


class SubFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SUB_FUSION`."""

    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class TileFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_TILE_FUSION`."""

    dims: tuple[Long, ...] = ()


class TopKFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_TOPK_FUSION`."""

    sorted: bool = True
    axis: Long = 0


class Transpose(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_TRANSPOSE`: none."""


class Unsqueeze(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_UNSQUEEZE`."""

    axis: tuple[Long, ...] = ()


ATTRIBUTES: Mapping[int, type[Attributes]] = {
    NodeType.NODE_TYPE_ACTIVATION: Activation,
    NodeType.NODE_TYPE_ADD_FUSION: AddFusion,
    NodeType.NODE_TYPE_ARGMAX_FUSION: ArgMaxFusion,
    NodeType.NODE_TYPE_AVGPOOL_FUSION: AvgPoolFusion,
    NodeType.NODE_TYPE_BATCH_TO_SPACE_ND: BatchToSpaceND,
    NodeType.NODE_TYPE_BIAS_ADD: BiasAdd,
    NodeType.NODE_TYPE_CAST: Cast,
    NodeType.NODE_TYPE_CONCAT: Concat,
    NodeType.NODE_TYPE_CONV2D_FUSION: Conv2DFusion,
    NodeType.NODE_TYPE_CONV2D_TRANSPOSE_FUSION: Conv2dTransposeFusion,
    NodeType.NODE_TYPE_DIV_FUSION: DivFusion,
    NodeType.NODE_TYPE_ELTWISE: Eltwise,
    NodeType.NODE_TYPE_EXPAND_DIMS: ExpandDims,
    NodeType.NODE_TYPE_FILL: Fill,
    NodeType.NODE_TYPE_FULL_CONNECTION: FullConnection,
    NodeType.NODE_TYPE_FUSED_BATCH_NORM: FusedBatchNorm,
    NodeType.NODE_TYPE_GATHER: Gather,
    NodeType.NODE_TYPE_LAYER_NORM_FUSION: LayerNormFusion,
    NodeType.NODE_TYPE_LESS_EQUAL: LessEqual,
    NodeType.NODE_TYPE_MATMUL_FUSION: MatMulFusion,
    NodeType.NODE_TYPE_MAXIMUM: Maximum,
    NodeType.NODE_TYPE_MAX_POOL_FUSION: MaxPoolFusion,
    NodeType.NODE_TYPE_MUL_FUSION: MulFusion,
    NodeType.NODE_TYPE_ONE_HOT: OneHot,
    NodeType.NODE_TYPE_PAD_FUSION: PadFusion,
    NodeType.NODE_TYPE_POW_FUSION: PowFusion,
    NodeType.NODE_TYPE_PRELU_FUSION: PReLUFusion,
    NodeType.NODE_TYPE_QUANT_DTYPE_CAST: QuantDTypeCast,
    NodeType.NODE_TYPE_REDUCE_FUSION: ReduceFusion,
    NodeType.NODE_TYPE_RESHAPE: Reshape,
    NodeType.NODE_TYPE_RESIZE: Resize,
    NodeType.NODE_TYPE_RSQRT: Rsqrt,
    NodeType.NODE_TYPE_SCALE_FUSION: ScaleFusion,
    NodeType.NODE_TYPE_SHAPE: Shape,
    NodeType.NODE_TYPE_SLICE_FUSION: SliceFusion,
    NodeType.NODE_TYPE_SOFTMAX: Softmax,
    NodeType.NODE_TYPE_SPACE_TO_BATCH_ND: SpaceToBatchND,
    NodeType.NODE_TYPE_SPLIT: Split,
    NodeType.NODE_TYPE_SQRT: Sqrt,
    NodeType.NODE_TYPE_SQUARED_DIFFERENCE: SquaredDifference,
    NodeType.NODE_TYPE_SQUEEZE: Squeeze,
    NodeType.NODE_TYPE_STACK: Stack,
    NodeType.NODE_TYPE_STRIDED_SLICE: StridedSlice,
    NodeType.NODE_TYPE_SUB_FUSION: SubFusion,
    NodeType.NODE_TYPE_TILE_FUSION: TileFusion,
    NodeType.NODE_TYPE_TOPK_FUSION: TopKFusion,
    NodeType.NODE_TYPE_TRANSPOSE: Transpose,
    NodeType.NODE_TYPE_UNSQUEEZE: Unsqueeze,
}
"""The structure of each node's attributes."""


def encoded(attributes: Attributes) -> bytes:
    """Return the bytes of attributes."""
    return _ENCODER.encode(attributes)


def decoded(
    node_type: int, encoded: bytes, structures: Mapping[int, type[Attributes]] = ATTRIBUTES
) -> Any:
    """Return the attributes of a node.

    Args:
        node_type: its operator.
        encoded: the bytes.
        structures: the structure of each operator's attributes.

    Raises:
        HdiError: they are not those of the operator's structure.
    """
    structure = structures.get(node_type)
    if structure is None:
        raise HdiError(ReturnCode.HDF_ERR_NOT_SUPPORT, f"there is no operator {node_type!r}")
    if not encoded and not structure.__struct_fields__:
        return structure()
    try:
        return _decoder(structure).decode(encoded)
    except (msgspec.MsgspecError, OverflowError) as error:
        raise HdiError(
            ReturnCode.HDF_ERR_INVALID_PARAM, f"nodeAttr is no {structure.__name__}: {error}"
        ) from None


_ENCODER = msgspec.msgpack.Encoder()


@cache
def _decoder(structure: type[Attributes]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(structure)
