"""Element types that engines restrict for operators of every family: integers of 32 and 64 bits.

Where it is about one operator alone, the test is in the file of its family in `operators`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import SQUARE, adds

from crosschip.ir import ElementType, ModelError
from crosschip.ops.standard.arithmetic import Add, Max, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Reshape, Squeeze
from crosschip.ops.standard.reduction import ReduceProd

if TYPE_CHECKING:
    from tests.devices.conftest import Checker


def test_int64_on_openvino_is_for_sizes(check: Checker) -> None:
    wide, square = np.array([2**31]), np.zeros((2, 2), np.int64)
    if check.device.name == "openvino":
        check.declines(lambda b, x: b.add(Add, x, x), square, why="sizes of shapes only")
        check.declines(lambda b, x: b.add(Max, x, x), square, why="lists of sizes only")
        check.declines(lambda b, x: b.add(Reshape, x, (2, 2)), np.zeros(4, np.int64), why="output")
        check.declines(lambda b, x: b.add(Max, x, wide), np.zeros(1, np.int64), why="input1")
        # Numbers that fit in int32 make one that does not.
        for operator in (Add, Sub, Mul):
            check.declines(lambda b, x, o=operator: b.add(o, x, x), wide // 2, why="input0")
        check.declines(lambda b, x: b.add(ReduceProd, x), wide // 2, why="input")
        held = np.full(9, 20)
        check.declines(lambda b, x: b.add(ReduceProd, b.constant(held)), (3,), why="output")
        check(
            lambda b, x: b.add(Mul, b.add(ShapeOf, x), np.array([2, 3])),
            (3, 4),
            rankless_too=False,
        )
        check.declines(
            lambda b, x: b.add(Cast, x, ElementType.INT64), (3,), why="computed in int32"
        )
    else:
        check(lambda b, x: b.add(Add, x, x), wide)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_constants_of_uint32(check: Checker) -> None:
    """Numbers beyond int32 stay what they are in a run, but not in a constant."""
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
