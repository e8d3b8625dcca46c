"""Vela, Arm's compiler for Ethos-U: what it compiles, its figures, what it leaves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from benchmarks.chips import interpreter

import crosschip
from crosschip.devices.ethosu import CHIPS, EthosUDevice
from crosschip.hal import CompileError, Options, Rule
from crosschip.ir import Builder, DeviceError, ElementType, Model, Quantization, TensorType
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.unary import Sin

INT8 = ElementType.INT8
STEPS = Quantization((0.5,), (-3,))


@pytest.fixture(scope="module")
def python() -> str:
    return interpreter("ethosu")


@pytest.fixture
def device(python: str) -> Iterator[EthosUDevice]:
    with EthosUDevice({"python": python}, "u55-256") as device:
        yield device


def network(*, real_end: bool = False) -> Model:
    """Convolve, add, and compute a sine of reals, which no Ethos-U computes."""
    b = Builder("network")
    image = b.input("image", TensorType(INT8, (1, 3, 16, 16), STEPS))
    filters = np.random.default_rng(1).integers(-127, 128, (8, 3, 3, 3)).astype(np.int8)
    weights = b.constant(filters, quantization=Quantization((0.01,) * 8, axis=0))
    y = b.add(Conv2D, image, weights, pads=(1, 1, 1, 1), quantization=STEPS)
    y = b.add(Add, y, y, quantization=STEPS)
    b.output("y", b.add(Sin, b.add(Dequantize, y)) if real_end else y)
    return b.build()


def test_answers_have_the_figures_of_vela(device: EthosUDevice) -> None:
    model = network(real_end=True)
    convolution, addition, conversion, sine = device.query(model, Options()).answers
    assert convolution
    assert addition
    assert "cycles" in convolution.detail
    assert convolution.estimate is not None
    seconds = convolution.estimate.seconds
    assert seconds is not None
    # 256 multiply-adds a cycle at 500 MHz: the least time of 8 filters of 27 on 256 pixels.
    assert 8 * 27 * 256 / 256 / 500e6 < seconds < 1e-3
    assert conversion.rule is sine.rule is Rule.OPERATOR
    assert sine.reason == "SIN: stays on the processor: Unsupported opType (SIN)"


def test_a_larger_chip_takes_fewer_cycles(python: str) -> None:
    cycles = []
    for chip in ("u55-32", "u55-256", "u85-2048"):
        with EthosUDevice({"python": python}, chip) as device:
            answer = device.query(network(), Options()).answers[0]
            cycles.append(int(answer.detail.split(" cycles")[0]))
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[0] > 2 * cycles[1]


def test_a_program_is_saved_and_does_not_run(device: EthosUDevice) -> None:
    model = network()
    program = device.compile(model, Options())
    saved = program.save()
    assert saved is not None
    assert b"model_vela.tflite" in saved
    loaded = device.load(saved, model, Options())
    for each in (program, loaded):
        with pytest.raises(DeviceError, match="does not run here"):
            each.run([np.zeros((1, 3, 16, 16), np.int8)])
        each.close()


def test_what_vela_leaves_to_the_processor_is_not_compiled(device: EthosUDevice) -> None:
    with pytest.raises(CompileError, match="SIN: stays on the processor") as raised:
        device.compile(network(real_end=True), Options())
    names = {operation.name for operation in network(real_end=True).operations[2:]}
    assert raised.value.operations == names


def test_other_devices_run_the_rest(device: EthosUDevice) -> None:
    with crosschip.compile(network(real_end=True), [device, "reference"], cache=False) as compiled:
        devices = [decision.device for decision in compiled.placement.decisions]
    assert devices == ["ethosu", "ethosu", "reference", "reference"]


def test_each_chip_is_an_instance(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_ETHOSU_PYTHON", python)
    instances = EthosUDevice.probe()
    assert [instance.name for instance in instances] == list(CHIPS)
    assert all(instance.simulated for instance in instances)
