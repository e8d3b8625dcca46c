"""Functions about NNAdapter itself, and about devices."""

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
    """A device's description of itself.

    Attributes:
        vendor: who makes it.
        kind: the sort of hardware.
        version: a number that grows with the version of what does the work.
    """

    vendor: str
    kind: NNAdapterDeviceCode
    version: int


class NNAdapterDevice(Handle):
    """A device that a program has acquired.

    Attributes:
        name: the name by which it was.
        device: what crosschip calls it.
        facts: what it says of itself.
    """

    def __init__(self, name: str, device: str, facts: Facts) -> None:
        super().__init__()
        self.name = name
        self.device = device
        self.facts = facts


@returns_value
def NNAdapter_getVersion() -> int:
    """The version of NNAdapter's interface."""
    return NNADAPTER_VERSION


@returns_value
def NNAdapter_getDeviceCount() -> int:
    """The number of devices that can be acquired here, under crosschip's names."""
    return sum(not instance.problem for _, instance in instances())


@returns_value
def NNAdapterDevice_acquire(name: str) -> NNAdapterDevice:
    """Get a device by NNAdapter's name for it or crosschip's own.

    It is loaded when it is first asked for, and stays so until the process ends.
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
    """Give a device back; contexts that were made with it stay. `None` is nothing to release."""
    if device is not None:
        live(device, NNAdapterDevice).destroy()


@returns_value
def NNAdapterDevice_getName(device: NNAdapterDevice) -> str:
    """The name by which a device was acquired."""
    return live(device, NNAdapterDevice).name


@returns_value
def NNAdapterDevice_getVendor(device: NNAdapterDevice) -> str:
    """The maker of a device."""
    return live(device, NNAdapterDevice).facts.vendor


@returns_value
def NNAdapterDevice_getType(device: NNAdapterDevice) -> NNAdapterDeviceCode:
    """The sort of hardware that a device is."""
    return live(device, NNAdapterDevice).facts.kind


@returns_value
def NNAdapterDevice_getVersion(device: NNAdapterDevice) -> int:
    """The version of what does a device's work: of `2026.4.1`, 20260401."""
    return live(device, NNAdapterDevice).facts.version


@cache
def _facts(name: str) -> Facts:
    """A device's description of itself; asked for once in a process, unless it fails."""
    with open_device(name) as device:
        return Facts(device.vendor, _KINDS[device.kind], number_of(device.version))


def number_of(version: str) -> int:
    """The first three numbers of a version as one of 32 bits, each of the later two up to 99."""
    major, minor, patch = ([int(part) for part in re.findall(r"\d+", version)[:3]] + [0, 0, 0])[:3]
    return min(major * 10000 + min(minor, 99) * 100 + min(patch, 99), 2**31 - 1)
