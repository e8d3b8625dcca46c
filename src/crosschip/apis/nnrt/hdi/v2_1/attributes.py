"""The attributes of the nodes that versions 2.0 and 2.1 add or extend."""

from __future__ import annotations

from crosschip.apis.nnrt.hdi.v1_0 import attributes
from crosschip.apis.nnrt.hdi.v1_0.attributes import Attributes, structures_of
from crosschip.apis.nnrt.hdi.v1_0.types import ActivationType, Format, Long, RoundMode
from crosschip.apis.nnrt.hdi.v2_1.types import NodeType, ReduceMode


class MaxPoolFusion(attributes.MaxPoolFusion, frozen=True):
    """The attributes of `NODE_TYPE_MAX_POOL_FUSION`, with a rounding since 2.0."""

    roundMode: RoundMode = RoundMode.ROUND_MODE_FLOOR


class ReduceFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_REDUCE_FUSION`, with another mode."""

    keepDims: bool = False
    mode: ReduceMode = ReduceMode.REDUCE_MODE_MEAN
    reduceToEnd: bool = False
    coeff: float = 1.0


class Abs(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ABS`: none."""


class All(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ALL`."""

    keepDims: Long = 0


class Assert(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ASSERT`."""

    summarize: Long = 0


class BroadcastTo(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_BROADCAST_TO`."""

    shape: tuple[Long, ...] = ()


class Ceil(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_CEIL`: none."""


class Clip(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_CLIP`."""

    max: float = 0.0
    min: float = 0.0


class Cos(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_COS`: none."""


class ConstantOfShape(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_CONSTANT_OF_SHAPE`."""

    dataType: Long = 0
    value: tuple[float, ...] = ()


class Crop(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_CROP`."""

    axis: Long = 0
    offset: tuple[Long, ...] = ()


class DetectionPostProcess(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_DETECTION_POST_PROCESS`."""

    format: Format = Format.FORMAT_NONE
    inputSize: Long = 0
    scale: tuple[float, ...] = ()
    nmsIoUThreshold: float = 0.0
    nmsScoreThreshold: float = 0.0
    maxDetections: Long = 0
    detectionsPerClass: Long = 0
    maxClassesPerDetection: Long = 0
    numClasses: Long = 0
    useRegularNms: bool = False
    outQuantized: bool = False


class DepthToSpace(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_DEPTH_TO_SPACE`."""

    blockSize: Long = 0
    format: Format = Format.FORMAT_NONE
    mode: str = "DCR"


class Equal(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_EQUAL`: none."""


class ExpFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_EXPFUSION`."""

    base: float = -1.0
    scale: float = 1.0
    shift: float = 0.0


class Flatten(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_FLATTEN`."""

    axis: Long = 0


class Floor(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_FLOOR`: none."""


class Greater(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_GREATER`: none."""


class GreaterEqual(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_GREATER_EQUAL`: none."""


class InstanceNorm(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_INSTANCE_NORM`."""

    epsilon: float = 0.0


class LeakyRelu(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LEAKY_RELU`."""

    negativeSlope: float = 0.0


class Less(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LESS`: none."""


class Log(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LOG`: none."""


class LogicalAnd(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LOGICAL_AND`: none."""


class LogicalNot(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LOGICAL_NOT`: none."""


class LogicalOr(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LOGICAL_OR`: none."""


class LRN(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LRN`."""

    depthRadius: Long = 0
    bias: float = 0.0
    alpha: float = 0.0
    beta: float = 0.0
    normRegion: str = "ACROSS_CHANNELS"


class L2NormalizeFusion(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_L2_NORMALIZE_FUSION`."""

    axis: tuple[Long, ...] = ()
    epsilon: float = 0.0
    activationType: ActivationType = ActivationType.ACTIVATION_TYPE_NO_ACTIVATION


class LSTM(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LSTM`."""

    bidirectional: bool = False
    hasBias: bool = False
    inputSize: Long = 0
    hiddenSize: Long = 0
    numLayers: Long = 0
    numDirections: Long = 0
    dropout: float = 0.0
    zoneoutCell: float = 0.0
    zoneoutHidden: float = 0.0
    projSize: Long = 0


class Minimum(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_MINIMUM`: none."""


class Mod(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_MOD`: none."""


class Neg(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_NEG`: none."""


class NotEqual(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_NOT_EQUAL`: none."""


class Rank(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_RANK`: none."""


class Range(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_RANGE`."""

    dataType: Long = 0
    start: Long = 0
    limit: Long = 0
    delta: Long = 1


class Reciprocal(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_RECIPROCAL`: none."""


class RealDiv(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_REAL_DIV`: none."""


class Round(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ROUND`: none."""


class ScatterNd(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SCATTER_ND`: none."""


class Sin(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SIN`: none."""


class SpaceToDepth(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SPACE_TO_DEPTH`."""

    blockSize: Long = 0
    format: Format = Format.FORMAT_NONE


class SparseToDense(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SPARSE_TO_DENSE`: none."""


class Square(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SQUARE`: none."""


class Unstack(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_UNSTACK`."""

    axis: Long = 0


class Where(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_WHERE`: none."""


class Select(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_SELECT`: none."""


class Erf(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_ERF`: none."""


class LogSoftmax(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_LOG_SOFTMAX`."""

    axis: Long = 0


class GatherNd(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_GATHER_ND`: none."""


class QuantDTypeCastV2(Attributes, frozen=True):
    """The attributes of `NODE_TYPE_QUANT_DTYPE_CAST_V2`."""

    srcT: Long = 0
    dstT: Long = 0
    axis: Long = 0


ATTRIBUTES = structures_of(NodeType, {**vars(attributes), **globals()})
"""The structure of each node's attributes."""
