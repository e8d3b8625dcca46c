"""A device of versions 2.0 and 2.1 as a crosschip device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from crosschip.apis.nnrt.hdi.v1_0.arena import Arena, Driver
from crosschip.apis.nnrt.hdi.v1_0.device import AnyHdiDevice, AnyHdiProgram, told_by
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError
from crosschip.apis.nnrt.hdi.v1_0.types import Format, IOTensor
from crosschip.apis.nnrt.hdi.v2_1.interface import INnrtDevice, IPreparedModel
from crosschip.apis.nnrt.hdi.v2_1.nodes import V2_0, V2_1
from crosschip.apis.nnrt.hdi.v2_1.ranges import open_ranges
from crosschip.apis.nnrt.hdi.v2_1.types import ModelConfig, NNRT_ReturnCode
from crosschip.hal import Options, Program
from crosschip.ir import Array, DeviceError, Model


class HdiDevice(AnyHdiDevice[ModelConfig, IPreparedModel]):
    """A chip behind NNRt's driver interface (HDI V2_1).

    A vendor's package subclasses it, says what it is (`vendor`, `kind`) and defines `open_driver`;
    a driver of version 2.0 has the `nodes` `V2_0`. For a driver that is open already there is
    `device_over`.
    """

    nodes = V2_1

    def _config(self, options: Options, model: Model) -> ModelConfig:
        fields = msgspec.structs.asdict(self._model_config(options))
        return ModelConfig(**fields, extensions={"ModelName": model.name.encode()})

    def _program(self, prepared: IPreparedModel, model: Model) -> Program:
        return HdiProgram(self._driver, prepared, model, self._format)


def device_over(driver: INnrtDevice, properties: Mapping[str, str] | None = None) -> HdiDevice:
    """Return a crosschip device over a driver that is open, which stays the caller's to close.

    Raises:
        DeviceError: the chip is offline, or the driver has no such property or another version.
    """
    version = driver.GetVersion()
    if version[0] != 2:
        raise DeviceError(
            f"{driver.GetDeviceName()}: the driver has version {version[0]}.{version[1]} of the "
            "interface, not 2.0 or 2.1"
        )
    attributes = {**told_by(driver), "nodes": V2_1 if version >= V2_1.version else V2_0}
    class_: type[HdiDevice] = type("HdiDevice", (HdiDevice,), attributes)
    return class_(properties, driver=driver)


class HdiProgram(AnyHdiProgram[IPreparedModel]):
    """A prepared model as a program.

    Raises:
        DeviceError: the driver prepared it for other sizes than the model's.
    """

    def __init__(
        self, driver: Driver, prepared: IPreparedModel, model: Model, format: Format
    ) -> None:
        super().__init__(driver, prepared, model, format)
        self._ranges = open_ranges(model.inputs, *prepared.GetInputDimRanges())

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        for one in self._ranges:
            one.check(inputs[one.place].shape[one.axis])
        return super().run(inputs)

    def _run(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        sizes = self._tried(inputs, arena)
        return self._tried(inputs, arena) if arena.grow(sizes) else sizes

    def _tried(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        """Return the sizes of a run's outputs, with ever more room until the driver has enough."""
        while True:
            try:
                return self._prepared.Run(inputs, arena.places())
            except HdiError as error:
                is_short = error.code is NNRT_ReturnCode.NNRT_INSUFFICIENT_BUFFER
                if not (is_short and arena.double()):
                    raise
