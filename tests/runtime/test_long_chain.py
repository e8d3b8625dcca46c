"""Size does not matter: the whole road with 100,000 operations."""

from __future__ import annotations

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, float32, model_of

import crosschip
from crosschip.ir import Builder, Operand, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.conversion import Assign

MANY = 100_000


@pytest.mark.slow
def test_a_hundred_thousand_operations_are_placed_compiled_and_run() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(MANY // 100):
            for _ in range(98):
                x = b.add(Relu, x)
            x = b.add(Tanh, b.add(Assign, x))
        return x

    devices = [DelegatingDevice(name="a", declines=["TANH"]), DelegatingDevice(name="b")]
    source = model_of(make, float32(symbol("N")))
    assert len(source.operations) == MANY
    with crosschip.compile(source, devices, shapes={"x0": (1,)}, cache=False) as model:
        assert model.outputs["y0"].type == float32(1)
        assert len(model.placement.segments) == 2 * MANY // 100
        assert len(model.placement.decisions) == MANY - MANY // 100
        x = np.ones(1, np.float32)
        expected = x
        for _ in range(MANY // 100):
            expected = np.tanh(expected)
        np.testing.assert_array_equal(model.run({"x0": x})["y0"], expected)
