"""`crosschip devices`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import crosschip
from crosschip.cli._options import Json
from crosschip.cli._show import console, document, table
from crosschip.ir import DeviceError
from crosschip.runtime.discovery import DeviceReport

if TYPE_CHECKING:
    from crosschip.drivers.client.monitor import DriverReport

_Drivers = Mapping[str, Sequence["DriverReport"]]


def command(as_json: Json = False) -> None:
    """List the devices: which are available, why others are not, and their properties.

    Below each device, its driver processes are listed: those that run, and those that crashed
    recently.
    """
    reports = crosschip.list_devices()
    drivers = _drivers([device.name for device in reports])
    if as_json:
        document(
            [{**asdict(d), "drivers": [r.document() for r in drivers[d.name]]} for d in reports]
        )
        return
    table("Devices", ("name", "vendor", "kind", "version", "available"), _rows(reports, drivers))
    settings = [(f"{d.name}.{name}", what) for d in reports for name, what in d.properties.items()]
    if settings:
        table("Properties, for --property", ("name", "what it does"), settings)
    for sentence in dict.fromkeys(device.conflict for device in reports if device.conflict):
        console.print(f"warning: {sentence}", highlight=False)


def _drivers(names: Sequence[str]) -> _Drivers:
    """Return the drivers of each device; a driver of an unlisted chip counts for its device."""
    from crosschip.drivers.endpoint import folder

    drivers_by_device: dict[str, list[DriverReport]] = {name: [] for name in names}
    if sys.platform != "linux":  # drivers exist only on Linux
        return drivers_by_device
    with suppress(DeviceError):  # there can be no folder for them, so there are none
        if any(folder().iterdir()):
            from crosschip.drivers.client.monitor import look

            for report in look():
                known = (
                    report.device
                    if report.device in drivers_by_device
                    else report.device.partition(":")[0]
                )
                drivers_by_device.get(known, []).append(report)
    return drivers_by_device


def _rows(reports: Sequence[DeviceReport], drivers: _Drivers) -> Iterator[Sequence[str]]:
    for d in reports:
        yield d.name, d.vendor, d.kind, d.version, _available(d)
        yield from map(_driver_row, drivers[d.name])


def _driver_row(driver: DriverReport) -> Sequence[str]:
    from crosschip.cli._drivers import summary

    version = driver.figures.version if driver.figures else ""
    return f"  {driver.device}@driver", "", "driver", version, summary(driver)


def _available(device: DeviceReport) -> str:
    """Return whether a device is available, and whether it is simulated, in words."""
    if not device.available:
        return device.reason
    return "simulated" if device.simulated else "yes"
