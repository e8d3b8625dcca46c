"""`crosschip devices`."""

from dataclasses import asdict

import crosschip
from crosschip.cli._options import Json
from crosschip.cli._show import document, table
from crosschip.runtime.discovery import DeviceReport


def command(as_json: Json = False) -> None:
    """List the devices: which are available, why others are not, and their properties."""
    found = crosschip.list_devices()
    if as_json:
        document([asdict(device) for device in found])
        return
    table(
        "Devices",
        ("name", "vendor", "kind", "version", "available"),
        [(d.name, d.vendor, d.kind, d.version, _available(d)) for d in found],
    )
    settings = [(f"{d.name}.{name}", what) for d in found for name, what in d.properties.items()]
    if settings:
        table("Properties, for --property", ("name", "what it does"), settings)


def _available(device: DeviceReport) -> str:
    """Tell whether a device can be used, and whether it is the chip itself."""
    if not device.available:
        return device.reason
    return "simulated" if device.simulated else "yes"
