"""Functions about contexts: several devices with their settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from crosschip.apis.nnadapter.device import NNAdapterDevice
from crosschip.apis.nnadapter.drivers import (
    DRIVERS,
    Settings,
    Translation,
    drivers_of,
    prefix_of,
    set_threads,
)
from crosschip.apis.nnadapter.results import Handle, invalid, live, returns_nothing, returns_value
from crosschip.ir import DeviceError
from crosschip.runtime.discovery import instances, open_device

Callback = Callable[[int, object], int]

_THREADS = "NUM_THREADS"


class NNAdapterContext(Handle):
    """Devices in the order in which they are preferred, with their settings.

    Attributes:
        names: what crosschip calls the devices.
        properties: their settings, by device.
        threads: how many processor threads a run may use; `None` leaves it to the devices.
        precision: the arithmetic for float32 operations; `None` for float32.
        callback: what a device may ask the program with: an event's number and where to put the
            answer. No device of crosschip's own asks.
    """

    def __init__(
        self,
        names: Sequence[str],
        properties: Mapping[str, Mapping[str, str]],
        threads: int | None,
        precision: str | None,
        callback: Callback | None,
    ) -> None:
        super().__init__()
        self.names = tuple(names)
        self.properties = properties
        self.threads = threads
        self.precision = precision
        self.callback = callback


@returns_value
def NNAdapterContext_create(
    devices: Sequence[NNAdapterDevice],
    properties: str | None = None,
    callback: Callback | None = None,
) -> NNAdapterContext:
    """Make a context of several devices.

    Args:
        devices: the devices; an operation goes to the first that runs it.
        properties: settings as `KEY=VALUE;KEY=VALUE`. A device takes those whose keys begin with
            its name, NNAdapter's or crosschip's, as in `INTEL_OPENVINO_INFERENCE_NUM_THREADS=4`;
            others are for other devices. What follows the name is a property of Paddle Lite's
            driver (see `DRIVERS`) or `NUM_THREADS`, which are also taken from the environment, or a
            setting of the device (see `crosschip devices`).
        callback: what a device may ask the program with, as `callback(event_id, user_data)`.
    """
    if not devices:
        raise invalid("there are no devices")
    acquired = [live(device, NNAdapterDevice) for device in devices]
    if callback is not None and not callable(callback):
        raise invalid(f"the callback is {callback!r}")
    pairs = _pairs(properties or "")
    _check_absent(acquired, pairs)
    names: list[str] = []
    settings: dict[str, Mapping[str, str]] = {}
    threads: list[int] = []
    precisions: list[str] = []
    for device in acquired:
        own = _settings(device, pairs)
        name = _instance(device.device, own.instance)
        _check_settings(name, tuple(own.properties.items()))
        names.append(name)
        if own.properties:
            settings[name] = own.properties
        threads.append(own.threads or 0)
        precisions += filter(None, [own.precision])
    if len(set(names)) < len(names):
        raise invalid(f"a device is given twice: {', '.join(names)}")
    if len(set(precisions)) > 1:
        raise invalid(f"devices of one context are to compute in {' and '.join(precisions)}")
    precision = next(iter(precisions), None)
    return NNAdapterContext(names, settings, max(threads) or None, precision, callback)


@returns_nothing
def NNAdapterContext_destroy(context: NNAdapterContext | None) -> None:
    """Release a context; what was compiled with it still runs. `None` is nothing to release."""
    if context is not None:
        live(context, NNAdapterContext).destroy()


def _pairs(properties: str) -> Mapping[str, str]:
    """Settings by key."""
    if not isinstance(properties, str):
        raise invalid(f"properties is {properties!r}, but must be text")
    pairs = {}
    for part in filter(None, map(str.strip, properties.split(";"))):
        key, _, value = map(str.strip, part.partition("="))
        if not key or not value:
            raise invalid(f"properties has {part!r}, but must be KEY=VALUE;KEY=VALUE")
        pairs[key] = value
    return pairs


def _instance(device: str, instance: str) -> str:
    """The name of an instance of a device's chip; the device itself if none is named."""
    if not instance:
        return device
    chip = device.partition(":")[0]
    for name, known in instances():
        if known.name == instance and name.partition(":")[0] == chip:
            return name
    return f"{chip}:{instance}"


def _check_absent(devices: Sequence[NNAdapterDevice], pairs: Mapping[str, str]) -> None:
    """Refuse the properties of drivers that crosschip has no device for, unless one is here."""
    for name, driver in DRIVERS.items():
        if driver.device or any(name in (device.name, device.device) for device in devices):
            continue
        for suffix, refuse in driver.properties.items():
            key = prefix_of(name) + suffix
            if key in pairs:
                refuse(key, pairs[key], Settings())


def _settings(device: NNAdapterDevice, pairs: Mapping[str, str]) -> Settings:
    """The settings of one device, from the properties and from the environment."""
    own = Settings()
    for name in dict.fromkeys((*drivers_of(device.device), device.name, device.device)):
        prefix, driver = prefix_of(name), DRIVERS.get(name)
        known: Mapping[str, Translation] = {_THREADS: set_threads}
        if driver is not None and driver.device:
            known = {**known, **driver.properties}
        outside = {prefix + suffix: os.environ.get(prefix + suffix, "") for suffix in known}
        from_context = {key: value for key, value in pairs.items() if key.startswith(prefix)}
        for key, value in {**outside, **from_context}.items():
            suffix = key.removeprefix(prefix)
            if value and suffix in known:
                known[suffix](key, value, own)
            elif value:
                own.properties[suffix.lower()] = value
    return own


@lru_cache
def _check_settings(device: str, settings: tuple[tuple[str, str], ...]) -> None:
    """Refuse settings that a device does not take; those that it takes are asked about once."""
    try:
        open_device(device, dict(settings)).close()
    except DeviceError as error:
        raise invalid(str(error)) from error
