"""The Rockchip device without its compiler; tests/chips has tests with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosschip.devices import rockchip
from crosschip.devices.rockchip import RockchipDevice
from crosschip.devices.rockchip.limits import limit
from crosschip.hal import Rule
from crosschip.ir import Builder, DeviceError, ElementType, Operation, Quantization, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Clip, Pow
from crosschip.ops.standard.comparison import Greater
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.rearranging import ReverseSequence
from crosschip.ops.standard.unary import Exp, Floor

REAL = ElementType.FLOAT32


def of(b: Builder) -> Operation:
    return b.operations[-1]


def refused(operation: Operation, slot: str, rule: Rule) -> None:
    found = limit(operation)
    assert found is not None
    assert (found.slot, found.rule) == (slot, rule)


def test_a_platform_that_the_compiler_does_not_know_is_an_error() -> None:
    with pytest.raises(DeviceError, match="platform is 'rk9999', but must be one of rk3588, "):
        RockchipDevice({"platform": "rk9999"})


def test_without_the_compiler_the_device_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CROSSCHIP_ROCKCHIP_PYTHON", "/nowhere/bin/python")
    (instance,) = RockchipDevice.probe()
    assert instance.simulated
    assert instance.description == "the simulator of rknn-toolkit2"
    assert "rknn-toolkit2 is not installed" in instance.problem


@pytest.mark.parametrize(
    ("tree", "chip"),
    [
        (b"radxa,rock-5b\0rockchip,rk3588\0", "rk3588"),
        (b"friendlyelec,nanopi-r5s\0rockchip,rk3568\0", "rk3568"),
        (b"luckfox,pico\0rockchip,rv1103b\0", "rv1103b"),
        (b"raspberrypi,5-model-b\0brcm,bcm2712\0", ""),
    ],
)
def test_a_chip_is_known_by_the_device_tree(
    tree: bytes, chip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "compatible"
    file.write_bytes(tree)
    monkeypatch.setattr(rockchip, "_DEVICE_TREE", file)
    (instance,) = RockchipDevice.probe()
    assert instance.simulated is (not chip)
    assert instance.description == (
        f"the NPU of {chip}" if chip else "the simulator of rknn-toolkit2"
    )


def test_tensors_without_axes_or_elements_are_declined() -> None:
    b = Builder()
    b.add(Relu, b.input("x", TensorType(REAL, ())))
    refused(of(b), "input", Rule.SHAPE)
    b.add(Relu, b.input("y", TensorType(REAL, (2, 0))))
    refused(of(b), "input", Rule.SHAPE)
    b.add(Relu, b.input("z", TensorType(REAL, (2, 1))))
    assert limit(of(b)) is None


def test_powers_that_widen_their_base_are_declined() -> None:
    b = Builder()
    base = b.input("x", TensorType(REAL, (2, 1, 4)))
    b.add(Pow, base, b.input("y", TensorType(REAL, (3, 1))))
    refused(of(b), "input0", Rule.SHAPE)
    b.add(Pow, base, np.array([2], np.float32))
    assert limit(of(b)) is None


@pytest.mark.parametrize(("lengths", "taken"), [((4, 0, 2), False), ((4, 1, 2), True)])
def test_sequences_of_no_elements_are_not_reversed(lengths: tuple[int, ...], taken: bool) -> None:
    b = Builder()
    x = b.input("x", TensorType(REAL, (4, 3)))
    b.add(ReverseSequence, x, np.array(lengths), time_axis=0, batch_axis=1)
    if taken:
        assert limit(of(b)) is None
    else:
        refused(of(b), "lengths", Rule.VALUE)


@pytest.mark.parametrize("element_type", [ElementType.INT32, ElementType.INT64])
def test_integers_are_not_bounded(element_type: ElementType) -> None:
    b = Builder()
    b.add(Clip, b.input("x", TensorType(element_type, (3,))), -1, 1)
    refused(of(b), "input", Rule.ELEMENT_TYPE)
    b.add(Clip, b.input("y", TensorType(REAL, (3,))), -1, 1)
    assert limit(of(b)) is None


def test_what_has_scales_along_an_axis_is_not_moved() -> None:
    b = Builder()
    by_axis = TensorType(ElementType.INT8, (2, 3), Quantization((0.5, 0.25, 0.1), (0, 0, 0), 1))
    b.add(Transpose, b.input("x", by_axis), (1, 0))
    refused(of(b), "input", Rule.QUANTIZATION)
    alike = TensorType(ElementType.INT8, (2, 3), Quantization((0.5,)))
    b.add(Transpose, b.input("y", alike), (1, 0))
    assert limit(of(b)) is None


@pytest.mark.parametrize("operator", [Exp, Floor])
def test_where_a_step_more_is_too_far_nothing_quantized_is_taken(operator: type[Operator]) -> None:
    b = Builder()
    stored = TensorType(ElementType.INT8, (3,), Quantization((0.5,)))
    b.add(operator, b.input("x", stored), quantization=Quantization((0.5,)))
    refused(of(b), "input", Rule.QUANTIZATION)
    b.add(Cast, b.input("y", stored), ElementType.INT64)
    refused(of(b), "input", Rule.QUANTIZATION)
    b.add(Greater, b.input("v", stored), b.input("w", stored))
    refused(of(b), "input0", Rule.QUANTIZATION)
    b.add(operator, b.input("z", TensorType(REAL, (3,))))
    assert limit(of(b)) is None
