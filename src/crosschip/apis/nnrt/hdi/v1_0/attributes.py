"""The attributes of nodes, with the document's names, and their encoding in `Node.nodeAttr`.

Each structure is encoded as one MessagePack map from field names to values, because OpenHarmony's
own encoding in a parcel is not public. A missing field has its neutral default; an unknown field or
a value of the wrong type is refused. A node whose structure has no fields may have an empty
encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
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


def structures_of(
    node_types: Iterable[IntEnum], namespace: Mapping[str, object]
) -> Mapping[int, type[Attributes]]:
    """Return the class of each node's attributes: `AddFusion` for `NODE_TYPE_ADD_FUSION`."""
    codes = {
        code.name.removeprefix("NODE_TYPE_").replace("_", "").lower(): code for code in node_types
    }
    return {
        codes[name.lower()]: class_
        for name, class_ in namespace.items()
        if isinstance(class_, type) and issubclass(class_, Attributes) and class_ is not Attributes
    }


ATTRIBUTES = structures_of(NodeType, globals())
"""The structure of each node's attributes."""


def encode(attributes: Attributes) -> bytes:
    """Encode attributes."""
    return _ENCODER.encode(attributes)


def decode(
    node_type: int, encoded: bytes, structures: Mapping[int, type[Attributes]] = ATTRIBUTES
) -> Any:
    """Decode a node's attributes.

    Args:
        node_type: the node's operator.
        encoded: the encoded attributes.
        structures: the structure of each operator's attributes.

    Raises:
        HdiError: the operator is unknown, or the bytes do not encode its structure.
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
