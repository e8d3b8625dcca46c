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
    """The numbers of all devices that can be used."""
    return list(devices())


@returns_value
def OH_NNDevice_GetName(deviceID: int) -> str:
    """The name that crosschip gives a device."""
    try:
        return name_of(deviceID)
    except Failure as error:
        raise Failure(Code.OH_NN_FAILED, str(error)) from None


@returns_value
def OH_NNDevice_GetType(deviceID: int) -> OH_NN_DeviceType:
    """The sort of hardware that a device is."""
    name = name_of(deviceID)
    return next(_TYPES[instance.kind] for known, instance in instances() if known == name)


def devices() -> dict[int, str]:
    """The devices that can be used, by number: always the same one for the same name."""
    return {
        int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") + 1: name
        for name, instance in instances()
        if not instance.problem
    }


def name_of(number: int) -> str:
    """The name that crosschip gives a device; 0 stands for the first.

    Raises:
        Failure: there is none of that number.
    """
    known = devices()
    if number == 0 and known:
        return next(iter(known.values()))
    if number not in known:
        raise invalid(f"there is no device {number!r}")
    return known[number]
