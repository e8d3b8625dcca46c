"""Size does not matter: the whole road with 10,000 operations; nightly, with 100,000."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lanes import first_or_nightly
from tests.modelling import DelegatingDevice, float32, model_of

import crosschip
from crosschip.ir import Builder, Operand, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.conversion import Assign


@pytest.mark.slow
@pytest.mark.parametrize("count", first_or_nightly([10_000, 100_000]))
def test_any_number_of_operations_is_placed_compiled_and_run(count: int) -> None:
    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(count // 100):
            for _ in range(98):
                x = b.add(Relu, x)
            x = b.add(Tanh, b.add(Assign, x))
        return x

    devices = [DelegatingDevice(name="a", declines=["TANH"]), DelegatingDevice(name="b")]
    source = model_of(make, float32(symbol("N")))
    assert len(source.operations) == count
    with crosschip.compile(source, devices, shapes={"x0": (1,)}, cache=False) as model:
        assert model.outputs["y0"].type == float32(1)
        assert len(model.placement.segments) == 2 * count // 100
        assert len(model.placement.decisions) == count - count // 100
        x = np.ones(1, np.float32)
        expected = x
        for _ in range(count // 100):
            expected = np.tanh(expected)
        np.testing.assert_array_equal(model.run({"x0": x})["y0"], expected)
