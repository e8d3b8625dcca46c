"""NNAdapter's functions for contexts: several devices with their settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from crosschip.apis.nnadapter.device import NNAdapterDevice
from crosschip.apis.nnadapter.drivers import (
    DRIVERS,
    Setter,
    Settings,
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
    """Devices in order of preference, with their settings.

    Attributes:
        names: crosschip's names of the devices.
        properties: the devices' properties, by device.
        threads: how many CPU threads a run may use; `None` for the devices' default.
        precision: the precision of float32 operations; `None` for float32.
        callback: the function that a device may call, with an event number and a pointer for
            the answer. None of crosschip's own devices calls it.
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
    """Create a context of several devices.

    Args:
        devices: the devices; an operation goes to the first that supports it.
        properties: settings as `KEY=VALUE;KEY=VALUE`. A key begins with the name of a device,
            NNAdapter's or crosschip's, as in `INTEL_OPENVINO_INFERENCE_NUM_THREADS=4`; keys of
            other devices are ignored. The rest of the key is a property of Paddle Lite's driver
            (see `DRIVERS`) or `NUM_THREADS`, both of which are also read from the environment, or a
            property of the device (see `crosschip devices`).
        callback: the function that a device may call, as `callback(event_id, user_data)`.
    """
    if not devices:
        raise invalid("there are no devices")
    acquired = [live(device, NNAdapterDevice) for device in devices]
    if callback is not None and not callable(callback):
        raise invalid(f"the callback is {callback!r}")
    pairs = _parse(properties or "")
    _check_absent(acquired, pairs)
    names: list[str] = []
    properties_by_device: dict[str, Mapping[str, str]] = {}
    threads: list[int] = []
    precisions: list[str] = []
    for device in acquired:
        device_settings = _settings(device, pairs)
        name = _instance(device.device, device_settings.instance)
        _check_settings(name, tuple(device_settings.properties.items()))
        names.append(name)
        if device_settings.properties:
            properties_by_device[name] = device_settings.properties
        threads.append(device_settings.threads or 0)
        precisions += filter(None, [device_settings.precision])
    if len(set(names)) < len(names):
        raise invalid(f"a device is given twice: {', '.join(names)}")
    if len(set(precisions)) > 1:
        raise invalid(f"devices of one context are to compute in {' and '.join(precisions)}")
    precision = next(iter(precisions), None)
    return NNAdapterContext(names, properties_by_device, max(threads) or None, precision, callback)


@returns_nothing
def NNAdapterContext_destroy(context: NNAdapterContext | None) -> None:
    """Release a context; models compiled with it still run. `None` is ignored."""
    if context is not None:
        live(context, NNAdapterContext).destroy()


def _parse(properties: str) -> Mapping[str, str]:
    """Parse `KEY=VALUE;KEY=VALUE`."""
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
    """Return the name of an instance of a device's chip; the device itself without one."""
    if not instance:
        return device
    chip = device.partition(":")[0]
    for name, candidate in instances():
        if candidate.name == instance and name.partition(":")[0] == chip:
            return name
    return f"{chip}:{instance}"


def _check_absent(devices: Sequence[NNAdapterDevice], pairs: Mapping[str, str]) -> None:
    """Raise a failure for properties of drivers without a device, unless acquired by that name."""
    for name, driver in DRIVERS.items():
        if driver.device or any(name in (device.name, device.device) for device in devices):
            continue
        for suffix, refuse in driver.properties.items():
            key = prefix_of(name) + suffix
            if key in pairs:
                refuse(key, pairs[key], Settings())


def _settings(device: NNAdapterDevice, pairs: Mapping[str, str]) -> Settings:
    """Return one device's settings, from the properties and the environment."""
    settings = Settings()
    for name in dict.fromkeys((*drivers_of(device.device), device.name, device.device)):
        prefix, driver = prefix_of(name), DRIVERS.get(name)
        setters: Mapping[str, Setter] = {_THREADS: set_threads}
        if driver is not None and driver.device:
            setters = {**setters, **driver.properties}
        environment = {prefix + suffix: os.environ.get(prefix + suffix, "") for suffix in setters}
        from_context = {key: value for key, value in pairs.items() if key.startswith(prefix)}
        for key, value in {**environment, **from_context}.items():
            suffix = key.removeprefix(prefix)
            if value and suffix in setters:
                setters[suffix](key, value, settings)
            elif value:
                settings.properties[suffix.lower()] = value
    return settings


@lru_cache
def _check_settings(device: str, settings: tuple[tuple[str, str], ...]) -> None:
    """Raise a failure for properties that a device does not support; results are cached."""
    try:
        open_device(device, dict(settings)).close()
    except DeviceError as error:
        raise invalid(str(error)) from error
