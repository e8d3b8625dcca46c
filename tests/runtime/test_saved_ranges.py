"""Inputs beyond a device's range, where the compiled model comes from a file."""

from __future__ import annotations

import numpy as np
import pytest
from tests.modelling import model_of

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal.conditions import OutOfRange
from crosschip.ir import Builder, ElementType, Operand, TensorType
from crosschip.ops.standard.arithmetic import Add

WIDE = {"x0": np.array([2**40, 1, 2])}


@pytest.fixture
def saved() -> bytes:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Add, x, b.constant(np.array([1], np.int64)))

    model = model_of(make, TensorType(ElementType.INT64, (3,)))
    with crosschip.compile(model, ["openvino"], cache=False) as compiled:
        return compiled.to_bytes()


@pytest.mark.slow
def test_they_go_to_a_device_that_is_given_besides(saved: bytes) -> None:
    with (
        ReferenceDevice() as device,
        crosschip.load_compiled(saved, devices=[device]) as compiled,
    ):
        np.testing.assert_array_equal(compiled.run(WIDE)["y0"], WIDE["x0"] + 1)
        assert {d.device for d in compiled.placement.decisions} == {"openvino"}


@pytest.mark.slow
def test_without_one_the_error_names_the_input_and_what_to_add(saved: bytes) -> None:
    told = (
        r"input 'x0': 1099511627776 is not from .*no other device executes this run: "
        r".*add a device that does"
    )
    with (
        crosschip.load_compiled(saved) as compiled,
        pytest.raises(OutOfRange, match=told),
    ):
        compiled.run(WIDE)
