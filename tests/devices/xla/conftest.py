"""The device whose tests are in this folder: the processor, or what `CROSSCHIP_XLA` names."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.devices.conftest import Checker

from crosschip.devices.xla import XlaDevice
from crosschip.hal import Device

CHIP = os.environ.get("CROSSCHIP_XLA", "cpu")
"""An instance of the device, such as `gpu:0`."""


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    with XlaDevice({}, CHIP) as made:
        made.name = f"xla:{CHIP}"
        yield made


@pytest.fixture(scope="session")
def check(device: Device) -> Checker:
    """Compares the device with the reference device."""
    return Checker(device)
