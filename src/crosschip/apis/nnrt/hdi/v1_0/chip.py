"""Adapter from a crosschip device to the driver interface."""

from __future__ import annotations

import hashlib
import hmac
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple, Protocol

import msgspec
import numpy as np

from crosschip.apis.nnrt.hdi.v1_0 import memory, types
from crosschip.apis.nnrt.hdi.v1_0.decomposition import decompose_model
from crosschip.apis.nnrt.hdi.v1_0.interface import (
    AnyNnrtDevice,
    AnyPreparedModel,
    Config,
    HdiError,
    HdiErrors,
    INnrtDevice,
    IPreparedModel,
    Prepared,
    ReturnCode,
    invalid,
    unsupported,
    with_codes,
)
from crosschip.apis.nnrt.hdi.v1_0.reader import element_type, read_model, read_parts
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes
from crosschip.apis.nnrt.hdi.v1_0.types import (
    DeviceStatus,
    DeviceType,
    IOTensor,
    ModelConfig,
    PerformanceMode,
    Priority,
    SharedBuffer,
)
from crosschip.hal import Device, Kind, Options, Performance, Precision, Program, Sizing, urgency
from crosschip.hal.conditions import Conditional, InputGuard
from crosschip.ir import Array, Model, TensorType, UnsupportedError
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


class AnyChip(HdiErrors, AnyNnrtDevice[Config, Prepared], Closing):
    """A crosschip device behind any version of the interface.

    Models are compiled for this device alone; operations that it declines are decomposed. A saved
    model is refused unless its digest, keyed with the secret, is correct.

    Args:
        device: the device, which the caller closes after this object.
        options: compile options that the interface has no setting for.
        priorities: whether the device respects `crosschip.hal.urgency`.
        secret: the key of digests, at most 64 bytes; without it, they detect damage but not
            manipulation.

    Attributes:
        alignment: the alignment of input memory, in bytes.
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
    def GetSupportedOperation(self, model: types.Model) -> Sequence[bool]:
        parts = read_parts(model, self.nodes)
        refused = set(parts.refused)
        if parts.model.operations:
            refused_operations = decompose_model(parts.model, self._device, self._options).refused
            refused |= {parts.nodes[index] for index in refused_operations}
        return [index not in refused for index in range(len(model.nodes))]

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
    def PrepareModel(self, model: types.Model, config: Config) -> Prepared:
        options = self._options_of(config)
        standard = simplify(self._renamed(read_model(model, self.nodes), config))
        if not self._supports_sizes(standard):
            raise unsupported(f"{self._device.name}: the sizes of inputs must be known")
        decomposed = decompose_model(standard, self._device, options)
        for index, reason in decomposed.refused.items():
            raise UnsupportedError(f"{standard.operations[index].name!r}: {reason}")
        program = self._device.compile(decomposed.model, options)
        return self._prepared(
            self._guarded(program, decomposed.model, options), decomposed.model, options, config
        )

    @with_codes
    def PrepareModelFromModelCache(
        self, modelCache: Sequence[SharedBuffer], config: Config
    ) -> Prepared:
        if len(modelCache) != 1:
            raise _invalid_cache(f"has 1 part, not {len(modelCache)}")
        record = memory.read(modelCache[0], constant=True).tobytes()
        content = record[_DIGEST:]
        if not hmac.compare_digest(record[:_DIGEST], self._digest(content)):
            raise _invalid_cache("is not as it was saved")
        try:
            saved = _DECODER.decode(content)
        except msgspec.MsgspecError as error:
            raise _invalid_cache(str(error)) from None
        options = self._options_of(config)
        if (saved.device, saved.options) != (self._signature(), repr(options)):
            raise HdiError(
                ReturnCode.HDF_ERR_INVALID_OBJECT,
                "the model was saved by another device, another version of it, or for other wishes",
            )
        model = from_bytes(saved.model)
        program = self._device.load(saved.program, model, options)
        return self._prepared(self._guarded(program, model, options), model, options, config)

    @with_codes
    def AllocateBuffer(self, length: int) -> SharedBuffer:
        buffer = memory.allocate(length)
        self._memories[buffer.fd] = _Memory(buffer, memory.map_buffer(buffer, writable=True))
        return buffer

    @with_codes
    def ReleaseBuffer(self, buffer: SharedBuffer) -> None:
        if self._allocated(buffer) is None:
            raise invalid(f"{buffer}: was not allocated by this device")
        del self._memories[buffer.fd]
        memory.release(buffer)

    def GetVersion(self) -> tuple[int, int]:
        return self.nodes.version

    def close(self) -> None:
        """Release all memory that the device allocated."""
        while self._memories:
            memory.release(self._memories.popitem()[1].buffer)

    def save(self, program: Program, model: Model, options: Options) -> SharedBuffer:
        """Save a program to memory from which the device can load it.

        Raises:
            HdiError: the device cannot save programs.
        """
        saved_program = program.save()
        if saved_program is None:
            raise unsupported(f"{self._device.name} does not save programs")
        record = _Saved(self._signature(), repr(options), to_bytes(model), saved_program)
        content = _ENCODER.encode(record)
        signed = np.frombuffer(self._digest(content) + content, np.uint8)
        descriptor = memory.create_constant([(0, signed)])
        return SharedBuffer(descriptor, signed.nbytes, 0, signed.nbytes)

    def data(self, buffer: SharedBuffer) -> Array:
        """Return the bytes of a buffer's data; device memory is already mapped."""
        allocated = self._allocated(buffer)
        if allocated is None:
            return memory.read(buffer)
        return allocated.bytes[buffer.offset : buffer.offset + buffer.dataSize]

    def output_view(self, buffer: SharedBuffer, type_: TensorType) -> Array | None:
        """Return the device memory of an output; `None` if runs cannot write to it directly."""
        allocated, shape = self._allocated(buffer), type_.static_shape
        dtype = type_.element_type.dtype
        if allocated is None or shape is None or 0 in shape:
            return None
        size = math.prod(shape) * dtype.itemsize
        if size > buffer.dataSize or buffer.offset % max(dtype.alignment, self.alignment):
            return None
        return allocated.bytes[buffer.offset : buffer.offset + size].view(dtype).reshape(shape)

    def _guarded(self, program: Program, model: Model, options: Options) -> Program:
        """Return the program, guarded against inputs for which the device's results are wrong."""
        guard = InputGuard(model, conditions_of(self._device, model, options))
        return Conditional(program, guard) if guard else program

    def _supports_sizes(self, model: Model) -> bool:
        """Return whether the device supports a model's dynamic dimensions."""
        if self._capabilities.sizing is Sizing.FREE:
            return True
        bounded = self._options.sizes.bounded if self.IsDynamicInputSupported() else frozenset()
        sizes = [size for operand in model.inputs.values() for size in operand.type.shape or ()]
        return all(isinstance(size, int) or name_of(size) in bounded for size in sizes)

    def _renamed(self, model: Model, config: Config) -> Model:
        """Return the model under the name that its configuration sets."""
        return model

    @abstractmethod
    def _prepared(
        self, program: Program, model: Model, options: Options, config: Config
    ) -> Prepared:
        """Return a program as a prepared model."""

    def _allocated(self, buffer: SharedBuffer) -> _Memory | None:
        """Return the device's memory for a buffer; `None` if foreign or out of bounds."""
        allocated = self._memories.get(buffer.fd)
        if allocated is None or allocated.buffer.bufferSize != buffer.bufferSize:
            return None
        is_inside = buffer.offset + buffer.dataSize <= buffer.bufferSize
        return allocated if is_inside else None

    def _options_of(self, config: ModelConfig) -> Options:
        """Return the compile options for a configuration.

        Raises:
            HdiError: the device does not support a setting.
        """
        if config.enableFloat16 and not self.IsFloat16PrecisionSupported():
            raise unsupported(f"{self._device.name} does not compute in float16")
        if config.mode and not self.IsPerformanceModeSupported():
            raise unsupported(f"{self._device.name} has no performance modes")
        if config.priority and not self.IsPrioritySupported():
            raise unsupported(f"{self._device.name} has no priorities")
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
    """A crosschip device as an `INnrtDevice`; see `AnyChip`."""

    nodes = V1_0

    def _prepared(
        self, program: Program, model: Model, options: Options, config: ModelConfig
    ) -> IPreparedModel:
        return PreparedModel(self, program, model, options, config.priority)


class _Memory(NamedTuple):
    """Memory that a device has allocated, with its mapping."""

    buffer: SharedBuffer
    bytes: Array


class _Saved(msgspec.Struct, frozen=True):
    """A saved program, with its device, options and model."""

    device: str
    options: str
    model: bytes
    program: bytes


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Saved)
_DIGEST = 32


def _invalid_cache(problem: str) -> HdiError:
    return invalid(f"the saved model {problem}")


class Memories(Protocol):
    """The memory interface of a device.

    Attributes:
        alignment: the alignment of input memory, in bytes.
    """

    alignment: int

    def data(self, buffer: SharedBuffer) -> Array:
        """Return the bytes of a buffer's data."""

    def output_view(self, buffer: SharedBuffer, type_: TensorType) -> Array | None:
        """Return the device memory of an output; `None` if runs cannot write to it directly."""

    def save(self, program: Program, model: Model, options: Options) -> SharedBuffer:
        """Save a program to memory from which the device can load it."""

    def GetVersion(self) -> tuple[int, int]:
        """Return the version of the interface."""


class AnyPrepared(HdiErrors, AnyPreparedModel):
    """The version-independent part of a prepared model.

    Args:
        chip: the device.
        program: the device's program.
        model: the model of the program.
        options: the program's compile options.
        priority: the priority of its runs.
    """

    def __init__(
        self,
        chip: Memories,
        program: Program,
        model: Model,
        options: Options,
        priority: Priority,
    ) -> None:
        self._chip = chip
        self._priority = priority
        self._program = program
        self._model = model
        self._options = options
        self._inputs = [operand.type for operand in model.inputs.values()]
        self._outputs = [operand.type for operand in model.outputs.values()]

    @with_codes
    def ExportModelCache(self) -> Sequence[SharedBuffer]:
        return [self._chip.save(self._program, self._model, self._options)]

    def run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        """Run the program; return each output's shape, and whether it fitted its memory.

        Raises:
            Error: an input does not match the model, a buffer is invalid, or the device failed.
        """
        for kind, tensors, declared in (
            ("inputs", inputs, self._inputs),
            ("outputs", outputs, self._outputs),
        ):
            if len(tensors) != len(declared):
                raise invalid(f"there are {len(tensors)} {kind}, but must be {len(declared)}")
        arrays = [self._array(*pair) for pair in zip(inputs, self._inputs, strict=True)]
        views = [
            self._chip.output_view(output.data, type_)
            for output, type_ in zip(outputs, self._outputs, strict=True)
        ]
        token = urgency.set(int(self._priority or urgency.get()))
        try:
            results = self._program.run_into(arrays, views)
        finally:
            urgency.reset(token)
        for rule, holds in zip(self._program.rules, results[len(outputs) :], strict=True):
            if not np.all(holds):
                raise HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, rule)
        fits = [
            self._write_output(*arguments)
            for arguments in zip(results[: len(outputs)], outputs, views, strict=True)
        ]
        return [list(array.shape) for array in results[: len(outputs)]], fits

    def GetVersion(self) -> tuple[int, int]:
        return self._chip.GetVersion()

    def _array(self, tensor: IOTensor, type_: TensorType) -> Array:
        """Return an input's elements, without a copy where possible."""
        context = f"input {tensor.name!r}"
        if element_type(tensor.dataType) is not type_.element_type:
            raise invalid(f"{context}: is {tensor.dataType.name}, not {type_.element_type}")
        shape = tuple(tensor.dimensions)
        if min(shape, default=0) < 0 or not TensorType(type_.element_type, shape).fits(
            TensorType(type_.element_type, type_.shape)
        ):
            raise invalid(f"{context}: has the sizes {list(shape)}, but must be {type_}")
        dtype = type_.element_type.dtype
        expected = math.prod(shape) * dtype.itemsize
        if tensor.data.dataSize != expected:
            raise invalid(f"{context}: takes {expected} bytes, not {tensor.data.dataSize}")
        content = self._chip.data(tensor.data)
        if dtype.kind == "b":
            content = (content != 0).view(np.uint8)
        alignment = max(dtype.alignment, self._chip.alignment)
        array: Array = memory.align(content, alignment).view(dtype)
        return array.reshape(shape)

    def _write_output(self, result: Array, tensor: IOTensor, view: Array | None) -> bool:
        """Write an output to its memory; return whether the memory is large enough."""
        if result is view:
            return True
        if result.nbytes > tensor.data.dataSize:
            return False
        if result.nbytes:
            memory.fill(tensor.data, result)
        return True


class PreparedModel(AnyPrepared, IPreparedModel):
    """A crosschip program as an `IPreparedModel`."""

    @with_codes
    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        return self.run(inputs, outputs)
