"""The device of the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crosschip.devices.litert import LitertDevice
from crosschip.hal import Device


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    with LitertDevice() as opened:
        yield opened
