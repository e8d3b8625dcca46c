"""Functions about devices."""

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
    """Return the numbers of all devices that can be used."""
    return list(devices())


@returns_value
def OH_NNDevice_GetName(deviceID: int) -> str:
    """Return the name that crosschip gives a device."""
    try:
        return name_of(deviceID)
    except Failure as error:
        raise Failure(Code.OH_NN_FAILED, str(error)) from None


@returns_value
def OH_NNDevice_GetType(deviceID: int) -> OH_NN_DeviceType:
    """Return the sort of hardware that a device is."""
    name = name_of(deviceID)
    return next(_TYPES[instance.kind] for known, instance in instances() if known == name)


_known: dict[int, str] = {}
"""The devices that could be used when they were looked for last; to look takes milliseconds."""


def devices() -> dict[int, str]:
    """Return the devices that can be used, by number: always the same one for the same name."""
    global _known
    _known = {
        int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") + 1: name
        for name, instance in instances()
        if not instance.problem
    }
    return _known


def name_of(number: int) -> str:
    """Return the name that crosschip gives a device; 0 stands for the first.

    Raises:
        Failure: there is none of that number.
    """
    name = _numbered(_known, number) or _numbered(devices(), number)
    if name is None:
        raise invalid(f"there is no device {number!r}")
    return name


def _numbered(known: Mapping[int, str], number: int) -> str | None:
    return known.get(number) if number else next(iter(known.values()), None)
