"""Adapter from versions 2.0 and 2.1 of the driver interface to a crosschip device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from crosschip.apis.nnrt.hdi.v1_0.arena import Arena, Driver
from crosschip.apis.nnrt.hdi.v1_0.device import AnyHdiDevice, AnyHdiProgram, class_attributes
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError
from crosschip.apis.nnrt.hdi.v1_0.types import Format, IOTensor
from crosschip.apis.nnrt.hdi.v2_1.interface import INnrtDevice, IPreparedModel
from crosschip.apis.nnrt.hdi.v2_1.nodes import V2_0, V2_1
from crosschip.apis.nnrt.hdi.v2_1.ranges import dynamic_ranges
from crosschip.apis.nnrt.hdi.v2_1.types import ModelConfig, NNRT_ReturnCode
from crosschip.hal import Options, Program
from crosschip.ir import Array, DeviceError, Model


class HdiDevice(AnyHdiDevice[ModelConfig, IPreparedModel]):
    """A chip with a driver of version 2.0 or 2.1.

    A vendor's package subclasses it, sets `vendor` and `kind`, and defines `open_driver`; for
    version 2.0 it also sets `nodes` to `V2_0`. For a driver that is already open, use
    `device_over`.
    """

    nodes = V2_1

    def _config(self, options: Options, model: Model) -> ModelConfig:
        fields = msgspec.structs.asdict(self._model_config(options))
        return ModelConfig(**fields, extensions={"ModelName": model.name.encode()})

    def _program(self, prepared: IPreparedModel, model: Model) -> Program:
        return HdiProgram(self._driver, prepared, model, self._format)


def device_over(driver: INnrtDevice, properties: Mapping[str, str] | None = None) -> HdiDevice:
    """Return a crosschip device for an open driver, which the caller closes.

    Raises:
        DeviceError: the chip is offline, or the driver has no such property or another version.
    """
    version = driver.GetVersion()
    if version[0] != 2:
        raise DeviceError(
            f"{driver.GetDeviceName()}: the driver has version {version[0]}.{version[1]} of the "
            "interface, not 2.0 or 2.1"
        )
    attributes = {**class_attributes(driver), "nodes": V2_1 if version >= V2_1.version else V2_0}
    class_: type[HdiDevice] = type("HdiDevice", (HdiDevice,), attributes)
    return class_(properties, driver=driver)


class HdiProgram(AnyHdiProgram[IPreparedModel]):
    """A prepared model as a program.

    Raises:
        DeviceError: the driver prepared the model for other sizes.
    """

    def __init__(
        self, driver: Driver, prepared: IPreparedModel, model: Model, format: Format
    ) -> None:
        super().__init__(driver, prepared, model, format)
        self._ranges = dynamic_ranges(model.inputs, *prepared.GetInputDimRanges())

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        for range_ in self._ranges:
            range_.check(inputs[range_.position].shape[range_.axis])
        return super().run(inputs)

    def _run(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        sizes = self._run_until_fitting(inputs, arena)
        return self._run_until_fitting(inputs, arena) if arena.grow(sizes) else sizes

    def _run_until_fitting(
        self, inputs: Sequence[IOTensor], arena: Arena
    ) -> Sequence[Sequence[int]]:
        """Run; enlarge output memory until it suffices. Return the shapes of the outputs."""
        while True:
            try:
                return self._prepared.Run(inputs, arena.output_tensors())
            except HdiError as error:
                is_short = error.code is NNRT_ReturnCode.NNRT_INSUFFICIENT_BUFFER
                if not (is_short and arena.double()):
                    raise
