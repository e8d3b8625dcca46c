"""The methods of a device and of a prepared model, with the document's names.

What the document has as out parameters, these return; what it returns as a code, they raise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import Generic, TypeVar

from crosschip.apis.nnrt.hdi.v1_0.types import (
    DeviceStatus,
    DeviceType,
    IOTensor,
    Model,
    ModelConfig,
    SharedBuffer,
)
from crosschip.ir import DeviceError


class ReturnCode(IntEnum):
    """The codes of V1_0's methods: those of OpenHarmony's driver framework (`HDF_STATUS`)."""

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
        code: the code that it returns: a `ReturnCode`, or in later versions one of theirs.
    """

    def __init__(self, code: IntEnum, message: str) -> None:
        super().__init__(message)
        self.code = code


class AnyPreparedModel(ABC):
    """The methods that a model which a device has compiled has in all versions."""

    @abstractmethod
    def ExportModelCache(self) -> Sequence[SharedBuffer]:
        """Return the compiled model, from which the device prepares it again; the caller releases it.

        Raises:
            HdiError: the device does not save models.
        """

    @abstractmethod
    def GetVersion(self) -> tuple[int, int]:
        """Return the version of the interface."""


Config = TypeVar("Config", bound=ModelConfig)
Prepared = TypeVar("Prepared", bound=AnyPreparedModel)


class AnyNnrtDevice(ABC, Generic[Config, Prepared]):
    """The methods that a chip's driver has in all versions."""

    @abstractmethod
    def GetDeviceName(self) -> str:
        """Return the chip's name."""

    @abstractmethod
    def GetVendorName(self) -> str:
        """Return the name of its vendor."""

    @abstractmethod
    def GetDeviceType(self) -> DeviceType:
        """Return the sort of chip."""

    @abstractmethod
    def GetDeviceStatus(self) -> DeviceStatus:
        """Return the state that it is in."""

    @abstractmethod
    def GetSupportedOperation(self, model: Model) -> Sequence[bool]:
        """Tell of each node of a model, in order, whether the device runs it.

        Raises:
            HdiError: the model is damaged.
        """

    @abstractmethod
    def IsFloat16PrecisionSupported(self) -> bool:
        """Return whether it computes float32 models in float16 if asked to."""

    @abstractmethod
    def IsPerformanceModeSupported(self) -> bool:
        """Return whether a performance mode can be set."""

    @abstractmethod
    def IsPrioritySupported(self) -> bool:
        """Return whether a priority can be set."""

    @abstractmethod
    def IsDynamicInputSupported(self) -> bool:
        """Return whether sizes of inputs may be open."""

    @abstractmethod
    def IsModelCacheSupported(self) -> bool:
        """Return whether prepared models can be saved."""

    @abstractmethod
    def PrepareModel(self, model: Model, config: Config) -> Prepared:
        """Compile a model.

        Raises:
            HdiError: the model is damaged, or the device does not run it.
        """

    @abstractmethod
    def PrepareModelFromModelCache(
        self, modelCache: Sequence[SharedBuffer], config: Config
    ) -> Prepared:
        """Make a prepared model from what `AnyPreparedModel.ExportModelCache` gave.

        Raises:
            HdiError: it is damaged or of another device, or the device does not save models.
        """

    @abstractmethod
    def AllocateBuffer(self, length: int) -> SharedBuffer:
        """Memory that the device shares with its caller.

        Raises:
            HdiError: there is not so much.
        """

    @abstractmethod
    def ReleaseBuffer(self, buffer: SharedBuffer) -> None:
        """Give back what `AllocateBuffer` gave.

        Raises:
            HdiError: it is not the device's.
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
            outputs: where its outputs are to be written, in order. The sizes in these are not
                looked at.

        Returns:
            The sizes of each output, and whether it has been written: its memory may be too small.

        Raises:
            HdiError: an input does not fit the model, memory is not as it is said, or the device
                failed.
        """


class INnrtDevice(AnyNnrtDevice[ModelConfig, IPreparedModel]):
    """A chip, as its driver's service shows it."""
