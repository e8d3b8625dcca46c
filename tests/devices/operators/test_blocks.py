"""Operators that move elements by blocks, on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.devices.checks import Example, claimed_example

from crosschip.ir import ElementType
from crosschip.ops.standard.blocks import (
    BatchToSpaceND,
    ChannelShuffle,
    DepthOrder,
    DepthToSpace,
    SpaceToBatchND,
    SpaceToDepth,
)

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

IMAGE = (2, 8, 4, 6)
CLAIMS: dict[str, Example] = {
    "CHANNEL_SHUFFLE": (lambda b, x: b.add(ChannelShuffle, x, 4), (IMAGE,)),
    "DEPTH_TO_SPACE DCR": (lambda b, x: b.add(DepthToSpace, x, 2), (IMAGE,)),
    "DEPTH_TO_SPACE CRD": (lambda b, x: b.add(DepthToSpace, x, 2, DepthOrder.CRD), (IMAGE,)),
    "SPACE_TO_DEPTH": (lambda b, x: b.add(SpaceToDepth, x, 2), (IMAGE,)),
    "BATCH_TO_SPACE_ND": (lambda b, x: b.add(BatchToSpaceND, x, (1, 2), (0, 1, 2, 0)), (IMAGE,)),
    "SPACE_TO_BATCH_ND": (lambda b, x: b.add(SpaceToBatchND, x, (2, 3), (1, 1, 0, 3)), (IMAGE,)),
}
DECOMPOSED = {
    "onnxruntime": {"CHANNEL_SHUFFLE", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"},
    "openvino": CLAIMS.keys() - {"CHANNEL_SHUFFLE"},
}
"""The examples that engines leave to others."""


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    claims = claimed_example(check, CLAIMS[name])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])
