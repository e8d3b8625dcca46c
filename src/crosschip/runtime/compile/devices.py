"""The devices that a caller of `compile` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Literal

from crosschip.hal import Device, Offer, Options, Rule, Support
from crosschip.ir import InputError, Model, Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ir.suggestion import did_you_mean
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.runtime.configuration import Properties
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.discovery import (
    base_name,
    driver_name,
    open_automatic,
    open_device,
    settings_of,
)
from crosschip.runtime.guard.devices import GuardedDevice

Devices = Literal["auto"] | str | Sequence[str | Device]
"""Names, also with commas in one text; instances; or `"auto"`."""


def open_devices(
    devices: Devices,
    properties: Properties,
    required_properties: Properties,
    owned: ExitStack,
    *,
    isolate: bool,
) -> dict[str, GuardedDevice]:
    """Open devices by name, in order.

    Args:
        devices: the caller's names or devices.
        properties: properties of devices.
        required_properties: properties that must belong to devices opened here.
        owned: closes the devices opened here.
        isolate: whether to open devices in driver processes.

    Raises:
        InputError: an argument is invalid, or there are properties for other devices.
        DeviceError: a device cannot be opened.
    """
    opened: dict[str, GuardedDevice] = {}
    if devices == "auto":
        for device in open_automatic(properties, isolate=isolate):
            opened[device.name] = owned.enter_context(device)
        devices = ()
    elif isinstance(devices, str):
        devices = [name.strip() for name in devices.split(",")]
    if not isinstance(devices, Sequence) or not all(isinstance(d, str | Device) for d in devices):
        raise InputError(
            f"devices is {devices!r}, but must be names of devices or instances, or 'auto'"
        )
    for named in devices:
        if isinstance(named, Device):
            if isolate and "@" not in named.name:
                raise InputError(
                    f"device {named.name!r} is in this process already; isolate needs its name"
                )
            device = GuardedDevice(named, named.name)
            if device.name in required_properties:
                raise InputError(
                    f"device {device.name!r} was made with its properties; there are others"
                )
        else:
            name = driver_name(named) if isolate else named
            device = owned.enter_context(open_device(name, settings_of(name, properties)))
        if device.name in opened:
            raise InputError(f"device {device.name!r} is given twice")
        if device.name == RUNTIME:
            raise InputError(f"no device can be called {RUNTIME!r}: that runs control flow itself")
        opened[device.name] = device
    if not opened:
        raise InputError("no devices were given; name at least one (see `crosschip devices`)")
    device_names = {*opened, *map(base_name, opened)}
    for name in required_properties:
        if name not in device_names:
            near = did_you_mean(name, opened)
            raise InputError(
                f"there are properties for {name!r}, which is not among the devices{near}"
            )
    return opened


class KernelHost(GuardedDevice):
    """The reference device restricted to custom operators."""

    def query(self, model: Model, options: Options) -> Offer:
        offer = super().query(model, options)
        answers = [
            answer if isinstance(operation, PackagedOperator) else _kernels_only(operation)
            for operation, answer in zip(model.operations, offer.answers, strict=True)
        ]
        return Offer(answers, offer.groups)


def kernel_host(
    model: Model, opened: Mapping[str, GuardedDevice], owned: ExitStack, *, isolate: bool
) -> dict[str, GuardedDevice]:
    """Return the device for kernels of custom operators, if it is needed and not opened yet.

    A custom operator runs on a device that has a converter for it or runs its decomposition;
    otherwise its kernel runs on the host.

    Args:
        model: the model.
        opened: the devices that the caller named.
        owned: closes the device.
        isolate: whether to open the device in a driver process.
    """
    if any(base_name(name) == _KERNEL_DEVICE for name in opened):
        return {}
    packaged = (o for o in walk_operations(model) if isinstance(o, PackagedOperator))
    if not any(operation.computes() for operation in packaged):
        return {}
    device = open_device(driver_name(_KERNEL_DEVICE) if isolate else _KERNEL_DEVICE)
    return {device.name: owned.enter_context(KernelHost(device.device, device.name))}


_KERNEL_DEVICE = "reference"


def _kernels_only(operation: Operation) -> Support:
    detail = "is not among the devices, and only here for operators that packages bring"
    return Support.no(operation, "", detail, Rule.CALLER)


def caller_devices(devices: Devices) -> list[Device]:
    """Return the caller's device instances, which the caller closes."""
    return [] if isinstance(devices, str) else [d for d in devices if isinstance(d, Device)]
