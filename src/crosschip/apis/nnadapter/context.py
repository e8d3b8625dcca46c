"""Functions about contexts: several devices with their settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from crosschip.apis.nnadapter.device import NNAdapterDevice
from crosschip.apis.nnadapter.results import Handle, invalid, live, returns_nothing, returns_value
from crosschip.ir import DeviceError
from crosschip.runtime.discovery import open_device

Callback = Callable[[int, object], int]

_THREADS = "NUM_THREADS"


class NNAdapterContext(Handle):
    """Devices in the order in which they are preferred, with their settings.

    Attributes:
        names: what crosschip calls the devices.
        properties: their settings, by device.
        threads: how many processor threads a run may use; `None` leaves it to the devices.
        callback: what a device may ask the program with: an event's number and where to put the
            answer. No device of crosschip's own asks.
    """

    def __init__(
        self,
        names: Sequence[str],
        properties: Mapping[str, Mapping[str, str]],
        threads: int | None,
        callback: Callback | None,
    ) -> None:
        super().__init__()
        self.names = tuple(names)
        self.properties = properties
        self.threads = threads
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
            its name, NNAdapter's or crosschip's, as in `INTEL_OPENVINO_NUM_THREADS=4`; others are
            for other devices. What follows the name is a setting of the device (see `crosschip
            devices`), or `NUM_THREADS`, which is also taken from the environment.
        callback: what a device may ask the program with, as `callback(event_id, user_data)`.
    """
    if not devices:
        raise invalid("there are no devices")
    acquired = [live(device, NNAdapterDevice) for device in devices]
    names = [device.device for device in acquired]
    if len(set(names)) < len(names):
        raise invalid(f"a device is given twice: {', '.join(names)}")
    if callback is not None and not callable(callback):
        raise invalid(f"the callback is {callback!r}")
    pairs = _pairs(properties or "")
    settings: dict[str, dict[str, str]] = {}
    threads: list[int] = []
    for device in acquired:
        own = _own(device, pairs)
        if _THREADS in own:
            threads.append(_count(device, own.pop(_THREADS)))
        if own:
            settings[device.device] = {key.lower(): value for key, value in own.items()}
        _check_settings(device.device, tuple(settings.get(device.device, {}).items()))
    return NNAdapterContext(names, settings, max(threads, default=0) or None, callback)


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


def _own(device: NNAdapterDevice, pairs: Mapping[str, str]) -> dict[str, str]:
    """The settings of one device, by what follows its name."""
    own: dict[str, str] = {}
    for name in (device.name, device.device):
        prefix = name.partition(":")[0].upper() + "_"
        from_environment = os.environ.get(prefix + _THREADS)
        if from_environment:
            own.setdefault(_THREADS, from_environment)
        for key, value in pairs.items():
            if key.startswith(prefix):
                own[key.removeprefix(prefix)] = value
    return own


@lru_cache
def _check_settings(device: str, settings: tuple[tuple[str, str], ...]) -> None:
    """Refuse settings that a device does not take; those that it takes are asked about once."""
    try:
        open_device(device, dict(settings)).close()
    except DeviceError as error:
        raise invalid(str(error)) from error


def _count(device: NNAdapterDevice, text: str) -> int:
    """A number of threads; 0 leaves it to the device."""
    if not text.isascii() or not text.isdecimal():
        raise invalid(f"{device.name.upper()}_{_THREADS} is {text!r}, but must be a number")
    return int(text)
