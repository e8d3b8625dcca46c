"""Devices.

Those that were to be measured, and why others are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from benchmarks.subject import Column, Row
from gpu.settings import Settings

from crosschip.ir import DeviceError
from crosschip.runtime.discovery import open_device

REQUIREMENT = ""
SHARE = 0.03
PER_DEVICE = True


@dataclass(frozen=True)
class Device(Row):
    """One device."""

    name: Annotated[str, Column("device")]
    version: Annotated[str, Column("version")]
    reason: Annotated[str, Column("why it is left out")]

    @property
    def met(self) -> bool | None:
        return None


def measure(device: str, settings: Settings) -> Iterator[Row | str]:
    """Open the device."""
    try:
        yield Device(device, open_device(device).version, "")
    except DeviceError as error:
        yield Device(device, "", str(error))
