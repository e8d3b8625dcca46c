"""What transformers are made of on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.devices.checks import Example, adds, claimed_example

from crosschip.ir import ElementType
from crosschip.ops.standard.attention import Attention, Causality

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

CLAIMS: dict[str, Example] = {
    "ATTENTION": (adds("ATTENTION"), ((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 6))),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, CLAIMS[name])


@pytest.mark.parametrize("causality", Causality)
@pytest.mark.parametrize("count", [1, 3, 6])
@pytest.mark.parametrize("mask", [(), (2, 1, 3, 1), (1, 4, 1, 1)], ids=str)
def test_attention(check: Checker, causality: Causality, count: int, mask: tuple[int, ...]) -> None:
    if causality is Causality.TO_LAST and count < 3:
        pytest.skip("there are queries that attend to nothing")
    shapes = [(2, 4, 3, 8), (2, 4, count, 8), (2, 4, count, 6)]
    check(
        lambda b, *given: b.add(Attention, *given, causality=causality, scale=0.5),
        *shapes,
        *([mask] if mask else []),
        symbolic_too=False,
        rankless_too=False,
    )
