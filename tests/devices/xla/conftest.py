"""The device of the tests in this folder: the processor, or the value of `CROSSCHIP_XLA`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

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
    """Compare the device with the reference device."""
    return Checker(device)


class Once:
    """A check of models with static shapes."""

    def __init__(self, check: Checker) -> None:
        self._check = check

    def __call__(self, build: Any, *inputs: Any, tolerance: float = 1e-5) -> None:
        self._check(build, *inputs, tolerance=tolerance, symbolic_too=False, rankless_too=False)


@pytest.fixture(scope="session")
def once(check: Checker) -> Once:
    return Once(check)
