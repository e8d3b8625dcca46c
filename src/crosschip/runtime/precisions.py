"""Devices with a precision other than the compilation's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crosschip.hal import Options, Precision
from crosschip.runtime.guard.devices import GuardedDevice

EXACT = Precision.FLOAT32


class InPrecision(GuardedDevice):
    """A device with a fixed precision; closing it leaves the underlying device open."""

    def __init__(self, device: GuardedDevice, precision: Precision) -> None:
        super().__init__(device.device, name_in(precision, device.name), precision)

    def close(self) -> None:
        """Do nothing: the underlying device stays open."""


def name_in(precision: Precision, name: str) -> str:
    """Return the name of a device in another precision: `npu/float16@driver` for `npu@driver`."""
    local, at, where = name.partition("@")
    return f"{local.partition('/')[0]}/{precision.value}{at}{where}"


def reduced(devices: Mapping[str, GuardedDevice], options: Options) -> list[str]:
    """Return the names of the devices that compute in another precision than float32."""
    return [
        n
        for n, device in devices.items()
        if device.effective_options(options).precision is not EXACT
    ]


def with_exact(
    devices: Mapping[str, GuardedDevice], options: Options
) -> tuple[dict[str, GuardedDevice], dict[str, str]]:
    """Insert a float32 variant after each device that computes in another precision.

    Returns:
        The devices in order; and the name of the float32 variant for each such device. No variant
        is added for a chip that is among the devices in float32 already.
    """
    names = reduced(devices, options)
    existing = {name_in(EXACT, name): name for name in devices if name not in names}
    exact = {name: existing.get(name_in(EXACT, name), name_in(EXACT, name)) for name in names}

    def all_devices() -> Iterator[GuardedDevice]:
        exact_names: set[str] = set()
        for name, device in devices.items():
            yield device
            other = exact.get(name, name)
            if other not in devices and other not in exact_names:
                exact_names.add(other)
                yield InPrecision(device, EXACT)

    return {device.name: device for device in all_devices()}, exact
