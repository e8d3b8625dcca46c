"""A device of the interface as a crosschip device, so that it is one like any other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, TypeVar

import msgspec
import numpy as np

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
from crosschip.hdi.v1_0 import memory
from crosschip.hdi.v1_0.interface import HdiError, INnrtDevice, IPreparedModel
from crosschip.hdi.v1_0.reading import element_type, type_name
from crosschip.hdi.v1_0.rows import V1_0, Nodes
from crosschip.hdi.v1_0.types import (
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
from crosschip.hdi.v1_0.writing import WrittenModel, tensor_of, write_model, write_parts
from crosschip.ir import (
    Array,
    DeviceError,
    Model,
    Operand,
    Operation,
    TensorType,
    UnsupportedError,
)
from crosschip.ops import Operator
from crosschip.ops.definition.translation import InexpressibleError

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
_FIRST_GUESS = 4096
"""The bytes for an output whose size shows in a run only, until it is known better."""


class HdiDevice(Device):
    """A chip behind NNRt's driver interface (HDI V1_0).

    A vendor's package subclasses it, says what it is (`vendor`, `kind`) and defines `open_driver`.
    For a driver that is open already there is `device_over`.
    """

    vendor = "unknown"
    kind = Kind.ACCELERATOR
    nodes: ClassVar[Nodes] = V1_0

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        instance: str = "",
        driver: INnrtDevice | None = None,
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

    def open_driver(self) -> INnrtDevice:
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
        told = [mode for mode in Performance if mode is not Performance.NONE]
        return {mode: {"PerformanceMode": _mode(mode).name} for mode in told}

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        config = self._config(options)
        return {
            "enableFloat16": str(config.enableFloat16).lower(),
            "mode": config.mode.name,
            "priority": config.priority.name,
        }

    def query(self, model: Model, options: Options) -> Offer:
        with write_parts(model, self._format, self.nodes) as written:
            nodes = written.model.nodes
            told = self._driver.GetSupportedOperation(written.model) if nodes else ()
        if len(told) != len(nodes):
            raise DeviceError(f"the driver gives {len(told)} answers about {len(nodes)} nodes")
        return Offer(
            [
                _answer(operation, place, written, told, self.nodes)
                for place, operation in enumerate(model.operations)
            ]
        )

    def compile(self, model: Model, options: Options) -> Program:
        try:
            with write_model(model, self._format, self.nodes, decomposing=False) as written:
                prepared = self._driver.PrepareModel(written.model, self._config(options))
        except (UnsupportedError, HdiError) as error:
            raise CompileError(str(error)) from error
        return HdiProgram(self._driver, prepared, model, self._format)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        parts = [np.frombuffer(part, np.uint8) for part in _SAVED.decode(saved)]
        held: list[SharedBuffer] = []
        try:
            for part in parts:
                descriptor = memory.holding([(0, part)])
                held.append(SharedBuffer(descriptor, max(part.nbytes, 1), 0, part.nbytes))
            prepared = self._driver.PrepareModelFromModelCache(held, self._config(options))
        finally:
            for buffer in held:
                memory.release(buffer)
        return HdiProgram(self._driver, prepared, model, self._format)

    def _config(self, options: Options) -> ModelConfig:
        able = self._driver.IsPerformanceModeSupported()
        mode = _mode(options.performance) if able else PerformanceMode.PERFORMANCE_NONE
        return ModelConfig(options.precision is Precision.FLOAT16, mode, self._priority)


def device_over(driver: INnrtDevice, properties: Mapping[str, str] | None = None) -> HdiDevice:
    """A crosschip device over a driver that is open, which stays the caller's to close.

    Raises:
        DeviceError: the chip is offline, or the driver has no such property.
    """
    about = {
        "__doc__": f"The chip {driver.GetDeviceName()}, behind NNRt's driver interface.",
        "vendor": driver.GetVendorName(),
        "kind": _KINDS[driver.GetDeviceType()],
    }
    made: type[HdiDevice] = type("HdiDevice", (HdiDevice,), about)
    return made(properties, driver=driver)


class HdiProgram(Program):
    """A prepared model as a program.

    Args:
        driver: the driver that prepared it.
        prepared: the prepared model.
        model: the model that it is of.
        format: the order in which its images are stored.
    """

    def __init__(
        self, driver: INnrtDevice, prepared: IPreparedModel, model: Model, format: Format
    ) -> None:
        self._driver = driver
        self._prepared = prepared
        self._inputs = _tensors(model.inputs, format)
        self._outputs = _tensors(model.outputs, format)
        self._spare: deque[_Arena] = deque()

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            arena = self._spare.pop()
        except IndexError:
            arena = _Arena(self._driver, self._inputs, self._outputs)
        try:
            read = arena.written(inputs)
            sizes, enough = self._prepared.Run(read, arena.places())
            if not all(enough):
                arena.grow(sizes)
                sizes, enough = self._prepared.Run(read, arena.places())
            return arena.results(sizes, enough)
        finally:
            self._spare.append(arena)

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


class _Place:
    """An input or output of runs: a tensor, and memory for its elements."""

    def __init__(self, driver: INnrtDevice, tensor: IOTensor, type_: TensorType) -> None:
        self._driver = driver
        self._tensor = tensor
        self.type = type_
        self._buffer: SharedBuffer | None = None
        self._bytes: Array = np.empty(0, np.uint8)

    def of(self, shape: Sequence[int], size: int) -> IOTensor:
        """The tensor, with memory for so many bytes."""
        if self._buffer is None or size > self._bytes.nbytes:
            self.close()
            self._buffer = self._driver.AllocateBuffer(max(size, 1))
            whole = memory.mapped(self._buffer, writable=True)
            self._bytes = whole[self._buffer.offset :]
        data = msgspec.structs.replace(self._buffer, dataSize=size)
        return msgspec.structs.replace(self._tensor, dimensions=tuple(shape), data=data)

    def write(self, array: Array) -> IOTensor:
        """The tensor, with the elements of an array in its memory."""
        tensor = self.of(array.shape, array.nbytes)
        np.copyto(self._bytes[: array.nbytes].view(array.dtype).reshape(array.shape), array)
        return tensor

    def room(self) -> IOTensor:
        """The tensor, with memory for what will be written as far as its size is known."""
        shape = self.type.static_shape
        if shape is None:
            return self.of((), max(self._bytes.nbytes, _FIRST_GUESS))
        return self.of(shape, math.prod(shape) * self.type.element_type.dtype.itemsize)

    def read(self, shape: Sequence[int]) -> Array:
        """The elements that a run has written."""
        size = self._size(shape)
        if size > self._bytes.nbytes:
            raise DeviceError(f"the driver made {list(shape)}, which it had no room for")
        held = self._bytes[:size].copy().view(self.type.element_type.dtype)
        return held.reshape(tuple(shape))

    def grow(self, shape: Sequence[int]) -> None:
        """Make room for an output of these sizes."""
        self.of(shape, max(self._size(shape), self._bytes.nbytes))

    def close(self) -> None:
        """Give the memory back."""
        if self._buffer is not None:
            self._driver.ReleaseBuffer(self._buffer)
            self._buffer = None

    def _size(self, shape: Sequence[int]) -> int:
        if min(shape, default=0) < 0:
            raise DeviceError(f"the driver made an output of the sizes {list(shape)}")
        return math.prod(shape) * self.type.element_type.dtype.itemsize


class _Arena:
    """Memory for the inputs and outputs of one run at a time."""

    def __init__(
        self,
        driver: INnrtDevice,
        inputs: Sequence[tuple[IOTensor, TensorType]],
        outputs: Sequence[tuple[IOTensor, TensorType]],
    ) -> None:
        self._inputs = [_Place(driver, *one) for one in inputs]
        self._outputs = [_Place(driver, *one) for one in outputs]

    def written(self, inputs: Sequence[Array]) -> Sequence[IOTensor]:
        """The inputs, with their elements."""
        return [place.write(array) for place, array in zip(self._inputs, inputs, strict=True)]

    def places(self) -> Sequence[IOTensor]:
        """The outputs, with room for them."""
        return [place.room() for place in self._outputs]

    def grow(self, sizes: Sequence[Sequence[int]]) -> None:
        """Make room for outputs of these sizes."""
        for place, shape in zip(self._outputs, sizes, strict=True):
            place.grow(shape)

    def results(self, sizes: Sequence[Sequence[int]], enough: Sequence[bool]) -> Sequence[Array]:
        """Copies of the outputs.

        Raises:
            DeviceError: they are not there, or not as many as the model's.
        """
        if len(sizes) != len(self._outputs) or not all(enough):
            raise DeviceError("the driver has not written all outputs")
        return [place.read(shape) for place, shape in zip(self._outputs, sizes, strict=True)]

    def close(self) -> None:
        """Give all memory back."""
        for place in (*self._inputs, *self._outputs):
            place.close()


_ENCODER = msgspec.msgpack.Encoder()
_SAVED = msgspec.msgpack.Decoder(list[bytes])


def _tensors(
    operands: Mapping[str, Operand], format: Format
) -> Sequence[tuple[IOTensor, TensorType]]:
    found = []
    for name, operand in operands.items():
        kept = tensor_of(operand.type, format)
        found.append((IOTensor(name, kept.dataType, (), format, SharedBuffer()), operand.type))
    return found


def _answer(
    operation: Operation, place: int, written: WrittenModel, told: Sequence[bool], nodes: Nodes
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
    lacking = [written.model.nodes[node] for node in written.nodes[place] if not told[node]]
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
