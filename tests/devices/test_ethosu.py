"""The Ethos-U device without its compiler; tests/chips has tests with it."""

from __future__ import annotations

import sys

import pytest

from crosschip.devices.ethosu import EthosUDevice
from crosschip.ir import DeviceError


def test_a_chip_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(DeviceError, match="no chip 'u99-1', only u55-32, "):
        EthosUDevice(instance="u99-1")


def test_without_vela_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_ETHOSU_PYTHON", sys.executable)
    (instance,) = EthosUDevice.probe()
    assert instance.problem.startswith("ethos-u-vela is not installed; pip install it")
    with pytest.raises(DeviceError, match="ethos-u-vela must be installed"):
        EthosUDevice()
