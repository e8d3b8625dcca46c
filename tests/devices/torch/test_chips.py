"""Instances of the device, and a chip that registers itself with PyTorch in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.modelling import python_path

from crosschip.devices.torch import TorchDevice, chips
from crosschip.hal import Kind, Options
from crosschip.ir import Builder, DeviceError, ElementType, TensorType
from crosschip.ops.standard.activation import Softmax
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.matrix import MatMul


def test_listing_devices_does_not_import_pytorch() -> None:
    program = "import sys; from crosschip.devices.torch import TorchDevice; "
    program += "assert TorchDevice.probe()[-1].name == 'cpu'; assert 'torch' not in sys.modules"
    environment = {**os.environ, "PYTHONPATH": python_path()}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_a_chip_that_is_not_there() -> None:
    for name in ("cuda:7", "nothing:0"):
        with pytest.raises(DeviceError, match=f"torch has no chip '{name}' here"):
            TorchDevice({}, name)
    with pytest.raises(DeviceError, match="compile: 'always' is not one of off, auto, on"):
        TorchDevice({"compile": "always"})


@pytest.mark.parametrize(
    ("build", "package", "node", "names"),
    [
        ("cu130", "", "nvidia1", ["cuda:0", "cuda:1", "cpu"]),
        ("cpu", "", "nvidia1", ["cpu"]),
        ("xpu", "", "dri/renderD129", ["xpu:0", "xpu:1", "cpu"]),
        ("cpu", "torch_npu", "davinci1", ["npu:0", "npu:1", "cpu"]),
    ],
)
def test_chips_of_the_machine(
    build: str,
    package: str,
    node: str,
    names: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those whose nodes are there, and for which PyTorch is built or has a package."""
    for number in (0, 1):
        path = tmp_path / f"{node[:-1]}{number if '9' not in node else number + 8}"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    monkeypatch.setattr(chips, "Path", lambda _: tmp_path)
    monkeypatch.setattr(chips, "version", lambda _: f"2.13.0+{build}")
    monkeypatch.setattr(chips, "find_spec", lambda name: name in ("torch", package) or None)
    instances = chips.of_machine()
    assert [instance.name for instance in instances] == names
    assert [instance.kind for instance in instances][-1] is Kind.CPU


def test_a_chip_that_registers_itself() -> None:
    """In a process of its own, since PyTorch has one such chip a process."""
    program = f"from {__name__} import run_on_own_chip; run_on_own_chip()"
    environment = {**os.environ, "PYTHONPATH": python_path()}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def run_on_own_chip() -> None:
    """Run a model on the chip of `own_chip`, with arrays and with buffers."""
    from tests.devices.torch import own_chip

    own_chip.register()
    assert [instance.name for instance in TorchDevice.probe()] == ["own:0", "cpu"]
    random = np.random.default_rng(0)
    weights, x = (random.normal(size=(rows, 8)).astype(np.float32) for rows in (8, 4))
    b = Builder()
    rows = b.input("x", TensorType(ElementType.FLOAT32, (4, 8)))
    places = b.constant(np.array([3, -4]))
    b.output("y", b.add(Softmax, b.add(MatMul, b.add(Gather, rows, places), weights)))
    product = x[[3, 0]] @ weights
    powers = np.exp(product - product.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    with TorchDevice({}, "own:0") as device:
        program = device.compile(b.build(), Options(threads=1))
        np.testing.assert_allclose(program.run([x])[0], expected, rtol=1e-5, atol=1e-6)
        given = device.allocate(ElementType.FLOAT32, (4, 8))
        given.write(x)
        submission = program.submit([given], [], [])
        assert submission.event.wait(60)
        np.testing.assert_allclose(submission.outputs[0].array(), expected, rtol=1e-5, atol=1e-6)
    assert any("mm" in call for call in own_chip.CALLS)
