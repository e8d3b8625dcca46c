"""A device of the interface as a crosschip device, so that it is one like any other."""

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
from crosschip.apis.nnrt.hdi.v1_0.reading import element_type, type_name
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes
from crosschip.apis.nnrt.hdi.v1_0.types import (
    DataType,
    DeviceStatus,
    DeviceType,
    Format,
    IOTensor,
    ModelConfig,
    Node,
    PerformanceMode,
    Priority,
    SharedBuffer,
)
from crosschip.apis.nnrt.hdi.v1_0.writing import WrittenModel, write_model, write_parts
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
_PRIORITIES = {one.name.removeprefix("PRIORITY_").lower(): one for one in Priority}


class AnyHdiDevice(Device, Generic[Config, Prepared]):
    """A chip behind NNRt's driver interface of any version.

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
        self._format = _chosen(self.properties, "format", _FORMATS, "nhwc")
        self._priority = _chosen(self.properties, "priority", _PRIORITIES, "none")
        self._driver = driver or self.open_driver()
        status = self._driver.GetDeviceStatus()
        if status not in (DeviceStatus.AVAILABLE, DeviceStatus.BUSY):
            raise DeviceError(f"{self._driver.GetDeviceName()}: the chip is {status.name}")
        if self._priority and not self._driver.IsPrioritySupported():
            raise DeviceError(f"{self._driver.GetDeviceName()} has no priorities; leave it out")
        self._version = "{}.{}".format(*self._driver.GetVersion())

    def open_driver(self) -> AnyNnrtDevice[Config, Prepared]:
        """The driver of the chip that `instance` names.

        Raises:
            DeviceError: it cannot be opened.
        """
        raise DeviceError(f"{type(self).__name__} does not say how its driver is opened")

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            "format": "the order in which images are handed over: nhwc (the default) or nchw",
            "priority": "the priority of all runs: none (the default), low, medium or high",
        }

    @property
    def version(self) -> str:
        return f"HDI {self._version}"

    def capabilities(self) -> Capabilities:
        half = self._driver.IsFloat16PrecisionSupported()
        return Capabilities(
            precisions=frozenset({Precision.FLOAT32, *([Precision.FLOAT16] if half else [])}),
            types=_TYPES,
            sizing=Sizing.FREE if self._driver.IsDynamicInputSupported() else Sizing.FIXED,
        )

    def operators(self) -> Collection[str]:
        return [operator.type for operator in self.nodes.uses]

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
                _answer(operation, place, written, answers, self.nodes)
                for place, operation in enumerate(model.operations)
            ]
        )

    def compile(self, model: Model, options: Options) -> Program:
        try:
            with write_model(model, self._format, self.nodes, decomposing=False) as written:
                prepared = self._driver.PrepareModel(written.model, self._config(options, model))
            return self._program(prepared, model)
        except (UnsupportedError, HdiError) as error:
            raise CompileError(str(error)) from error

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        parts = [np.frombuffer(part, np.uint8) for part in _SAVED.decode(saved)]
        held: list[SharedBuffer] = []
        try:
            for part in parts:
                descriptor = memory.holding([(0, part)])
                held.append(SharedBuffer(descriptor, max(part.nbytes, 1), 0, part.nbytes))
            prepared = self._driver.PrepareModelFromModelCache(held, self._config(options, model))
        finally:
            for buffer in held:
                memory.release(buffer)
        return self._program(prepared, model)

    @abstractmethod
    def _config(self, options: Options, model: Model) -> Config:
        """The wishes for a model."""

    @abstractmethod
    def _program(self, prepared: Prepared, model: Model) -> Program:
        """A prepared model as a program."""

    def _model_config(self, options: Options) -> ModelConfig:
        able = self._driver.IsPerformanceModeSupported()
        mode = _mode(options.performance) if able else PerformanceMode.PERFORMANCE_NONE
        return ModelConfig(options.precision is Precision.FLOAT16, mode, self._priority)


class HdiDevice(AnyHdiDevice[ModelConfig, IPreparedModel]):
    """A chip behind NNRt's driver interface (HDI V1_0).

    A vendor's package subclasses it, says what it is (`vendor`, `kind`) and defines `open_driver`.
    For a driver that is open already there is `device_over`.
    """

    nodes = V1_0

    def _config(self, options: Options, model: Model) -> ModelConfig:
        return self._model_config(options)

    def _program(self, prepared: IPreparedModel, model: Model) -> Program:
        return HdiProgram(self._driver, prepared, model, self._format)


def device_over(driver: INnrtDevice, properties: Mapping[str, str] | None = None) -> HdiDevice:
    """A crosschip device over a driver that is open, which stays the caller's to close.

    Raises:
        DeviceError: the chip is offline, or the driver has no such property.
    """
    class_: type[HdiDevice] = type("HdiDevice", (HdiDevice,), told_by(driver))
    return class_(properties, driver=driver)


def told_by(driver: Driver) -> dict[str, object]:
    """The attributes of the class of a driver's device."""
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
        model: the model that it is of.
        format: the order in which its images are stored.
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
            return arena.results(self._run(arena.written(inputs), arena))
        finally:
            self._spare.append(arena)

    @abstractmethod
    def _run(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        """The sizes of the outputs, which are in their memory.

        Raises:
            DeviceError: they are not.
        """

    def save(self) -> bytes | None:
        if not self._driver.IsModelCacheSupported():
            return None
        held = self._prepared.ExportModelCache()
        try:
            return _ENCODER.encode([memory.elements(buffer).tobytes() for buffer in held])
        finally:
            for buffer in held:
                memory.release(buffer)

    def close(self) -> None:
        while self._spare:
            self._spare.pop().close()


class HdiProgram(AnyHdiProgram[IPreparedModel]):
    """A prepared model as a program."""

    def _run(self, inputs: Sequence[IOTensor], arena: Arena) -> Sequence[Sequence[int]]:
        sizes, enough = self._prepared.Run(inputs, arena.places())
        if not all(enough) and arena.grow(sizes):
            sizes, enough = self._prepared.Run(inputs, arena.places())
        if not all(enough):
            raise DeviceError("the driver has not written all outputs")
        return sizes


_ENCODER = msgspec.msgpack.Encoder()
_SAVED = msgspec.msgpack.Decoder(list[bytes])


def _answer(
    operation: Operation, place: int, written: WrittenModel, answers: Sequence[bool], nodes: Nodes
) -> Support:
    """The driver's answer about an operation: about all nodes that it is written as."""
    error = written.refused.get(place)
    if isinstance(error, InexpressibleError):
        return Support.no(operation, error.slot, f"{error.why} ({_named(nodes)})", Rule.VALUE)
    if error is not None:
        known = isinstance(operation, Operator) and type(operation) in nodes.uses
        if not known:
            return Support.no(operation, "", f"{_named(nodes)} has no node for it", Rule.OPERATOR)
        return Support.no(operation, "", str(error), Rule.ELEMENT_TYPE)
    lacking = [written.model.nodes[node] for node in written.nodes[place] if not answers[node]]
    if not lacking:
        return YES
    return Support.no(operation, "", f"the driver declines {_listed(lacking)}", Rule.OPERATOR)


def _named(nodes: Nodes) -> str:
    return "HDI V{}_{}".format(*nodes.version)


def _listed(nodes: Sequence[Node]) -> str:
    return ", ".join(dict.fromkeys(type_name(node).upper() for node in nodes))


def _mode(mode: Performance) -> PerformanceMode:
    return PerformanceMode[f"PERFORMANCE_{mode.name}"]


def _chosen(properties: Mapping[str, str], name: str, known: Mapping[str, T], usual: str) -> T:
    """The meaning of a property.

    Raises:
        DeviceError: it has none.
    """
    word = properties.get(name, usual)
    if word not in known:
        raise DeviceError(f"{name} is {word!r}, but must be one of {', '.join(known)}")
    return known[word]
