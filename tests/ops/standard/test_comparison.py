"""Comparisons, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import of_torch, torch

from crosschip.ir import Array
from crosschip.ops import Operator
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


Function = Callable[..., Any]


COMPARISONS: dict[type[Operator], Function] = {
    Equal: torch.eq,
    NotEqual: torch.ne,
    Less: torch.lt,
    LessEqual: torch.le,
    Greater: torch.gt,
    GreaterEqual: torch.ge,
}


def operator_name(operator: type[Operator]) -> str:
    return operator.type


def integers_of(dtype: str, seed: int) -> Array:
    """Return integers of all magnitudes, the smallest and the largest first."""
    limits, random = np.iinfo(dtype), np.random.default_rng(seed)
    found = random.integers(limits.min, limits.max, 40, dtype, endpoint=True)
    found[:2] = [limits.min, limits.max]
    return found


@pytest.mark.parametrize("operator", COMPARISONS, ids=operator_name)
def test_comparisons(check: Checker, operator: type[Operator]) -> None:
    def build(b: Any, x: Any, y: Any) -> Any:
        return b.add(operator, x, y)

    like = of_torch(COMPARISONS[operator])
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1], np.float32)
    check(build, like, *np.broadcast_arrays(special, special[:, None]))
    for shapes in (((2, 1, 4), (3, 1)), ((), (2, 3)), ((0, 3), (3,))):
        check(build, like, *shapes)
    wide = np.array([2**53, 2**53 + 1, -(2**63), 2**63 - 1])
    check(build, like, *(np.ascontiguousarray(a) for a in np.broadcast_arrays(wide, wide[:, None])))
    truth = np.array([False, True])
    check(build, like, truth, truth[:, None])
    for dtype in ("int8", "uint8", "int16", "int32"):
        x, y = (np.sort(integers_of(dtype, seed)) for seed in range(2))
        check(build, like, x, np.where(x % 3 == 0, x, y))
