"""The device of the tests in this folder: the processor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crosschip.hal import Device


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    pytest.importorskip("iree.runtime", reason="IREE is not installed")
    from crosschip.devices.iree import IreeDevice

    with IreeDevice() as device:
        yield device
