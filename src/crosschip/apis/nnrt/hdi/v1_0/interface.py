"""The abstract methods of a device and of a prepared model, with the document's names.

They return what the document declares as out parameters, and raise what it returns as a code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, TypeVar

from crosschip.apis.nnrt.hdi.v1_0.types import (
    DeviceStatus,
    DeviceType,
    IOTensor,
    Model,
    ModelConfig,
    SharedBuffer,
)
from crosschip.ir import DeviceError, Error, ModelError, UnsupportedError


class ReturnCode(IntEnum):
    """The result codes of version 1.0, OpenHarmony's `HDF_STATUS`."""

    HDF_SUCCESS = 0
    HDF_FAILURE = -1
    HDF_ERR_NOT_SUPPORT = -2
    HDF_ERR_INVALID_PARAM = -3
    HDF_ERR_INVALID_OBJECT = -4
    HDF_ERR_MALLOC_FAIL = -6
    HDF_ERR_TIMEOUT = -7
    HDF_ERR_DEVICE_BUSY = -16
    HDF_ERR_IO = -17
    HDF_ERR_BAD_FD = -18


class HdiError(DeviceError):
    """A method of the interface failed.

    Attributes:
        code: the code to return: a `ReturnCode`, or a later version's.
    """

    def __init__(self, code: IntEnum, message: str) -> None:
        super().__init__(message)
        self.code = code


class AnyPreparedModel(ABC):
    """The version-independent methods of a prepared model."""

    @abstractmethod
    def ExportModelCache(self) -> Sequence[SharedBuffer]:
        """Return the compiled model, which the device can load again; the caller releases it.

        Raises:
            HdiError: the device cannot save models.
        """

    @abstractmethod
    def GetVersion(self) -> tuple[int, int]:
        """Return the version of the interface."""


Config = TypeVar("Config", bound=ModelConfig)
Prepared = TypeVar("Prepared", bound=AnyPreparedModel)


class AnyNnrtDevice(ABC, Generic[Config, Prepared]):
    """The version-independent methods of a chip's driver."""

    @abstractmethod
    def GetDeviceName(self) -> str:
        """Return the chip's name."""

    @abstractmethod
    def GetVendorName(self) -> str:
        """Return the chip's vendor."""

    @abstractmethod
    def GetDeviceType(self) -> DeviceType:
        """Return the kind of chip."""

    @abstractmethod
    def GetDeviceStatus(self) -> DeviceStatus:
        """Return the chip's state."""

    @abstractmethod
    def GetSupportedOperation(self, model: Model) -> Sequence[bool]:
        """Return for each node of a model whether the device supports it.

        Raises:
            HdiError: the model is invalid.
        """

    @abstractmethod
    def IsFloat16PrecisionSupported(self) -> bool:
        """Return whether the device can compute float32 models in float16."""

    @abstractmethod
    def IsPerformanceModeSupported(self) -> bool:
        """Return whether a performance mode can be set."""

    @abstractmethod
    def IsPrioritySupported(self) -> bool:
        """Return whether a priority can be set."""

    @abstractmethod
    def IsDynamicInputSupported(self) -> bool:
        """Return whether inputs may have dynamic dimensions."""

    @abstractmethod
    def IsModelCacheSupported(self) -> bool:
        """Return whether the device can save prepared models."""

    @abstractmethod
    def PrepareModel(self, model: Model, config: Config) -> Prepared:
        """Compile a model.

        Raises:
            HdiError: the model is invalid, or the device does not support it.
        """

    @abstractmethod
    def PrepareModelFromModelCache(
        self, modelCache: Sequence[SharedBuffer], config: Config
    ) -> Prepared:
        """Load a model that `AnyPreparedModel.ExportModelCache` returned.

        Raises:
            HdiError: the model is damaged or another device's, or the device cannot load
                models.
        """

    @abstractmethod
    def AllocateBuffer(self, length: int) -> SharedBuffer:
        """Allocate memory that device and caller share.

        Raises:
            HdiError: memory is exhausted.
        """

    @abstractmethod
    def ReleaseBuffer(self, buffer: SharedBuffer) -> None:
        """Release memory that `AllocateBuffer` returned.

        Raises:
            HdiError: the device did not allocate it.
        """

    @abstractmethod
    def GetVersion(self) -> tuple[int, int]:
        """Return the version of the interface."""


class IPreparedModel(AnyPreparedModel):
    """A model that a device has compiled."""

    @abstractmethod
    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        """Compute the outputs.

        Args:
            inputs: the model's inputs, in order.
            outputs: the memory of its outputs, in order; their dimensions are ignored.

        Returns:
            The shape of each output, and whether its memory was large enough to write it.

        Raises:
            HdiError: an input does not match the model, a buffer is invalid, or the device
                failed.
        """


class INnrtDevice(AnyNnrtDevice[ModelConfig, IPreparedModel]):
    """A chip's driver."""


class HdiErrors:
    """A mixin that converts exceptions to `HdiError` with the codes of version 1.0."""

    def failure(self, error: Error) -> HdiError:
        """Convert an error."""
        if isinstance(error, HdiError):
            return error
        code = ReturnCode.HDF_FAILURE
        if isinstance(error, UnsupportedError):
            code = ReturnCode.HDF_ERR_NOT_SUPPORT
        elif isinstance(error, ModelError):
            code = ReturnCode.HDF_ERR_INVALID_PARAM
        return HdiError(code, str(error))


S = TypeVar("S", bound=HdiErrors)
P = ParamSpec("P")
T = TypeVar("T")


def with_codes(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method: convert its errors to `HdiError`."""

    @wraps(method)
    def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except Error as error:
            converted = self.failure(error)
            if converted is error:
                raise
            raise converted from error

    return wrapper


def unsupported(message: str) -> HdiError:
    """Return an error for an unsupported feature."""
    return HdiError(ReturnCode.HDF_ERR_NOT_SUPPORT, message)


def invalid(message: str) -> HdiError:
    """Return an error for an invalid argument."""
    return HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, message)
