"""Devices in a precision that is not that of the compilation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crosschip.hal import Options, Precision
from crosschip.runtime.guard.devices import GuardedDevice

EXACT = Precision.FLOAT32


class InPrecision(GuardedDevice):
    """A device once more, in a precision of its own; the other one closes the device."""

    def __init__(self, device: GuardedDevice, precision: Precision) -> None:
        super().__init__(device.device, name_in(precision, device.name), precision)

    def close(self) -> None:
        """Leave the device open."""


def name_in(precision: Precision, name: str) -> str:
    """The name of a device in another precision: `npu/float16@driver` of `npu@driver`."""
    local, at, where = name.partition("@")
    return f"{local.partition('/')[0]}/{precision.value}{at}{where}"


def reduced(devices: Mapping[str, GuardedDevice], options: Options) -> list[str]:
    """The names of the devices that compute in another precision than float32."""
    return [
        n
        for n, device in devices.items()
        if device.effective_options(options).precision is not EXACT
    ]


def with_exact(
    devices: Mapping[str, GuardedDevice], options: Options
) -> tuple[dict[str, GuardedDevice], dict[str, str]]:
    """The devices, with each that computes in another precision once more in float32 behind it.

    Returns:
        The devices in order, and the name of the one in float32 for each that is not. None is added
        for a chip that is among them in float32 already.
    """
    less = reduced(devices, options)
    there = {name_in(EXACT, name): name for name in devices if name not in less}
    exact = {name: there.get(name_in(EXACT, name), name_in(EXACT, name)) for name in less}

    def all_devices() -> Iterator[GuardedDevice]:
        exact_names: set[str] = set()
        for name, device in devices.items():
            yield device
            other = exact.get(name, name)
            if other not in devices and other not in exact_names:
                exact_names.add(other)
                yield InPrecision(device, EXACT)

    return {device.name: device for device in all_devices()}, exact
