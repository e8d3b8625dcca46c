"""Which devices there are: listed from metadata, loaded only when asked for.

A device is an entry point of the group `crosschip.devices` (name → class). One that cannot be
loaded is a fact about it, not a failure of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from crosschip.hal import Device, Kind
from crosschip.ir import DeviceError

GROUP = "crosschip.devices"


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What is known about a device; vendor, kind and version only if it could be loaded.

    Attributes:
        reason: why it is not available; empty if it is.
    """

    name: str
    vendor: str
    kind: str
    version: str
    available: bool
    reason: str


@lru_cache(maxsize=1)
def entries() -> Mapping[str, EntryPoint]:
    """The devices' entry points by name; `entries.cache_clear()` looks again."""
    found = entry_points(group=GROUP)
    return {entry.name: entry for entry in sorted(found, key=lambda entry: entry.name)}


def open_device(name: str, properties: Mapping[str, str] | None = None) -> Device:
    """An instance of the device called `name`.

    Raises:
        DeviceError: there is no such device, it fails to load, or it refuses the properties.
    """
    entry = entries().get(name)
    if entry is None:
        known = ", ".join(entries())
        raise DeviceError(
            f"there is no device {name!r}; installed are: {known} (see `crosschip devices`)"
        )
    try:
        loaded: object = entry.load()
        if not (isinstance(loaded, type) and issubclass(loaded, Device)):
            raise DeviceError(f"{entry.value} is not a subclass of crosschip.hal.Device")
        device = loaded(properties)
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is its failure
        raise DeviceError(f"device {name!r} failed to load: {first_line(error)}") from error
    device.name = name
    return device


def report(name: str) -> DeviceReport:
    """Load a device and say what it is, or why it is not available."""
    try:
        with open_device(name) as device:
            kind, version = device.kind.value, str(device.version)
            return DeviceReport(name, device.vendor, kind, version, True, "")
    except DeviceError as error:
        return DeviceReport(name, "", "", "", False, str(error))
    except Exception as error:  # foreign code, as above
        return DeviceReport(name, "", "", "", False, first_line(error))


def list_devices() -> list[DeviceReport]:
    """Every installed device, with what it is, or why it is not available."""
    return [report(name) for name in entries()]


def automatic() -> list[str]:
    """The available devices in the order that `"auto"` means.

    Accelerators come before GPUs and those before processors, each in the order of their names;
    `reference`, which is the slowest, comes last.
    """
    available = [found for found in list_devices() if found.available]
    order = [kind.value for kind in (Kind.ACCELERATOR, Kind.GPU, Kind.CPU)]
    available.sort(key=lambda found: (found.name == "reference", order.index(found.kind)))
    return [found.name for found in available]


def first_line(error: BaseException) -> str:
    """What an exception of foreign code says, short enough for a message of ours."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
