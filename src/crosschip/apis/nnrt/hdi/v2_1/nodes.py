"""The nodes of version 2.1: those of 1.0, and newer ones whose rows are those of NNRt's operators.

For a newer node NNRt has an operator with the same inputs, and for each attribute a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from crosschip.apis.nnrt.hdi.v1_0.rows import Entry, Nodes, entry_of
from crosschip.apis.nnrt.hdi.v2_1.attributes import ATTRIBUTES
from crosschip.apis.nnrt.hdi.v2_1.types import NodeType
from crosschip.ir import ElementType
from crosschip.mapping.common import HDI_CODES
from crosschip.mapping.layer_rules import ActivationCode
from crosschip.mapping.opsets import opset_mapping
from crosschip.mapping.rule import Rule
from crosschip.mapping.standard.creation import ValueTypeCode
from crosschip.mapping.standard.quantization import ScaleAxis
from crosschip.ops import Operator


class _Like(NamedTuple):
    """The operator of NNRt that a node is like.

    Attributes:
        name: the operator's name.
        attributes: for each attribute, the parameter that it is.
    """

    name: str
    attributes: Mapping[str, str] = {}


_NEWER: Mapping[str, _Like] = {
    "ABS": _Like("ABS"),
    "ALL": _Like("ALL", {"keepDims": "KEEP_DIMS"}),
    "ASSERT": _Like("ASSERT", {"summarize": "SUMMARIZE"}),
    "BROADCAST_TO": _Like("BROADCAST_TO", {"shape": "SHAPE"}),
    "CEIL": _Like("CEIL"),
    "CLIP": _Like("CLIP", {"max": "MAX", "min": "MIN"}),
    "CONSTANT_OF_SHAPE": _Like("CONSTANT_OF_SHAPE", {"dataType": "DATA_TYPE", "value": "VALUE"}),
    "COS": _Like("COS"),
    "CROP": _Like("CROP", {"axis": "AXIS", "offset": "OFFSET"}),
    "DEPTH_TO_SPACE": _Like("DEPTH_TO_SPACE", {"blockSize": "BLOCK_SIZE", "mode": "MODE"}),
    "DETECTION_POST_PROCESS": _Like(
        "DETECTION_POST_PROCESS",
        {
            "inputSize": "INPUT_SIZE",
            "scale": "SCALE",
            "nmsIoUThreshold": "NMS_IOU_THRESHOLD",
            "nmsScoreThreshold": "NMS_SCORE_THRESHOLD",
            "maxDetections": "MAX_DETECTIONS",
            "detectionsPerClass": "DETECTIONS_PER_CLASS",
            "maxClassesPerDetection": "MAX_CLASSES_PER_DETECTION",
            "numClasses": "NUM_CLASSES",
            "useRegularNms": "USE_REGULAR_NMS",
            "outQuantized": "OUT_QUANTIZED",
        },
    ),
    "EQUAL": _Like("EQUAL"),
    "ERF": _Like("ERF"),
    "EXPFUSION": _Like("EXP", {"base": "BASE", "scale": "SCALE", "shift": "SHIFT"}),
    "FLATTEN": _Like("FLATTEN", {"axis": "AXIS"}),
    "FLOOR": _Like("FLOOR"),
    "GATHER_ND": _Like("GATHER_ND"),
    "GREATER": _Like("GREATER"),
    "GREATER_EQUAL": _Like("GREATER_EQUAL"),
    "INSTANCE_NORM": _Like("INSTANCE_NORM", {"epsilon": "EPSILON"}),
    "L2_NORMALIZE_FUSION": _Like(
        "L2_NORMALIZE",
        {"axis": "AXIS", "epsilon": "EPSILON", "activationType": "ACTIVATION_TYPE"},
    ),
    "LEAKY_RELU": _Like("LEAKY_RELU", {"negativeSlope": "NEGATIVE_SLOPE"}),
    "LESS": _Like("LESS"),
    "LOG": _Like("LOG"),
    "LOGICAL_AND": _Like("LOGICAL_AND"),
    "LOGICAL_NOT": _Like("LOGICAL_NOT"),
    "LOGICAL_OR": _Like("LOGICAL_OR"),
    "LOG_SOFTMAX": _Like("LOG_SOFTMAX", {"axis": "AXIS"}),
    "LRN": _Like(
        "LRN",
        {
            "depthRadius": "DEPTH_RADIUS",
            "bias": "BIAS",
            "alpha": "ALPHA",
            "beta": "BETA",
            "normRegion": "NORM_REGION",
        },
    ),
    "LSTM": _Like(
        "LSTM",
        {
            "bidirectional": "BIDIRECTIONAL",
            "hasBias": "HAS_BIAS",
            "inputSize": "INPUT_SIZE",
            "hiddenSize": "HIDDEN_SIZE",
            "numLayers": "NUM_LAYERS",
            "numDirections": "NUM_DIRECTIONS",
            "dropout": "DROPOUT",
            "zoneoutCell": "ZONEOUT_CELL",
            "zoneoutHidden": "ZONEOUT_HIDDEN",
            "projSize": "PROJ_SIZE",
        },
    ),
    "MINIMUM": _Like("MINIMUM"),
    "MOD": _Like("MOD"),
    "NEG": _Like("NEG"),
    "NOT_EQUAL": _Like("NOT_EQUAL"),
    "RANGE": _Like("RANGE", {"start": "START", "limit": "LIMIT", "delta": "DELTA"}),
    "RANK": _Like("RANK"),
    "REAL_DIV": _Like("DIV"),
    "RECIPROCAL": _Like("RECIPROCAL"),
    "ROUND": _Like("ROUND"),
    "SCATTER_ND": _Like("SCATTER_ND"),
    "SELECT": _Like("SELECT"),
    "SIN": _Like("SIN"),
    "SPACE_TO_DEPTH": _Like("SPACE_TO_DEPTH", {"blockSize": "BLOCK_SIZE"}),
    "SPARSE_TO_DENSE": _Like("SPARSE_TO_DENSE"),
    "SQUARE": _Like("SQUARE"),
    "UNSTACK": _Like("UNSTACK", {"axis": "AXIS"}),
    "WHERE": _Like("WHERE"),
}

_RULES: Mapping[tuple[str, str], Rule] = {
    ("CONSTANT_OF_SHAPE", "dataType"): ValueTypeCode(HDI_CODES[ElementType]),
    ("L2_NORMALIZE_FUSION", "activationType"): ActivationCode(),
}
"""The rules of attributes whose numbers are not those of the parameters."""


def _newer(operator: type[Operator]) -> Iterator[Entry]:
    """The entries of an operator that version 2.1 adds."""
    for name, like in _NEWER.items():
        for foreign in opset_mapping(operator).nnrt:
            if foreign.name == like.name:
                own = {parameter: attribute for attribute, parameter in like.attributes.items()}
                attributes = {
                    own[parameter]: _RULES.get((name, own[parameter]), rule)
                    for parameter, rule in foreign.parameters.items()
                    if parameter in own
                }
                node_type = V2_1.node_type(NodeType[f"NODE_TYPE_{name}"])
                yield entry_of(operator, node_type, foreign.inputs, attributes, foreign.other_rules)
    for cast in opset_mapping(operator).hdi:
        if cast.name == "QUANT_DTYPE_CAST":
            attributes = {**cast.attributes, "axis": ScaleAxis()}
            node_type = V2_1.node_type(NodeType.NODE_TYPE_QUANT_DTYPE_CAST_V2)
            yield entry_of(operator, node_type, cast.inputs, attributes, cast.other_rules)


V2_0 = Nodes((2, 0), NodeType, ATTRIBUTES)
"""The nodes of version 2.0."""

V2_1 = Nodes((2, 1), NodeType, ATTRIBUTES, _newer)
"""The nodes of version 2.1."""
