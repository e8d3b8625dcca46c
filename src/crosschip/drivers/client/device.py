"""A device in another process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from crosschip.drivers.client.driver import Driver, driver_at
from crosschip.drivers.client.policy import SETTINGS, Policy, Timeouts
from crosschip.drivers.client.program import RemoteProgram
from crosschip.drivers.client.regions import Lease
from crosschip.drivers.endpoint import Endpoint
from crosschip.drivers.protocol import memory, messages
from crosschip.hal import Capabilities, Device, Forking, Offer, Options, Performance, Program
from crosschip.hal.buffers import Buffer, HostBuffer
from crosschip.ir import ElementType, Model


class RemoteDevice(Device):
    """A device in a driver's process: `openvino@driver`, `openvino@unix:/run/ov.sock`.

    Args:
        device: the part of the name before the `@`.
        location: the part of the name after the `@`.
        properties: the device's properties, if crosschip starts the driver, and those of
            `Timeouts`.
        code: the digest of the device's code (`Device.code`); other code has another driver.

    Attributes:
        driver: the driver.

    Raises:
        InputError, DeviceError: the location is invalid, or the driver does not start.
    """

    def __init__(
        self,
        device: str,
        location: str,
        properties: Mapping[str, str] | None = None,
        code: str = "",
    ) -> None:
        super().__init__()
        self.properties = dict(properties or {})
        self.name = f"{device}@{location}"
        self._location, self._code = (device, location), code
        device_properties = {
            name: text for name, text in self.properties.items() if name not in SETTINGS
        }
        timeouts = Timeouts.of(self.properties)
        endpoint = Endpoint.of(device, location, device_properties, code)
        self.driver: Driver = driver_at(endpoint, self.name, Policy(), timeouts)
        try:
            self._description = self.driver.link().connection.description
        except BaseException:
            self.driver.close()
            raise
        self.vendor = self._description.vendor  # type: ignore[misc]  # read from the driver
        self.kind = self._description.kind  # type: ignore[misc]  # read from the driver

    def another(self, properties: Mapping[str, str]) -> Device:
        return RemoteDevice(*self._location, properties, self._code)

    @property
    def version(self) -> str:
        return self._description.version

    @property
    def code(self) -> str:
        return self._description.code

    @property
    def compile_properties(self) -> Mapping[str, str]:
        return self._description.properties

    def capabilities(self) -> Capabilities:
        # Data sent to a driver are copied to page boundaries, and a saved program is sent with its
        # whole model. The driver itself compiles one model at a time.
        return replace(
            self._description.capabilities,
            alignment=1,
            loads_views=True,
            holds_weights=False,
            parallel_compile=True,
            forking=Forking.ALWAYS,
        )

    def operators(self) -> Collection[str]:
        return self._description.operators

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        return self._description.modes

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        connection = self.driver.link().connection
        return connection.ask(
            messages.EngineSettings, lambda n: messages.Settings(n, options)
        ).settings

    def query(self, model: Model, options: Options) -> Offer:
        return self.driver.attempt("answering", lambda link: link.query(model, options))

    def compile(self, model: Model, options: Options) -> Program:
        return RemoteProgram(self.driver, model, options, None)

    def load(self, saved: bytes | memoryview, model: Model, options: Options) -> Program:
        return RemoteProgram(self.driver, model, options, memory.Sealed.of(saved))

    def allocate(self, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
        size = element_type.dtype.itemsize
        for extent in shape:
            size *= extent
        lease: Lease = self.driver.attempt(
            "allocating memory", lambda link: link.regions.take(max(1, size))
        )
        return HostBuffer(lease.array(shape, element_type.dtype))

    def on_death(self, callback: Callable[[str], None]) -> Callable[[], None]:
        return self.driver.on_death(callback)

    def close(self) -> None:
        self.driver.close()
