"""NNAdapter's functions for its version and for devices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from crosschip.apis.nnadapter.drivers import DRIVERS
from crosschip.apis.nnadapter.enumerations import NNADAPTER_VERSION, NNAdapterDeviceCode
from crosschip.apis.nnadapter.enumerations import NNAdapterResultCode as Code
from crosschip.apis.nnadapter.results import (
    Failure,
    Handle,
    invalid,
    live,
    returns_nothing,
    returns_value,
)
from crosschip.hal import Kind
from crosschip.ir import DeviceError
from crosschip.runtime.discovery import instances, open_device

_KINDS: Mapping[Kind, NNAdapterDeviceCode] = {
    Kind.CPU: NNAdapterDeviceCode.NNADAPTER_CPU,
    Kind.GPU: NNAdapterDeviceCode.NNADAPTER_GPU,
    Kind.ACCELERATOR: NNAdapterDeviceCode.NNADAPTER_ACCELERATOR,
}


class Facts(NamedTuple):
    """A device's description.

    Attributes:
        vendor: the vendor.
        kind: the kind of hardware.
        version: the engine's version as an integer.
    """

    vendor: str
    kind: NNAdapterDeviceCode
    version: int


class NNAdapterDevice(Handle):
    """A device that a program has acquired.

    Attributes:
        name: the name under which it was acquired.
        device: crosschip's name of the device.
        facts: the device's description.
    """

    def __init__(self, name: str, device: str, facts: Facts) -> None:
        super().__init__()
        self.name = name
        self.device = device
        self.facts = facts


@returns_value
def NNAdapter_getVersion() -> int:
    """Return the version of NNAdapter's interface."""
    return NNADAPTER_VERSION


@returns_value
def NNAdapter_getDeviceCount() -> int:
    """Return the number of usable devices, which can be acquired by crosschip's names."""
    return sum(not instance.problem for _, instance in instances())


@returns_value
def NNAdapterDevice_acquire(name: str) -> NNAdapterDevice:
    """Acquire a device by NNAdapter's or crosschip's name.

    The device is loaded on its first acquisition and stays loaded until the process ends.
    """
    if not isinstance(name, str) or not name:
        raise invalid(f"the name of a device is {name!r}")
    driver = DRIVERS.get(name)
    device = driver.device if driver is not None and driver.device else name
    try:
        return NNAdapterDevice(name, device, _facts(device))
    except DeviceError as error:
        text = str(error)
        if driver is not None and not driver.device:
            text = f"{name} drives {driver.hardware}, for which crosschip has no device: {text}"
        raise Failure(Code.NNADAPTER_DEVICE_NOT_FOUND, text) from error


@returns_nothing
def NNAdapterDevice_release(device: NNAdapterDevice | None) -> None:
    """Release a device; contexts created with it remain valid. `None` is ignored."""
    if device is not None:
        live(device, NNAdapterDevice).destroy()


@returns_value
def NNAdapterDevice_getName(device: NNAdapterDevice) -> str:
    """Return the name under which a device was acquired."""
    return live(device, NNAdapterDevice).name


@returns_value
def NNAdapterDevice_getVendor(device: NNAdapterDevice) -> str:
    """Return a device's vendor."""
    return live(device, NNAdapterDevice).facts.vendor


@returns_value
def NNAdapterDevice_getType(device: NNAdapterDevice) -> NNAdapterDeviceCode:
    """Return a device's kind of hardware."""
    return live(device, NNAdapterDevice).facts.kind


@returns_value
def NNAdapterDevice_getVersion(device: NNAdapterDevice) -> int:
    """Return the version of a device's engine: 20260401 for `2026.4.1`."""
    return live(device, NNAdapterDevice).facts.version


@cache
def _facts(name: str) -> Facts:
    """Return a device's description, cached unless querying it fails."""
    with open_device(name) as device:
        return Facts(device.vendor, _KINDS[device.kind], number_of(device.version))


def number_of(version: str) -> int:
    """Return a version's first three numbers as one 32-bit integer, the latter two capped at 99."""
    major, minor, patch = ([int(part) for part in re.findall(r"\d+", version)[:3]] + [0, 0, 0])[:3]
    return min(major * 10000 + min(minor, 99) * 100 + min(patch, 99), 2**31 - 1)
