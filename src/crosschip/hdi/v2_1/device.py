"""A device of versions 2.0 and 2.1 as a crosschip device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from crosschip.hal import CompileError, Options, Program
from crosschip.hdi.v1_0.arena import Arena, Driver
from crosschip.hdi.v1_0.device import AnyHdiDevice, AnyHdiProgram, told_by
from crosschip.hdi.v1_0.interface import HdiError
from crosschip.hdi.v1_0.types import Format, IOTensor
from crosschip.hdi.v2_1.chip import out_of_range
from crosschip.hdi.v2_1.interface import INnrtDevice, IPreparedModel
from crosschip.hdi.v2_1.nodes import V2_0, V2_1
from crosschip.hdi.v2_1.types import ModelConfig, NNRT_ReturnCode
from crosschip.ir import Array, DeviceError, Model


class HdiDevice(AnyHdiDevice[ModelConfig, IPreparedModel]):
    """A chip behind NNRt's driver interface (HDI V2_1).

    A vendor's package subclasses it, says what it is (`vendor`, `kind`) and defines `open_driver`;
    a driver of version 2.0 has the `nodes` `V2_0`. For a driver that is open already there is
    `device_over`.
    """

    nodes = V2_1

    def _config(self, options: Options, model: Model) -> ModelConfig:
        wishes = msgspec.structs.asdict(self._wishes(options))
        return ModelConfig(**wishes, extensions={"ModelName": model.name.encode()})

    def _program(self, prepared: IPreparedModel, model: Model) -> Program:
        return HdiProgram(self._driver, prepared, model, self._format)


def device_over(driver: INnrtDevice, properties: Mapping[str, str] | None = None) -> HdiDevice:
    """A crosschip device over a driver that is open, which stays the caller's to close.

    Raises:
        DeviceError: the chip is offline, or the driver has no such property or another version.
    """
    version = driver.GetVersion()
    if version[0] != 2:
        raise DeviceError(
            f"{driver.GetDeviceName()}: the driver has version {version[0]}.{version[1]} of the "
            "interface, not 2.0 or 2.1"
        )
    about = {**told_by(driver), "nodes": V2_1 if version >= V2_1.version else V2_0}
    made: type[HdiDevice] = type("HdiDevice", (HdiDevice,), about)
    return made(properties, driver=driver)


class HdiProgram(AnyHdiProgram[IPreparedModel]):
    """A prepared model as a program.

    Raises:
        CompileError: the driver prepared it for other sizes than the model's.
        DeviceError: its ranges are not those of such inputs.
    """

    def __init__(
        self, driver: Driver, prepared: IPreparedModel, model: Model, format: Format
    ) -> None:
        super().__init__(driver, prepared, model, format)
        self._bounds = _bounds(model, *prepared.GetInputDimRanges())

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        for bound in self._bounds:
            size = inputs[bound.input].shape[bound.axis]
            if not bound.least <= size <= bound.most:
                raise out_of_range(bound.name, bound.axis, size, bound.least, bound.most)
        return super().run(inputs)

    def _made(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        sizes = self._tried(inputs, arena)
        return self._tried(inputs, arena) if arena.grow(sizes) else sizes

    def _tried(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        """The sizes of a run's outputs, with ever more room until the driver has enough."""
        while True:
            try:
                return self._prepared.Run(inputs, arena.places())
            except HdiError as error:
                is_short = error.code is NNRT_ReturnCode.NNRT_INSUFFICIENT_BUFFER
                if not (is_short and arena.double()):
                    raise


class _Bound(NamedTuple):
    """The range of an open size.

    Attributes:
        name: of the input.
        input: the input's place.
        axis: the size's.
        least: the smallest value.
        most: the greatest.
    """

    name: str
    input: int
    axis: int
    least: int
    most: int


def _bounds(
    model: Model, least: Sequence[Sequence[int]], most: Sequence[Sequence[int]]
) -> Sequence[_Bound]:
    shapes = [operand.type.shape or () for operand in model.inputs.values()]
    ranks = list(map(len, shapes))
    if not ranks == list(map(len, least)) == list(map(len, most)):
        raise DeviceError(
            f"the driver gives the ranges {least} to {most} for inputs of {ranks} sizes"
        )
    found = []
    for place, (name, shape) in enumerate(zip(model.inputs, shapes, strict=True)):
        for axis, (size, *ends) in enumerate(zip(shape, least[place], most[place], strict=True)):
            if not isinstance(size, int):
                found.append(_Bound(name, place, axis, *ends))
            elif not ends[0] <= size <= ends[1]:
                raise CompileError(str(out_of_range(name, axis, size, *ends)))
    return found
