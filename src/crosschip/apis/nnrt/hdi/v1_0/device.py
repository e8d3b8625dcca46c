"""Adapter from the driver interface to a crosschip device."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

import msgspec
import numpy as np

from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.arena import Arena, Driver, tensors
from crosschip.apis.nnrt.hdi.v1_0.interface import (
    AnyNnrtDevice,
    Config,
    HdiError,
    INnrtDevice,
    IPreparedModel,
    Prepared,
)
from crosschip.apis.nnrt.hdi.v1_0.reader import element_type, type_name
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes
from crosschip.apis.nnrt.hdi.v1_0.types import (
    DataType,
    DeviceStatus,
    DeviceType,
    Format,
    IOTensor,
    ModelConfig,
    PerformanceMode,
    Priority,
    SharedBuffer,
)
from crosschip.apis.nnrt.hdi.v1_0.writer import WrittenModel, write_model, write_parts
from crosschip.hal import (
    YES,
    Capabilities,
    CompileError,
    Device,
    Kind,
    Offer,
    Options,
    Performance,
    Precision,
    Program,
    Rule,
    Sizing,
    Support,
)
from crosschip.ir import (
    Array,
    DeviceError,
    Model,
    Operation,
    UnsupportedError,
)
from crosschip.mapping.rule import InexpressibleError
from crosschip.ops import Operator

T = TypeVar("T")

_KINDS = {
    DeviceType.CPU: Kind.CPU,
    DeviceType.GPU: Kind.GPU,
    DeviceType.ACCELERATOR: Kind.ACCELERATOR,
    DeviceType.OTHER: Kind.ACCELERATOR,
}
_TYPES = frozenset(element_type(code) for code in DataType if code)
_FORMATS = {"nhwc": Format.FORMAT_NHWC, "nchw": Format.FORMAT_NCHW}
_PRIORITIES = {item.name.removeprefix("PRIORITY_").lower(): item for item in Priority}


class AnyHdiDevice(Device, Generic[Config, Prepared]):
    """A chip with a driver of any version of the interface.

    Attributes:
        nodes: the nodes of the interface's version.
    """

    vendor = "unknown"
    kind = Kind.ACCELERATOR
    nodes: ClassVar[Nodes]

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        instance: str = "",
        driver: AnyNnrtDevice[Config, Prepared] | None = None,
    ) -> None:
        super().__init__(properties, instance)
        self._format = _property_value(self.properties, "format", _FORMATS, "nhwc")
        self._priority = _property_value(self.properties, "priority", _PRIORITIES, "none")
        self._driver = driver or self.open_driver()
        status = self._driver.GetDeviceStatus()
        if status not in (DeviceStatus.AVAILABLE, DeviceStatus.BUSY):
            raise DeviceError(f"{self._driver.GetDeviceName()}: the chip is {status.name}")
        if self._priority and not self._driver.IsPrioritySupported():
            raise DeviceError(f"{self._driver.GetDeviceName()} has no priorities; leave it out")
        self._version = "{}.{}".format(*self._driver.GetVersion())

    def open_driver(self) -> AnyNnrtDevice[Config, Prepared]:
        """Open the driver of the chip that `instance` names.

        Raises:
            DeviceError: the driver cannot be opened.
        """
        raise DeviceError(f"{type(self).__name__} does not say how its driver is opened")

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            "format": "the memory layout of images: nhwc (the default) or nchw",
            "priority": "the priority of all runs: none (the default), low, medium or high",
        }

    @property
    def version(self) -> str:
        return f"HDI {self._version}"

    def capabilities(self) -> Capabilities:
        has_float16 = self._driver.IsFloat16PrecisionSupported()
        return Capabilities(
            precisions=frozenset(
                {Precision.FLOAT32, *([Precision.FLOAT16] if has_float16 else [])}
            ),
            types=_TYPES,
            sizing=Sizing.FREE if self._driver.IsDynamicInputSupported() else Sizing.FIXED,
        )

    def operators(self) -> Collection[str]:
        return [operator.type for operator in self.nodes.by_operator]

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        if not self._driver.IsPerformanceModeSupported():
            return {}
        modes = [mode for mode in Performance if mode is not Performance.NONE]
        return {mode: {"PerformanceMode": _mode(mode).name} for mode in modes}

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        config = self._model_config(options)
        return {
            "enableFloat16": str(config.enableFloat16).lower(),
            "mode": config.mode.name,
            "priority": config.priority.name,
        }

    def query(self, model: Model, options: Options) -> Offer:
        with write_parts(model, self._format, self.nodes) as written:
            nodes = written.model.nodes
            answers = self._driver.GetSupportedOperation(written.model) if nodes else ()
        if len(answers) != len(nodes):
            raise DeviceError(f"the driver gives {len(answers)} answers about {len(nodes)} nodes")
        return Offer(
            [
                _answer(operation, index, written, answers, self.nodes)
                for index, operation in enumerate(model.operations)
            ]
        )

    def compile(self, model: Model, options: Options) -> Program:
        try:
            with write_model(model, self._format, self.nodes, decompose=False) as written:
                prepared = self._driver.PrepareModel(written.model, self._config(options, model))
            return self._program(prepared, model)
        except (UnsupportedError, HdiError) as error:
            raise CompileError(str(error)) from error

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        parts = [np.frombuffer(part, np.uint8) for part in _SAVED.decode(saved)]
        buffers: list[SharedBuffer] = []
        try:
            for part in parts:
                descriptor = memory.create_constant([(0, part)])
                buffers.append(SharedBuffer(descriptor, max(part.nbytes, 1), 0, part.nbytes))
            prepared = self._driver.PrepareModelFromModelCache(
                buffers, self._config(options, model)
            )
        finally:
            for buffer in buffers:
                memory.release(buffer)
        return self._program(prepared, model)

    @abstractmethod
    def _config(self, options: Options, model: Model) -> Config:
        """Return the configuration of a model."""

    @abstractmethod
    def _program(self, prepared: Prepared, model: Model) -> Program:
        """Return a prepared model as a program."""

    def _model_config(self, options: Options) -> ModelConfig:
        has_modes = self._driver.IsPerformanceModeSupported()
        mode = _mode(options.performance) if has_modes else PerformanceMode.PERFORMANCE_NONE
        return ModelConfig(options.precision is Precision.FLOAT16, mode, self._priority)


class HdiDevice(AnyHdiDevice[ModelConfig, IPreparedModel]):
    """A chip with a driver of version 1.0.

    A vendor's package subclasses it, sets `vendor` and `kind`, and defines `open_driver`. For a
    driver that is already open, use `device_over`.
    """

    nodes = V1_0

    def _config(self, options: Options, model: Model) -> ModelConfig:
        return self._model_config(options)

    def _program(self, prepared: IPreparedModel, model: Model) -> Program:
        return HdiProgram(self._driver, prepared, model, self._format)


def device_over(driver: INnrtDevice, properties: Mapping[str, str] | None = None) -> HdiDevice:
    """Return a crosschip device for an open driver, which the caller closes.

    Raises:
        DeviceError: the chip is offline, or the driver has no such property.
    """
    class_: type[HdiDevice] = type("HdiDevice", (HdiDevice,), class_attributes(driver))
    return class_(properties, driver=driver)


def class_attributes(driver: Driver) -> dict[str, object]:
    """Return the class attributes of a driver's device."""
    return {
        "__doc__": f"The chip {driver.GetDeviceName()}, behind NNRt's driver interface.",
        "vendor": driver.GetVendorName(),
        "kind": _KINDS[driver.GetDeviceType()],
    }


class AnyHdiProgram(Program, Generic[Prepared]):
    """A prepared model of any version as a program.

    Args:
        driver: the driver that prepared it.
        prepared: the prepared model.
        model: the model that was prepared.
        format: the memory layout of its images.
    """

    def __init__(self, driver: Driver, prepared: Prepared, model: Model, format: Format) -> None:
        self._driver = driver
        self._prepared = prepared
        self._inputs = tensors(model.inputs, format)
        self._outputs = tensors(model.outputs, format)
        self._spare: deque[Arena] = deque()

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            arena = self._spare.pop()
        except IndexError:
            arena = Arena(self._driver, self._inputs, self._outputs)
        try:
            return arena.results(self._run(arena.write_inputs(inputs), arena))
        finally:
            self._spare.append(arena)

    @abstractmethod
    def _run(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        """Run with written inputs; return the shapes of the outputs, which are in their memory.

        Raises:
            DeviceError: an output was not written.
        """

    def save(self) -> bytes | None:
        if not self._driver.IsModelCacheSupported():
            return None
        buffers = self._prepared.ExportModelCache()
        try:
            return _ENCODER.encode([memory.read(buffer).tobytes() for buffer in buffers])
        finally:
            for buffer in buffers:
                memory.release(buffer)

    def close(self) -> None:
        while self._spare:
            self._spare.pop().close()


class HdiProgram(AnyHdiProgram[IPreparedModel]):
    """A prepared model as a program."""

    def _run(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        sizes, written = self._prepared.Run(inputs, arena.output_tensors())
        if not all(written) and arena.grow(sizes):
            sizes, written = self._prepared.Run(inputs, arena.output_tensors())
        if not all(written):
            raise DeviceError("the driver has not written all outputs")
        return sizes


_ENCODER = msgspec.msgpack.Encoder()
_SAVED = msgspec.msgpack.Decoder(list[bytes])


def _answer(
    operation: Operation, index: int, written: WrittenModel, answers: Sequence[bool], nodes: Nodes
) -> Support:
    """Return the driver's answer about all nodes of an operation."""
    error = written.refused.get(index)
    if isinstance(error, InexpressibleError):
        return Support.no(
            operation, error.slot, f"{error.why} ({_version_name(nodes)})", Rule.VALUE
        )
    if error is not None:
        has_node = isinstance(operation, Operator) and type(operation) in nodes.by_operator
        if not has_node:
            return Support.no(
                operation, "", f"{_version_name(nodes)} has no node for it", Rule.OPERATOR
            )
        return Support.no(operation, "", str(error), Rule.ELEMENT_TYPE)
    declined = [written.model.nodes[node] for node in written.nodes[index] if not answers[node]]
    if not declined:
        return YES
    names = ", ".join(dict.fromkeys(type_name(node).upper() for node in declined))
    return Support.no(operation, "", f"the driver declines {names}", Rule.OPERATOR)


def _version_name(nodes: Nodes) -> str:
    return "HDI V{}_{}".format(*nodes.version)


def _mode(mode: Performance) -> PerformanceMode:
    return PerformanceMode[f"PERFORMANCE_{mode.name}"]


def _property_value(
    properties: Mapping[str, str], name: str, values: Mapping[str, T], default: str
) -> T:
    """Return a property's value; raise `DeviceError` if the value is unknown."""
    key = properties.get(name, default)
    if key not in values:
        raise DeviceError(f"{name} is {key!r}, but must be one of {', '.join(values)}")
    return values[key]
