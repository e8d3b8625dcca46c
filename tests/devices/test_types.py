"""Element types that engines restrict for operators of every family: integers of 32 and 64 bits.

Where it is about one operator alone, the test is in the file of its family in `operators`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import SQUARE, adds

from crosschip.ir import ModelError
from crosschip.ops.standard.layout import Squeeze

if TYPE_CHECKING:
    from tests.devices.conftest import Checker


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_constants_of_uint32(check: Checker) -> None:
    """Numbers beyond int32 are right in runs, but not as constants."""
    wide = np.array([[2**32 - 1, 1]], np.uint32)
    check(lambda b, x: b.add(Squeeze, x, (0,)), wide, rankless_too=False)
    check.declines(
        lambda b, x: b.add(Squeeze, b.constant(wide), (0,)), (1,), why="constant of uint32"
    )


@pytest.mark.parametrize("name", ["MAX_POOL_2D", "TOP_K", "ARG_MAX", "SHAPE"])
def test_types_of_indices(check: Checker, name: str) -> None:
    arguments: dict[str, Any] = {
        "MAX_POOL_2D": {"kernel_shape": [1, 1], "return_indices_dtype": 1},
        "TOP_K": {"k": 1, "return_indices_dtype": 1},
        "ARG_MAX": {"axis": 0, "dtype": 1},
        "SHAPE": {"dtype": 1},
    }
    with pytest.raises(ModelError, match="neither int32 nor int64"):
        check.built(adds(name, **arguments[name]), [SQUARE], check.static)
