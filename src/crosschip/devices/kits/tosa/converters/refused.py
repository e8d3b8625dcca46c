"""Operators that TOSA 1.0 does not express, with the reasons."""

from __future__ import annotations

from crosschip.devices.kits.tosa.converters.table import converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ops import Operator
from crosschip.ops.standard.cached_attention import GroupQueryAttention
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.conversion import BitCast
from crosschip.ops.standard.detection import DetectionPostProcess
from crosschip.ops.standard.searching import NonZero, Unique
from crosschip.ops.standard.suppression import (
    NonMaxSuppression,
    NonMaxSuppressionIndices,
    PolygonNonMaxSuppression,
)

_DEPENDS_ON_DATA = "the number of results depends on data, and TOSA's shapes are constant"
_REASONS: dict[type[Operator], str] = {
    Assert: "TOSA has no operator that fails depending on data",
    DetectionPostProcess: "boxes are suppressed one by one, in an order that depends on data",
    GroupQueryAttention: "the length of the keys depends on data, and TOSA's shapes are constant",
    BitCast: "TOSA has no operator that reads the bits of another type",
    NonZero: _DEPENDS_ON_DATA,
    NonMaxSuppression: _DEPENDS_ON_DATA,
    NonMaxSuppressionIndices: _DEPENDS_ON_DATA,
    PolygonNonMaxSuppression: _DEPENDS_ON_DATA,
    Unique: _DEPENDS_ON_DATA,
}


def _refuse(operator: type[Operator], reason: str) -> None:
    def limit(op: Operator) -> Refusal:
        return Refusal("", reason, Rule.OPERATOR)

    @converts(operator, limit=limit)
    def convert(g: Graph, op: Operator) -> None:
        raise AssertionError("operations are refused before they are converted")


for _operator, _reason in _REASONS.items():
    _refuse(_operator, _reason)
