"""Discovery of devices: listed from package metadata, loaded on demand.

A device is an entry point of the group `crosschip.devices` (name → class), or a library
`lib<name>.so` in a folder of `CROSSCHIP_DEVICE_PATH`. A device that fails to load is reported as
unavailable.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from crosschip.devices.kits.native import device_of, libraries
from crosschip.hal import CONTRACT_VERSION, Device, Instance, Kind, Precision
from crosschip.hal.device import code_of
from crosschip.ir import DeviceError, InputError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.entry_points import entry_points
from crosschip.ir.interruption import raise_interruption
from crosschip.ir.suggestion import did_you_mean
from crosschip.progress import task
from crosschip.runtime.guard.calls import call, first_line
from crosschip.runtime.guard.devices import GuardedDevice

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.ir.entry_points import EntryPoint

GROUP = "crosschip.devices"

logger = logging.getLogger("crosschip")


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """A description of a device; vendor, kind and version only if it could be loaded.

    Attributes:
        name: the name for `compile`, with the chip's number if there are several.
        vendor: the vendor.
        kind: the kind of hardware.
        version: the version of the engine.
        description: the full name of the chip.
        memory: the chip's memory in bytes; `None` if it is host memory, or unknown.
        simulated: whether software simulates the chip.
        available: whether it can be used.
        reason: why it is not available; empty if it is.
        properties: its properties, each with a description.
        conflict: a warning if several distributions contain the engine's package and overwrite each
            other's files; otherwise empty.
    """

    name: str
    vendor: str = ""
    kind: str = ""
    version: str = ""
    description: str = ""
    memory: int | None = None
    simulated: bool = False
    available: bool = False
    reason: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    conflict: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """The package or library that a device comes from.

    Attributes:
        where: the package or library, in words.
        load: loads the device's class.
    """

    where: Callable[[], str]
    load: Callable[[], object]


def origins() -> Mapping[str, Sequence[Origin]]:
    """Return the origins of devices, by name; several if packages claim the same name."""
    origins_by_name = {
        name: [Origin(partial(_package, entry), entry.load) for entry in each]
        for name, each in entries().items()
    }
    for name, paths in libraries().items():
        base = [Origin(partial(_library, path), partial(device_of, path)) for path in paths]
        origins_by_name.setdefault(name, []).extend(base)
    return dict(sorted(origins_by_name.items()))


def entries() -> Mapping[str, Sequence[EntryPoint]]:
    """Return the entry points of devices, by name; several if packages claim the same name."""
    entries_by_name: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(GROUP):
        entries_by_name.setdefault(entry.name, []).append(entry)
    return {name: _without_duplicates(alike) for name, alike in entries_by_name.items()}


def _without_duplicates(entries: Sequence[EntryPoint]) -> Sequence[EntryPoint]:
    """Remove duplicates among entry points of one name."""
    if len(entries) == 1:  # without reading the file with the package's name
        return entries
    return list({(entry.value, _package(entry)): entry for entry in entries}.values())


def open_device(
    name: str,
    properties: Mapping[str, str] | None = None,
    device_class: type[Device] | None = None,
) -> GuardedDevice:
    """Open a device by name.

    Args:
        name: `mychip`, or `mychip:1` for one of several chips, or `mychip/bfloat16` for a precision
            other than the compilation's; each optionally followed by `@driver` or another location.
        properties: the device's properties.
        device_class: the device's class, if known; otherwise it is looked up.

    Raises:
        DeviceError: there is no such device, it fails to load, or it refuses the properties.
        InputError: there is no such precision.
    """
    local, _, where = name.partition("@")
    chip, precision = local.partition("/")[0], precision_of(name)
    with task(f"opening {name}"):
        device = (
            _open_in_driver(chip, where, properties)
            if where
            else _open_in_process(chip, properties, device_class)
        )
    if precision is not None:
        device.name = f"{chip}/{precision.value}{device.name.removeprefix(chip)}"
    return GuardedDevice(device, device.name, precision)


def precision_of(name: str) -> Precision | None:
    """Return the precision in a device's name; `None` if it uses the compilation's.

    Raises:
        InputError: there is no such precision.
    """
    _, slash, word = name.partition("@")[0].partition("/")
    if not slash:
        return None
    try:
        return Precision(word)
    except ValueError:
        precisions = [precision.value for precision in Precision]
        raise InputError(
            f"device {name!r}: there is no precision {word!r}{did_you_mean(word, precisions)}; "
            f"there are: {', '.join(precisions)}"
        ) from None


def _open_in_process(
    name: str, properties: Mapping[str, str] | None, device_class: type[Device] | None
) -> Device:
    """Open a device in this process."""
    base, _, instance = name.partition(":")
    is_given_class = device_class is not None
    device_class = device_class or _load(base)
    if instance and not is_given_class:
        present = [chip_info.name for chip_info in _probe(base, device_class)]
        if instance not in present:
            names = [f"{base}:{other}" for other in present if other] or [base]
            near = did_you_mean(name, names)
            raise DeviceError(f"there is no device {name!r}{near}; there are: {', '.join(names)}")
    try:
        device = device_class(properties, instance) if instance else device_class(properties)
    except BaseException as error:  # foreign code: whatever it raises is its failure
        raise_interruption(error)
        raise DeviceError(f"device {name!r} failed to load: {_describe_error(error)}") from error
    device.name = name
    return device


def _open_in_driver(local: str, where: str, properties: Mapping[str, str] | None) -> Device:
    """Open a device in a driver process."""
    # Imported late: rarely needed.
    from crosschip.drivers.client.device import RemoteDevice

    device_class = _load(local.partition(":")[0])
    return RemoteDevice(local, where, properties, code_of(device_class))


def instances() -> Iterator[tuple[str, Instance]]:
    """List the names of all chips of the installed devices, without opening them."""
    for base in origins():
        try:
            chips = _probe(base, _load(base))
        except DeviceError as error:
            chips = [Instance(kind=Kind.ACCELERATOR, problem=str(error))]
        for index, instance in enumerate(chips):
            yield (f"{base}:{instance.name}" if index and instance.name else base), instance


def report(name: str, instance: Instance | None = None) -> DeviceReport:
    """Open a device and describe it, or say why it is not available."""
    chip = instance or next(
        (present for chip_name, present in instances() if chip_name == name), None
    )
    if chip is None:
        return DeviceReport(name, reason=f"there is no device {name!r}")
    if chip.problem:
        return DeviceReport(name, reason=chip.problem)
    try:
        device = open_device(name)
        properties = dict(call(name, "listing properties", device.device.known_properties))
        call(name, "closing", device.device.close)
    except DeviceError as error:
        return DeviceReport(name, reason=str(error))
    return DeviceReport(
        name,
        device.vendor,
        chip.kind.value,
        device.version,
        chip.description,
        chip.memory,
        chip.simulated,
        available=True,
        properties=properties,
    )


def list_devices() -> list[DeviceReport]:
    """Open each installed device once and describe it, or say why it is not available."""
    return [
        replace(report(name, instance), conflict=_conflict(name)) for name, instance in instances()
    ]


def _conflict(name: str) -> str:
    """Return a warning if the engine of a device is installed several times; else an empty text."""
    try:
        module = _load(name.partition(":")[0]).module
    except DeviceError:
        return ""
    return conflict(module) if module else ""


def automatic() -> list[str]:
    """Return the names of the devices of `"auto"`, in order, without opening them.

    Accelerators come before GPUs, and GPUs before processors, each in alphabetical order;
    `reference`, the slowest, is last. Excluded are simulated chips, and those that are not
    preferred where a preferred one of their kind can be used.
    """
    usable = [(n, i) for n, i in instances() if not i.problem and not i.simulated]
    kinds = {i.kind for name, i in usable if i.preferred and name != "reference"}
    considered = [(n, i) for n, i in usable if i.preferred or i.kind not in kinds]
    order = (Kind.ACCELERATOR, Kind.GPU, Kind.CPU)
    considered.sort(key=lambda item: (item[0] == "reference", order.index(item[1].kind)))
    return [name for name, _ in considered]


def startup_seconds(name: str) -> float:
    """Return the usual time from opening a device to the first answer of a small model, in seconds.

    It is infinite for a device whose class cannot be loaded.
    """
    try:
        return _load(base_name(name).partition(":")[0]).startup_seconds
    except DeviceError:
        return math.inf


def base_name(name: str) -> str:
    """Return a device's name without precision and location: `npu` for `npu/float16@driver`."""
    return name.partition("@")[0].partition("/")[0]


def driver_name(name: str) -> str:
    """Return the name of a device in a driver process; unchanged if it has a location."""
    return name if "@" in name else f"{name}@driver"


def settings_of(name: str, properties: Mapping[str, Mapping[str, str]]) -> Mapping[str, str] | None:
    """Return the properties for a device, including those for its base name."""
    if name in properties or base_name(name) in properties:
        return {**properties.get(base_name(name), {}), **properties.get(name, {})}
    return None


def open_automatic(
    properties: Mapping[str, Mapping[str, str]], *, isolate: bool = False
) -> Iterator[GuardedDevice]:
    """Open the devices of `"auto"`; those that fail to open are skipped.

    Args:
        properties: properties of devices.
        isolate: whether to open them in driver processes.

    Raises:
        DeviceError: a device with properties fails to open.
    """
    for base in automatic():
        name = driver_name(base) if isolate else base
        settings = settings_of(name, properties)
        try:
            yield open_device(name, settings)
        except DeviceError as error:
            if settings is not None:
                raise
            logger.info("%s; going on without it", error)


def _load(name: str) -> type[Device]:
    """Load the class of a device.

    Raises:
        DeviceError: there is no such device, there are several, or it fails to load.
    """
    all_origins = origins()
    origins_of_name = all_origins.get(name, ())
    if not origins_of_name:
        raise DeviceError(
            f"there is no device {name!r}{did_you_mean(name, all_origins)}; "
            f"installed are: {', '.join(all_origins)} (see `crosschip devices`)"
        )
    if len(origins_of_name) > 1:
        sources = " and ".join(sorted(origin.where() for origin in origins_of_name))
        raise DeviceError(
            f"there are two devices called {name!r}, from {sources}; take one of them away"
        )
    (origin,) = origins_of_name
    try:
        loaded = origin.load()
    except BaseException as error:  # foreign code: whatever it raises is its failure
        raise_interruption(error)
        raise DeviceError(f"device {name!r} failed to load: {_describe_error(error)}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Device)):
        raise DeviceError(
            f"device {name!r} failed to load: what {origin.where()} has by that name is not "
            "a subclass of crosschip.hal.Device"
        )
    if loaded.contract != CONTRACT_VERSION:
        raise DeviceError(
            f"device {name!r} is written for version {loaded.contract} of the driver contract; "
            f"this is version {CONTRACT_VERSION}; upgrade one of them"
        )
    return loaded


def _probe(name: str, device_class: type[Device]) -> Sequence[Instance]:
    """Return the chips that a device finds.

    Raises:
        DeviceError: it fails, or violates the contract.
    """
    chips = call(name, "looking for chips", lambda: list(device_class.probe()))
    names = [instance.name for instance in chips if isinstance(instance, Instance)]
    if not chips or len(set(names)) < len(chips):
        raise DeviceError(f"{name}: probe does not return instances of different names")
    if not all(isinstance(instance.kind, Kind) for instance in chips):
        raise DeviceError(f"{name}: probe does not say the kind of its instances")
    return chips


def _package(entry: EntryPoint) -> str:
    """Describe the package of an entry point."""
    return f"the package {entry.dist.name if entry.dist is not None else entry.module}"


def _library(path: Path) -> str:
    """Describe a library."""
    return f"the library {path}"


def _describe_error(error: BaseException) -> str:
    return str(error) if isinstance(error, DeviceError | InputError) else first_line(error)


def conflict(module: str) -> str:
    """Return a warning if several installed distributions contain a package; else an empty text.

    pip installs such distributions over each other: `import` then loads a mixture of files, and
    uninstalling one removes files of the other.

    Args:
        module: the import name of the package.
    """
    # Imported late: it is slow, and rarely needed.
    from importlib.metadata import distributions

    file = f"{module}/__init__.py,"
    versions = {
        distribution.name: distribution.version
        for distribution in distributions()
        if any(
            line.startswith(file) for line in (distribution.read_text("RECORD") or "").splitlines()
        )
    }
    if len(versions) < 2:
        return ""
    listed = " and ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    names = " ".join(sorted(versions))
    return (
        f"{listed} contain the same package {module!r}, and have overwritten each other's files; "
        f"keep one: pip uninstall -y {names}, then pip install the one that you need"
    )
