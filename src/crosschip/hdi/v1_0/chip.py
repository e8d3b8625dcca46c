"""A crosschip device as a device of the interface, for programs that speak it."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import ClassVar, NamedTuple, ParamSpec, TypeVar

import msgspec
import numpy as np

from crosschip.hal import Device, Kind, Options, Performance, Precision, Program, Sizing, urgency
from crosschip.hdi.v1_0 import memory
from crosschip.hdi.v1_0.fitting import fitted
from crosschip.hdi.v1_0.interface import HdiError, INnrtDevice, IPreparedModel, ReturnCode
from crosschip.hdi.v1_0.reading import element_type, read_model, read_parts
from crosschip.hdi.v1_0.rows import V1_0, Nodes
from crosschip.hdi.v1_0.types import (
    DeviceStatus,
    DeviceType,
    IOTensor,
    Model,
    ModelConfig,
    PerformanceMode,
    Priority,
    SharedBuffer,
)
from crosschip.ir import Array, Error, ModelError, TensorType, UnsupportedError
from crosschip.ir import Model as StandardModel
from crosschip.ir.closing import Closing
from crosschip.ops.definition.serialization import from_bytes, to_bytes
from crosschip.passes import simplify

P = ParamSpec("P")
T = TypeVar("T")

_KINDS = {
    Kind.CPU: DeviceType.CPU,
    Kind.GPU: DeviceType.GPU,
    Kind.ACCELERATOR: DeviceType.ACCELERATOR,
}
_MODES: Mapping[PerformanceMode, Performance] = {
    PerformanceMode[f"PERFORMANCE_{mode.name}"]: mode for mode in Performance
}


def _with_codes(method: Callable[P, T]) -> Callable[P, T]:
    """Decorator: errors of other kinds become `HdiError`."""

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except HdiError:
            raise
        except UnsupportedError as error:
            raise HdiError(ReturnCode.HDF_ERR_NOT_SUPPORT, str(error)) from error
        except ModelError as error:
            raise HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, str(error)) from error
        except Error as error:
            raise HdiError(ReturnCode.HDF_FAILURE, str(error)) from error

    return called


class Chip(INnrtDevice, Closing):
    """A crosschip device as an `INnrtDevice`.

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

    nodes: ClassVar[Nodes] = V1_0

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

    @_with_codes
    def GetSupportedOperation(self, model: Model) -> Sequence[bool]:
        found = read_parts(model, self.nodes)
        refused = set(found.refused)
        if found.model.operations:
            told = fitted(found.model, self._device, self._options).refused
            refused |= {found.nodes[place] for place in told}
        return [place not in refused for place in range(len(model.nodes))]

    def IsFloat16PrecisionSupported(self) -> bool:
        return Precision.FLOAT16 in self._capabilities.precisions

    def IsPerformanceModeSupported(self) -> bool:
        return bool(self._device.modes())

    def IsPrioritySupported(self) -> bool:
        return self._priorities

    def IsDynamicInputSupported(self) -> bool:
        return self._capabilities.sizing is Sizing.FREE

    def IsModelCacheSupported(self) -> bool:
        return type(self._device).load is not Device.load

    @_with_codes
    def PrepareModel(self, model: Model, config: ModelConfig) -> IPreparedModel:
        options = self._told(config)
        standard = simplify(read_model(model, self.nodes))
        is_open = any(o.type.static_shape is None for o in standard.inputs.values())
        if is_open and not self.IsDynamicInputSupported():
            raise UnsupportedError(f"{self._device.name}: the sizes of inputs must be known")
        fit = fitted(standard, self._device, options)
        for place, reason in fit.refused.items():
            raise UnsupportedError(f"{standard.operations[place].name!r}: {reason}")
        program = self._device.compile(fit.model, options)
        return _Prepared(self, program, fit.model, options, config.priority)

    @_with_codes
    def PrepareModelFromModelCache(
        self, modelCache: Sequence[SharedBuffer], config: ModelConfig
    ) -> IPreparedModel:
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
        options = self._told(config)
        if (saved.device, saved.options) != (self._signature(), repr(options)):
            raise HdiError(
                ReturnCode.HDF_ERR_INVALID_OBJECT,
                "the model was saved by another device, another version of it, or for other wishes",
            )
        model = from_bytes(saved.model)
        program = self._device.load(saved.program, model, options)
        return _Prepared(self, program, model, options, config.priority)

    @_with_codes
    def AllocateBuffer(self, length: int) -> SharedBuffer:
        buffer = memory.allocate(length)
        self._memories[buffer.fd] = _Memory(buffer, memory.mapped(buffer, writable=True))
        return buffer

    @_with_codes
    def ReleaseBuffer(self, buffer: SharedBuffer) -> None:
        if self._own(buffer) is None:
            raise HdiError(
                ReturnCode.HDF_ERR_INVALID_PARAM, f"{buffer}: was not allocated by this device"
            )
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
            raise HdiError(
                ReturnCode.HDF_ERR_NOT_SUPPORT, f"{self._device.name} does not save programs"
            )
        kept = _Saved(self._signature(), repr(options), to_bytes(model), held)
        content = _ENCODER.encode(kept)
        whole = np.frombuffer(self._digest(content) + content, np.uint8)
        descriptor = memory.holding([(0, whole)])
        return SharedBuffer(descriptor, whole.nbytes, 0, whole.nbytes)

    def data(self, buffer: SharedBuffer) -> Array:
        """The data in a buffer, which is mapped once if the device has allocated it."""
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

    def _own(self, buffer: SharedBuffer) -> _Memory | None:
        """The memory that the device has allocated for a buffer, all of whose data is in it."""
        own = self._memories.get(buffer.fd)
        if own is None or own.buffer.bufferSize != buffer.bufferSize:
            return None
        inside = buffer.offset + buffer.dataSize <= buffer.bufferSize
        return own if inside else None

    def _told(self, config: ModelConfig) -> Options:
        """The options of a model's wishes.

        Raises:
            HdiError: the device cannot keep them.
        """
        if config.enableFloat16 and not self.IsFloat16PrecisionSupported():
            raise _lacking(f"{self._device.name} does not compute in float16")
        if config.mode and not self.IsPerformanceModeSupported():
            raise _lacking(f"{self._device.name} has no performance modes")
        if config.priority and not self.IsPrioritySupported():
            raise _lacking(f"{self._device.name} has no priorities")
        precision = Precision.FLOAT16 if config.enableFloat16 else self._options.precision
        mode = _MODES[config.mode] if config.mode else self._options.performance
        return replace(self._options, precision=precision, performance=mode)

    def _signature(self) -> str:
        device = self._device
        told = (device.vendor, device.name, device.version, sorted(device.properties.items()))
        return repr((*told, self._capabilities.tied_to))

    def _digest(self, content: bytes) -> bytes:
        return hashlib.blake2b(content, digest_size=_DIGEST, key=self._secret).digest()


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


class _Prepared(IPreparedModel):
    """A program of a crosschip device as an `IPreparedModel`."""

    def __init__(
        self,
        chip: Chip,
        program: Program,
        model: StandardModel,
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

    @_with_codes
    def ExportModelCache(self) -> Sequence[SharedBuffer]:
        return [self._chip.saved(self._program, self._model, self._options)]

    @_with_codes
    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        for what, given, types in (
            ("inputs", inputs, self._inputs),
            ("outputs", outputs, self._outputs),
        ):
            if len(given) != len(types):
                raise _wrong(f"there are {len(given)} {what}, but must be {len(types)}")
        arrays = [self._array(*pair) for pair in zip(inputs, self._inputs, strict=True)]
        places = [
            self._chip.place(one.data, type_)
            for one, type_ in zip(outputs, self._outputs, strict=True)
        ]
        before = urgency.set(int(self._priority or urgency.get()))
        try:
            made = self._program.run_into(arrays, places)
        finally:
            urgency.reset(before)
        self._check_rules(made[len(outputs) :])
        enough = [
            self._hand_out(*each)
            for each in zip(made[: len(outputs)], outputs, places, strict=True)
        ]
        return [list(array.shape) for array in made[: len(outputs)]], enough

    def GetVersion(self) -> tuple[int, int]:
        return self._chip.nodes.version

    def _array(self, tensor: IOTensor, type_: TensorType) -> Array:
        """An input, in the memory that it comes in."""
        where = f"input {tensor.name!r}"
        if element_type(tensor.dataType) is not type_.element_type:
            raise _wrong(f"{where}: is {tensor.dataType.name}, not {type_.element_type}")
        shape = tuple(tensor.dimensions)
        if min(shape, default=0) < 0 or not TensorType(type_.element_type, shape).fits(
            TensorType(type_.element_type, type_.shape)
        ):
            raise _wrong(f"{where}: has the sizes {list(shape)}, but must be {type_}")
        dtype = type_.element_type.dtype
        expected = math.prod(shape) * dtype.itemsize
        if tensor.data.dataSize != expected:
            raise _wrong(f"{where}: takes {expected} bytes, not {tensor.data.dataSize}")
        held = self._chip.data(tensor.data)
        if dtype.kind == "b":
            held = (held != 0).view(np.uint8)
        alignment = max(dtype.alignment, self._chip.alignment)
        array: Array = memory.aligned(held, alignment).view(dtype)
        return array.reshape(shape)

    def _check_rules(self, kept: Sequence[Array]) -> None:
        """`HdiError` if a rule of a definition was broken in the run."""
        for rule, truth in zip(self._program.rules, kept, strict=True):
            if not np.all(truth):
                raise HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, rule)

    def _hand_out(self, made: Array, tensor: IOTensor, place: Array | None) -> bool:
        """Write an output to its memory; whether that is large enough."""
        if made is place:
            return True
        if made.nbytes > tensor.data.dataSize:
            return False
        if made.nbytes:
            memory.fill(tensor.data, made)
        return True


def _damaged(how: str) -> HdiError:
    return HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, f"the saved model {how}")


def _lacking(what: str) -> HdiError:
    return HdiError(ReturnCode.HDF_ERR_NOT_SUPPORT, what)


def _wrong(what: str) -> HdiError:
    return HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, what)
