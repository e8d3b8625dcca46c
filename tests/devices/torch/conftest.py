"""The device of the tests in this folder: the processor, or the value of `CROSSCHIP_TORCH`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.devices.conftest import Checker

from crosschip.devices.torch import TorchDevice
from crosschip.hal import Device

CHIP = os.environ.get("CROSSCHIP_TORCH", "cpu")
"""An instance of the device, such as `cuda:0`."""


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    with TorchDevice({}, CHIP) as opened:
        opened.name = f"torch:{CHIP}"
        yield opened


@pytest.fixture(scope="session")
def check(device: Device) -> Checker:
    """Compare the device with the reference device."""
    return Checker(device)
