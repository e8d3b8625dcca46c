"""A crosschip device as a device of the interface, for programs that speak it."""

from __future__ import annotations

import hashlib
import hmac
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np

from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.failures import Failing, lacking, with_codes, wrong
from crosschip.apis.nnrt.hdi.v1_0.fitting import fitted
from crosschip.apis.nnrt.hdi.v1_0.interface import (
    AnyNnrtDevice,
    Config,
    HdiError,
    INnrtDevice,
    IPreparedModel,
    Prepared,
    ReturnCode,
)
from crosschip.apis.nnrt.hdi.v1_0.prepared import PreparedModel
from crosschip.apis.nnrt.hdi.v1_0.reading import read_model, read_parts
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes
from crosschip.apis.nnrt.hdi.v1_0.types import (
    DeviceStatus,
    DeviceType,
    Model,
    ModelConfig,
    PerformanceMode,
    SharedBuffer,
)
from crosschip.hal import Device, Kind, Options, Performance, Precision, Program, Sizing
from crosschip.hal.conditions import Conditional, InputGuard
from crosschip.ir import Array, TensorType, UnsupportedError
from crosschip.ir import Model as StandardModel
from crosschip.ir.closing import Closing
from crosschip.ir.dimension import name_of
from crosschip.lowering.narrowing import conditions_of
from crosschip.ops.definition.serialization import from_bytes, to_bytes
from crosschip.passes import simplify

_KINDS = {
    Kind.CPU: DeviceType.CPU,
    Kind.GPU: DeviceType.GPU,
    Kind.ACCELERATOR: DeviceType.ACCELERATOR,
}
_MODES: Mapping[PerformanceMode, Performance] = {
    PerformanceMode[f"PERFORMANCE_{mode.name}"]: mode for mode in Performance
}


class AnyChip(Failing, AnyNnrtDevice[Config, Prepared], Closing):
    """A crosschip device as a device of any version of the interface.

    Models are compiled for the device alone, split into simpler operators where it wants that.
    Saved models are refused unless they are, bit for bit, what a chip with the same secret saved.

    Args:
        device: the device; stays the caller's to close, after this.
        options: what callers of the interface cannot say.
        priorities: whether the device heeds `crosschip.hal.urgency`.
        secret: 64 bytes at most; without it, saved models are only safe from damage, not from
            somebody who means harm.

    Attributes:
        alignment: the bytes to a multiple of which the memory of inputs is aligned.
        nodes: the nodes of the interface's version.
    """

    nodes: ClassVar[Nodes]

    def __init__(
        self,
        device: Device,
        options: Options | None = None,
        *,
        priorities: bool = False,
        secret: bytes = b"",
    ) -> None:
        self._device = device
        self._options = options or Options()
        self._priorities = priorities
        self._secret = secret
        self._capabilities = device.capabilities()
        self.alignment = self._capabilities.alignment
        self._memories: dict[int, _Memory] = {}

    def GetDeviceName(self) -> str:
        return self._device.name

    def GetVendorName(self) -> str:
        return self._device.vendor

    def GetDeviceType(self) -> DeviceType:
        return _KINDS.get(self._device.kind, DeviceType.OTHER)

    def GetDeviceStatus(self) -> DeviceStatus:
        return DeviceStatus.AVAILABLE

    @with_codes
    def GetSupportedOperation(self, model: Model) -> Sequence[bool]:
        read = read_parts(model, self.nodes)
        refused = set(read.refused)
        if read.model.operations:
            refused_operations = fitted(read.model, self._device, self._options).refused
            refused |= {read.nodes[place] for place in refused_operations}
        return [place not in refused for place in range(len(model.nodes))]

    def IsFloat16PrecisionSupported(self) -> bool:
        return Precision.FLOAT16 in self._capabilities.precisions

    def IsPerformanceModeSupported(self) -> bool:
        return bool(self._device.modes())

    def IsPrioritySupported(self) -> bool:
        return self._priorities

    def IsDynamicInputSupported(self) -> bool:
        sizing, ranges = self._capabilities.sizing, self._options.sizes.ranges
        return sizing is Sizing.FREE or (sizing is Sizing.BOUNDED and bool(ranges))

    def IsModelCacheSupported(self) -> bool:
        return type(self._device).load is not Device.load

    @with_codes
    def PrepareModel(self, model: Model, config: Config) -> Prepared:
        options = self._options_of(config)
        standard = simplify(self._called(read_model(model, self.nodes), config))
        if not self._takes_sizes(standard):
            raise lacking(f"{self._device.name}: the sizes of inputs must be known")
        fit = fitted(standard, self._device, options)
        for place, reason in fit.refused.items():
            raise UnsupportedError(f"{standard.operations[place].name!r}: {reason}")
        program = self._device.compile(fit.model, options)
        return self._prepared(
            self._within_range(program, fit.model, options), fit.model, options, config
        )

    @with_codes
    def PrepareModelFromModelCache(
        self, modelCache: Sequence[SharedBuffer], config: Config
    ) -> Prepared:
        if len(modelCache) != 1:
            raise _damaged(f"has 1 part, not {len(modelCache)}")
        held = memory.elements(modelCache[0], constant=True).tobytes()
        content = held[_DIGEST:]
        if not hmac.compare_digest(held[:_DIGEST], self._digest(content)):
            raise _damaged("is not as it was saved")
        try:
            saved = _DECODER.decode(content)
        except msgspec.MsgspecError as error:
            raise _damaged(str(error)) from None
        options = self._options_of(config)
        if (saved.device, saved.options) != (self._signature(), repr(options)):
            raise HdiError(
                ReturnCode.HDF_ERR_INVALID_OBJECT,
                "the model was saved by another device, another version of it, or for other wishes",
            )
        model = from_bytes(saved.model)
        program = self._device.load(saved.program, model, options)
        return self._prepared(self._within_range(program, model, options), model, options, config)

    @with_codes
    def AllocateBuffer(self, length: int) -> SharedBuffer:
        buffer = memory.allocate(length)
        self._memories[buffer.fd] = _Memory(buffer, memory.mapped(buffer, writable=True))
        return buffer

    @with_codes
    def ReleaseBuffer(self, buffer: SharedBuffer) -> None:
        if self._own(buffer) is None:
            raise wrong(f"{buffer}: was not allocated by this device")
        del self._memories[buffer.fd]
        memory.release(buffer)

    def GetVersion(self) -> tuple[int, int]:
        return self.nodes.version

    def close(self) -> None:
        """Release all memory that the device allocated."""
        while self._memories:
            memory.release(self._memories.popitem()[1].buffer)

    def saved(self, program: Program, model: StandardModel, options: Options) -> SharedBuffer:
        """Memory that holds a program, from which the device makes it again.

        Raises:
            HdiError: it cannot be saved.
        """
        held = program.save()
        if held is None:
            raise lacking(f"{self._device.name} does not save programs")
        record = _Saved(self._signature(), repr(options), to_bytes(model), held)
        content = _ENCODER.encode(record)
        whole = np.frombuffer(self._digest(content) + content, np.uint8)
        descriptor = memory.holding([(0, whole)])
        return SharedBuffer(descriptor, whole.nbytes, 0, whole.nbytes)

    def data(self, buffer: SharedBuffer) -> Array:
        """Return the data in a buffer, which is mapped once if the device has allocated it."""
        own = self._own(buffer)
        if own is None:
            return memory.elements(buffer)
        return own.bytes[buffer.offset : buffer.offset + buffer.dataSize]

    def place(self, buffer: SharedBuffer, type_: TensorType) -> Array | None:
        """Where in the device's own memory an output of known shape can be written."""
        own, shape = self._own(buffer), type_.static_shape
        dtype = type_.element_type.dtype
        if own is None or shape is None or 0 in shape:
            return None
        size = math.prod(shape) * dtype.itemsize
        if size > buffer.dataSize or buffer.offset % max(dtype.alignment, self.alignment):
            return None
        return own.bytes[buffer.offset : buffer.offset + size].view(dtype).reshape(shape)

    def _within_range(self, program: Program, model: StandardModel, options: Options) -> Program:
        """Return a program that refuses runs which the device would compute wrong."""
        guard = InputGuard(model, conditions_of(self._device, model, options))
        return Conditional(program, guard) if guard else program

    def _takes_sizes(self, model: StandardModel) -> bool:
        """Return whether the device compiles the open sizes of a model's inputs."""
        if self._capabilities.sizing is Sizing.FREE:
            return True
        bounded = self._options.sizes.bounded if self.IsDynamicInputSupported() else frozenset()
        sizes = [size for operand in model.inputs.values() for size in operand.type.shape or ()]
        return all(isinstance(size, int) or name_of(size) in bounded for size in sizes)

    def _called(self, model: StandardModel, config: Config) -> StandardModel:
        """Return a model with the name that its wishes give it."""
        return model

    @abstractmethod
    def _prepared(
        self, program: Program, model: StandardModel, options: Options, config: Config
    ) -> Prepared:
        """Return a program as a prepared model."""

    def _own(self, buffer: SharedBuffer) -> _Memory | None:
        """Return the memory that the device has allocated for a buffer, all of whose data is in it."""
        own = self._memories.get(buffer.fd)
        if own is None or own.buffer.bufferSize != buffer.bufferSize:
            return None
        inside = buffer.offset + buffer.dataSize <= buffer.bufferSize
        return own if inside else None

    def _options_of(self, config: ModelConfig) -> Options:
        """Return the options of a model's wishes.

        Raises:
            HdiError: the device cannot keep them.
        """
        if config.enableFloat16 and not self.IsFloat16PrecisionSupported():
            raise lacking(f"{self._device.name} does not compute in float16")
        if config.mode and not self.IsPerformanceModeSupported():
            raise lacking(f"{self._device.name} has no performance modes")
        if config.priority and not self.IsPrioritySupported():
            raise lacking(f"{self._device.name} has no priorities")
        precision = Precision.FLOAT16 if config.enableFloat16 else self._options.precision
        mode = _MODES[config.mode] if config.mode else self._options.performance
        return replace(self._options, precision=precision, performance=mode)

    def _signature(self) -> str:
        device = self._device
        identity = (device.vendor, device.name, device.version, sorted(device.properties.items()))
        return repr((*identity, self._capabilities.tied_to))

    def _digest(self, content: bytes) -> bytes:
        return hashlib.blake2b(content, digest_size=_DIGEST, key=self._secret).digest()


class Chip(AnyChip[ModelConfig, IPreparedModel], INnrtDevice):
    """A crosschip device as an `INnrtDevice`; all is said at `AnyChip`."""

    nodes = V1_0

    def _prepared(
        self, program: Program, model: StandardModel, options: Options, config: ModelConfig
    ) -> IPreparedModel:
        return PreparedModel(self, program, model, options, config.priority)


class _Memory(NamedTuple):
    """Memory that a device has allocated, and all its bytes."""

    buffer: SharedBuffer
    bytes: Array


class _Saved(msgspec.Struct, frozen=True):
    """A saved program, with what it was saved by and for, and the model that it is of."""

    device: str
    options: str
    model: bytes
    program: bytes


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Saved)
_DIGEST = 32


def _damaged(how: str) -> HdiError:
    return wrong(f"the saved model {how}")
