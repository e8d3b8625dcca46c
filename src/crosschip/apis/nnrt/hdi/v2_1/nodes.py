"""The nodes of version 2.1: those of 1.0, and newer ones derived from NNRt's operators.

For each newer node NNRt has an operator with the same inputs, and a parameter for each attribute.
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


class _Counterpart(NamedTuple):
    """The NNRt operator that corresponds to a node.

    Attributes:
        name: the operator's name.
        attributes: the operator's parameter for each attribute.
    """

    name: str
    attributes: Mapping[str, str] = {}


_NEWER: Mapping[str, _Counterpart] = {
    "ABS": _Counterpart("ABS"),
    "ALL": _Counterpart("ALL", {"keepDims": "KEEP_DIMS"}),
    "ASSERT": _Counterpart("ASSERT", {"summarize": "SUMMARIZE"}),
    "BROADCAST_TO": _Counterpart("BROADCAST_TO", {"shape": "SHAPE"}),
    "CEIL": _Counterpart("CEIL"),
    "CLIP": _Counterpart("CLIP", {"max": "MAX", "min": "MIN"}),
    "CONSTANT_OF_SHAPE": _Counterpart(
        "CONSTANT_OF_SHAPE", {"dataType": "DATA_TYPE", "value": "VALUE"}
    ),
    "COS": _Counterpart("COS"),
    "CROP": _Counterpart("CROP", {"axis": "AXIS", "offset": "OFFSET"}),
    "DEPTH_TO_SPACE": _Counterpart("DEPTH_TO_SPACE", {"blockSize": "BLOCK_SIZE", "mode": "MODE"}),
    "DETECTION_POST_PROCESS": _Counterpart(
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
    "EQUAL": _Counterpart("EQUAL"),
    "ERF": _Counterpart("ERF"),
    "EXPFUSION": _Counterpart("EXP", {"base": "BASE", "scale": "SCALE", "shift": "SHIFT"}),
    "FLATTEN": _Counterpart("FLATTEN", {"axis": "AXIS"}),
    "FLOOR": _Counterpart("FLOOR"),
    "GATHER_ND": _Counterpart("GATHER_ND"),
    "GREATER": _Counterpart("GREATER"),
    "GREATER_EQUAL": _Counterpart("GREATER_EQUAL"),
    "INSTANCE_NORM": _Counterpart("INSTANCE_NORM", {"epsilon": "EPSILON"}),
    "L2_NORMALIZE_FUSION": _Counterpart(
        "L2_NORMALIZE",
        {"axis": "AXIS", "epsilon": "EPSILON", "activationType": "ACTIVATION_TYPE"},
    ),
    "LEAKY_RELU": _Counterpart("LEAKY_RELU", {"negativeSlope": "NEGATIVE_SLOPE"}),
    "LESS": _Counterpart("LESS"),
    "LOG": _Counterpart("LOG"),
    "LOGICAL_AND": _Counterpart("LOGICAL_AND"),
    "LOGICAL_NOT": _Counterpart("LOGICAL_NOT"),
    "LOGICAL_OR": _Counterpart("LOGICAL_OR"),
    "LOG_SOFTMAX": _Counterpart("LOG_SOFTMAX", {"axis": "AXIS"}),
    "LRN": _Counterpart(
        "LRN",
        {
            "depthRadius": "DEPTH_RADIUS",
            "bias": "BIAS",
            "alpha": "ALPHA",
            "beta": "BETA",
            "normRegion": "NORM_REGION",
        },
    ),
    "LSTM": _Counterpart(
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
    "MINIMUM": _Counterpart("MINIMUM"),
    "MOD": _Counterpart("MOD"),
    "NEG": _Counterpart("NEG"),
    "NOT_EQUAL": _Counterpart("NOT_EQUAL"),
    "RANGE": _Counterpart("RANGE", {"start": "START", "limit": "LIMIT", "delta": "DELTA"}),
    "RANK": _Counterpart("RANK"),
    "REAL_DIV": _Counterpart("DIV"),
    "RECIPROCAL": _Counterpart("RECIPROCAL"),
    "ROUND": _Counterpart("ROUND"),
    "SCATTER_ND": _Counterpart("SCATTER_ND"),
    "SELECT": _Counterpart("SELECT"),
    "SIN": _Counterpart("SIN"),
    "SPACE_TO_DEPTH": _Counterpart("SPACE_TO_DEPTH", {"blockSize": "BLOCK_SIZE"}),
    "SPARSE_TO_DENSE": _Counterpart("SPARSE_TO_DENSE"),
    "SQUARE": _Counterpart("SQUARE"),
    "UNSTACK": _Counterpart("UNSTACK", {"axis": "AXIS"}),
    "WHERE": _Counterpart("WHERE"),
}

_RULES: Mapping[tuple[str, str], Rule] = {
    ("CONSTANT_OF_SHAPE", "dataType"): ValueTypeCode(HDI_CODES[ElementType]),
    ("L2_NORMALIZE_FUSION", "activationType"): ActivationCode(),
}
"""The rules of attributes whose values differ from those of the parameters."""


def _newer(operator: type[Operator]) -> Iterator[Entry]:
    """Yield the entries of a standard operator that version 2.1 adds."""
    for name, counterpart in _NEWER.items():
        for foreign in opset_mapping(operator).nnrt:
            if foreign.name == counterpart.name:
                attribute_of = {
                    parameter: attribute for attribute, parameter in counterpart.attributes.items()
                }
                attributes = {
                    attribute_of[parameter]: _RULES.get((name, attribute_of[parameter]), rule)
                    for parameter, rule in foreign.parameters.items()
                    if parameter in attribute_of
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
