"""Recognition of HARD_SIGMOID in a linear function clipped to [0, 1]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Builder, ElementType, Model, Operand, Quantization, TensorType, symbol
from crosschip.ops.standard.arithmetic import Add, Clip, Mul
from crosschip.passes import COMPOSITES, Recognize, verified

Line = Callable[[Builder, Operand], Operand]
TYPE = TensorType(ElementType.FLOAT32, (symbol("n"), 3))


def model_of(line: Line, type_: TensorType = TYPE) -> Model:
    b = Builder("line")
    b.output("y", line(b, b.input("x", type_)))
    return b.build()


def types(model: Model) -> list[str]:
    return [operation.type for operation in model.operations]


def scalar(number: float) -> np.ndarray:
    return np.array(number, np.float32)


FUSED: dict[str, Line] = {
    "plain": lambda b, x: b.add(Clip, b.add(Add, b.add(Mul, x, scalar(0.2)), scalar(0.5)), 0, 1),
    "turned": lambda b, x: b.add(
        Clip,
        b.add(Add, b.constant(scalar(-0.5)), b.add(Mul, b.constant(scalar(-2)), x)),
        0.0,
        1.0,
    ),
    "one element": lambda b, x: b.add(
        Clip,
        b.add(Add, b.add(Mul, x, np.array([0.2], np.float32)), np.array([[0.5]], np.float32)),
        0,
        1,
    ),
}


@pytest.mark.parametrize("name", FUSED)
def test_a_line_becomes_one_operation(name: str) -> None:
    model = model_of(FUSED[name])
    with verified():
        made = Recognize(COMPOSITES)(model)
    assert types(made) == ["HARD_SIGMOID"]
    x = np.array([[np.nan, np.inf, -np.inf], [-3, 0, 1.3], [0.1, 0.7, 9]], np.float32)
    (found,), (wanted,) = (ReferenceProgram(each).run([x]) for each in (made, model))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def line(b: Builder, x: Operand, *, slope: object = scalar(0.2), high: float = 1) -> Operand:
    return b.add(Clip, b.add(Add, b.add(Mul, x, slope), scalar(0.5)), 0, high)


def read_twice(b: Builder, x: Operand) -> Operand:
    scaled = b.add(Mul, x, scalar(0.2))
    return b.add(Add, b.add(Clip, b.add(Add, scaled, scalar(0.5)), 0, 1), scaled)


OTHERS: dict[str, Line] = {
    "another bound": lambda b, x: line(b, x, high=6),
    "a slope for each column": lambda b, x: line(b, x, slope=np.array([1, 2, 3], np.float32)),
    "a slope that adds an axis": lambda b, x: line(b, x, slope=np.full((1, 1, 1), 0.2, np.float32)),
    "a computed slope": lambda b, x: line(b, x, slope=x),
    "read twice": read_twice,
    "no sum": lambda b, x: b.add(Clip, b.add(Mul, x, scalar(0.2)), 0, 1),
    "a fused activation": lambda b, x: b.add(
        Clip, b.add(Add, b.add(Mul, x, scalar(0.2)), scalar(0.5), fuse_code=1), 0, 1
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name: str) -> None:
    model = model_of(OTHERS[name])
    with verified():
        assert Recognize(COMPOSITES)(model) is model


def test_integers_and_quantized_numbers_stay() -> None:
    whole = model_of(
        lambda b, x: b.add(Clip, b.add(Add, b.add(Mul, x, np.int32(2)), np.int32(1)), 0, 1),
        TensorType(ElementType.INT32, (3,)),
    )
    stored = TensorType(ElementType.INT8, (3,), Quantization((0.1,)))
    quantized = model_of(lambda b, x: b.add(Clip, b.add(Mul, x, x), 0, 1), stored)
    for model in (whole, quantized):
        assert Recognize(COMPOSITES)(model) is model
