"""Breaking the rules of element by element operators is refused, with the slot named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Builder, DeviceError, ElementType, ModelError, Operand, TensorType
from crosschip.ops.standard.activation import LogSoftmax, PRelu, Sigmoid
from crosschip.ops.standard.arithmetic import (
    BiasAdd,
    Clip,
    FloorDiv,
    Mod,
    Scale,
    SquaredDifference,
    Sum,
)
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.logical import And, BitShift, BitwiseAnd, BitwiseNot, Not, Where
from crosschip.ops.standard.unary import Floor, IsNaN


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


INT, BOOL = np.int32, np.bool_

# With an input of shape [3, 5].
BROKEN: list[tuple[Callable[[Builder, Operand], Operand], str]] = [
    (lambda b, x: b.add(PRelu, x, ones(3)), r"PRELU.slope: its shape \[3\] cannot be broadcast"),
    (lambda b, x: b.add(PRelu, x, ones(2, 3, 5)), r"PRELU.slope: its shape \[2, 3, 5\]"),
    (lambda b, x: b.add(PRelu, ones(1, 5), x), r"PRELU.slope: its shape \[3, 5\]"),
    (lambda b, x: b.add(PRelu, x, ones(5, dtype=INT)), "PRELU.slope: is int32, but must be float"),
    (lambda b, x: b.add(BiasAdd, x, ones(3)), "BIAS_ADD.bias: .* 5 and 3 differ"),
    (lambda b, x: b.add(BiasAdd, x, ones(5), 2), r"BIAS_ADD.axis: 2 is not in \[-2, 2\)"),
    (lambda b, x: b.add(BiasAdd, x, ones(1, 5)), "BIAS_ADD.bias: has 2 axes, not 1"),
    (lambda b, x: b.add(BiasAdd, ones(), ones(1)), r"BIAS_ADD.axis: -1 is not in \[-0, 0\)"),
    (lambda b, x: b.add(Scale, x, ones(5)), "SCALE.axis: is required"),
    (lambda b, x: b.add(Scale, x, ones(5), axis=0), "SCALE.scale: .* 3 and 5 differ"),
    (lambda b, x: b.add(Scale, x, ones(5, 1), axis=1), "SCALE.scale: has 2 axes, but .* has 1"),
    (lambda b, x: b.add(Scale, x, ones(5), ones(1), axis=1), "SCALE.bias: .* 5 and 1 differ"),
    (lambda b, x: b.add(Clip, x, np.nan), "CLIP.min: NaN bounds nothing"),
    (lambda b, x: b.add(Clip, x, max=(1.0, 2.0)), "CLIP.max: takes one value"),
    (lambda b, x: b.add(Clip, ones(2, dtype=BOOL)), "CLIP.input: takes .* not bool"),
    (lambda b, x: b.add(Sum, []), "SUM.terms: is required"),
    (lambda b, x: b.add(Sum, [x, b.constant(ones(4))]), "SUM.terms: shapes .* 5 meets 4"),
    (lambda b, x: b.add(Sum, [x, b.constant(ones(5, dtype=INT))]), "SUM.terms: is int32"),
    (lambda b, x: b.add(SquaredDifference, x, ones(4)), "SQUARED_DIFFERENCE.input1: shapes"),
    (lambda b, x: b.add(FloorDiv, x, ones(5, dtype=INT)), "FLOOR_DIV.input1: is int32"),
    (lambda b, x: b.add(Mod, x, x, (True, False)), "MOD.fmod: takes one value"),
    (lambda b, x: b.add(Mod, ones(1, dtype=BOOL), x), "MOD.input0: takes .* not bool"),
    (lambda b, x: b.add(Floor, ones(2, dtype=INT)), "FLOOR.input: takes .* not int32"),
    (lambda b, x: b.add(Sigmoid, ones(2, dtype=INT)), "SIGMOID.input: takes .* not int32"),
    (lambda b, x: b.add(IsNaN, ones(2, dtype=INT)), "IS_NAN.input: takes .* not int32"),
    (lambda b, x: b.add(LogSoftmax, x, -3), r"LOG_SOFTMAX.axis: -3 is not in \[-2, 2\)"),
    (lambda b, x: b.add(LogSoftmax, ones(), 0), r"LOG_SOFTMAX.axis: 0 is not in \[-0, 0\)"),
    (lambda b, x: b.add(Equal, x, ones(5, dtype=np.float64)), "EQUAL.input1: is float64"),
    (lambda b, x: b.add(Less, ones(1, dtype=ml_dtypes.int4), x), "LESS.input0: takes .* not int4"),
    (lambda b, x: b.add(And, x, x), "AND.input0: takes bool, not float32"),
    (lambda b, x: b.add(Not, x), "NOT.input: takes bool, not float32"),
    (lambda b, x: b.add(Where, x, x, x), "WHERE.condition: takes bool, not float32"),
    (lambda b, x: b.add(Where, ones(1, dtype=BOOL), x, ones(1, dtype=INT)), "WHERE.input1: is int"),
    (lambda b, x: b.add(Where, ones(4, dtype=BOOL), x, x), "WHERE.*: shapes .* 4 meets 5"),
    (lambda b, x: b.add(BitwiseAnd, x, x), "BITWISE_AND.input0: takes .* not float32"),
    (lambda b, x: b.add(BitwiseNot, ones(1, dtype=BOOL)), "BITWISE_NOT.input: takes .* not bool"),
    (
        lambda b, x: b.add(BitShift, ones(1, dtype=INT), ones(1, dtype=INT), 2),
        "BIT_SHIFT.direction: 2 is not a valid ShiftDirection",
    ),
]


@pytest.mark.parametrize(("build", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_a_broken_rule_is_named(build: Callable[[Builder, Operand], Operand], message: str) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (3, 5)))
    with pytest.raises(ModelError, match=message):
        build(b, x)
    assert not b.build().operations


def test_a_computed_bound_that_is_no_number_is_refused() -> None:
    b = Builder()
    x, low = (b.input(name, TensorType(ElementType.FLOAT32, (1,))) for name in "xl")
    b.output("y", b.add(Clip, x, low))
    program = ReferenceProgram(b.build())
    assert program.run([ones(1), 2 * ones(1)])[0] == 2
    with pytest.raises(DeviceError, match="NaN bounds nothing"):
        program.run([ones(1), np.nan * ones(1)])
