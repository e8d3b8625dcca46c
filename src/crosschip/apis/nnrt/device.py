"""NNRt's functions for devices."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from crosschip.apis.nnrt.enumerations import OH_NN_DeviceType
from crosschip.apis.nnrt.enumerations import OH_NN_ReturnCode as Code
from crosschip.apis.nnrt.results import Failure, invalid, returns_value
from crosschip.hal import Kind
from crosschip.runtime.discovery import instances

_TYPES: Mapping[Kind, OH_NN_DeviceType] = {
    Kind.CPU: OH_NN_DeviceType.OH_NN_CPU,
    Kind.GPU: OH_NN_DeviceType.OH_NN_GPU,
    Kind.ACCELERATOR: OH_NN_DeviceType.OH_NN_ACCELERATOR,
}


@returns_value
def OH_NNDevice_GetAllDevicesID() -> list[int]:
    """Return the numbers of all usable devices."""
    return list(devices())


@returns_value
def OH_NNDevice_GetName(deviceID: int) -> str:
    """Return crosschip's name of a device."""
    try:
        return name_of(deviceID)
    except Failure as error:
        raise Failure(Code.OH_NN_FAILED, str(error)) from None


@returns_value
def OH_NNDevice_GetType(deviceID: int) -> OH_NN_DeviceType:
    """Return a device's kind of hardware."""
    name = name_of(deviceID)
    return next(_TYPES[instance.kind] for other, instance in instances() if other == name)


_devices: dict[int, str] = {}
"""The usable devices when they were last listed, which takes milliseconds."""


def devices() -> dict[int, str]:
    """List the usable devices by number, which is a hash of the name; preferred ones come first."""
    global _devices
    _devices = {
        int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") + 1: name
        for name, instance in sorted(instances(), key=lambda item: not item[1].preferred)
        if not instance.problem
    }
    return _devices


def name_of(number: int) -> str:
    """Return crosschip's name of a device; 0 is the first device.

    Raises:
        Failure: no device has this number.
    """
    name = _lookup(_devices, number) or _lookup(devices(), number)
    if name is None:
        raise invalid(f"there is no device {number!r}")
    return name


def _lookup(names: Mapping[int, str], number: int) -> str | None:
    return names.get(number) if number else next(iter(names.values()), None)
