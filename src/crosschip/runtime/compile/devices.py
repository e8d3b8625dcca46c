"""The devices that a caller of `compile` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Literal

from crosschip.hal import Device, Offer, Options, Rule, Support
from crosschip.ir import InputError, Model, Operation
from crosschip.ir.bodies import every_operation
from crosschip.ir.suggestion import did_you_mean
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.runtime.configuration import Properties
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.discovery import (
    in_driver,
    open_automatic,
    open_device,
    own_name,
    settings_of,
)
from crosschip.runtime.guard.devices import GuardedDevice

Devices = Literal["auto"] | str | Sequence[str | Device]
"""Names, also with commas in one text; instances; or `"auto"`."""


def open_devices(
    devices: Devices,
    properties: Properties,
    demanded: Properties,
    owned: ExitStack,
    *,
    isolate: bool,
) -> dict[str, GuardedDevice]:
    """Open devices by name, in order; leaving `owned` closes those opened here.

    Args:
        devices: the caller's names or instances.
        properties: properties of devices.
        demanded: properties that must belong to devices which are opened here.
        owned: closes the devices.
        isolate: whether to open them in driver processes.

    Raises:
        InputError: there is no such device argument, or there are properties for other devices.
        DeviceError: a device does not open.
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
    for one in devices:
        if isinstance(one, Device):
            if isolate and "@" not in one.name:
                raise InputError(
                    f"device {one.name!r} is in this process already; isolate needs its name"
                )
            device = GuardedDevice(one, one.name)
            if device.name in demanded:
                raise InputError(
                    f"device {device.name!r} was made with its properties; there are others"
                )
        else:
            name = in_driver(one) if isolate else one
            device = owned.enter_context(open_device(name, settings_of(name, properties)))
        if device.name in opened:
            raise InputError(f"device {device.name!r} is given twice")
        if device.name == RUNTIME:
            raise InputError(f"no device can be called {RUNTIME!r}: that runs control flow itself")
        opened[device.name] = device
    if not opened:
        raise InputError("no devices were given; name at least one (see `crosschip devices`)")
    known = {*opened, *map(own_name, opened)}
    for name in demanded:
        if name not in known:
            near = did_you_mean(name, opened)
            raise InputError(
                f"there are properties for {name!r}, which is not among the devices{near}"
            )
    return opened


class HostOfKernels(GuardedDevice):
    """The reference device, for custom operators with kernels of their own only."""

    def query(self, model: Model, options: Options) -> Offer:
        offer = super().query(model, options)
        answers = [
            answer if isinstance(operation, PackagedOperator) else _not_asked_for(operation)
            for operation, answer in zip(model.operations, offer.answers, strict=True)
        ]
        return Offer(answers, offer.groups)


def host_of_kernels(
    model: Model, opened: Mapping[str, GuardedDevice], owned: ExitStack, *, isolate: bool
) -> dict[str, GuardedDevice]:
    """Return the device that runs custom kernels, if the caller named none for them.

    A custom operator runs on a device that has a converter for it or runs its decomposition, or
    else
    by its kernel on the host.

    Args:
        model: the model.
        opened: the devices that the caller named.
        owned: closes the device.
        isolate: whether to open it in a driver process.
    """
    if any(own_name(name) == _HOST for name in opened):
        return {}
    packaged = (o for o in every_operation(model) if isinstance(o, PackagedOperator))
    if not any(operation.computes() for operation in packaged):
        return {}
    device = open_device(in_driver(_HOST) if isolate else _HOST)
    return {device.name: owned.enter_context(HostOfKernels(device.device, device.name))}


_HOST = "reference"


def _not_asked_for(operation: Operation) -> Support:
    detail = "is not among the devices, and only here for operators that packages bring"
    return Support.no(operation, "", detail, Rule.CALLER)


def instances(devices: Devices) -> list[Device]:
    """Return the devices that the caller opened and must close."""
    return [] if isinstance(devices, str) else [d for d in devices if isinstance(d, Device)]
