"""The methods of a device and of a prepared model in versions 2.0 and 2.1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from enum import IntEnum

from crosschip.apis.nnrt.hdi.v1_0 import interface
from crosschip.apis.nnrt.hdi.v1_0.interface import (
    AnyNnrtDevice,
    AnyPreparedModel,
    HdiError,
    ReturnCode,
)
from crosschip.apis.nnrt.hdi.v1_0.types import IOTensor, SharedBuffer
from crosschip.apis.nnrt.hdi.v2_1.types import ModelConfig, NNRT_ReturnCode
from crosschip.ir import Error, UnsupportedError


class IPreparedModel(AnyPreparedModel):
    """A model that a device has compiled."""

    @abstractmethod
    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> Sequence[Sequence[int]]:
        """Compute the outputs.

        Args:
            inputs: the model's inputs, in order.
            outputs: the memory of its outputs, in order; their dimensions are ignored.

        Returns:
            The shape of each output.

        Raises:
            HdiError: an input does not match the model, an output's memory is too small
                (`NNRT_INSUFFICIENT_BUFFER`), a buffer is invalid, or the device failed.
        """

    @abstractmethod
    def GetInputDimRanges(self) -> tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]:
        """Return the minimum and the maximum sizes of each input; equal for static ones."""


class INnrtDevice(AnyNnrtDevice[ModelConfig, IPreparedModel]):
    """A chip's driver."""

    @abstractmethod
    def PrepareOfflineModel(
        self, modelCache: Sequence[SharedBuffer], config: ModelConfig
    ) -> IPreparedModel:
        """Load a model that was compiled in advance for this kind of device.

        Args:
            modelCache: the compiled model: the last input of the custom node of which an
                offline model consists.
            config: the configuration; the custom node's attributes are its extensions.

        Raises:
            HdiError: the model is damaged or another device's, or the device does not load
                offline models.
        """


_CODES: Mapping[IntEnum, NNRT_ReturnCode] = {
    ReturnCode.HDF_FAILURE: NNRT_ReturnCode.NNRT_FAILED,
    ReturnCode.HDF_ERR_NOT_SUPPORT: NNRT_ReturnCode.NNRT_NOT_SUPPORT,
    ReturnCode.HDF_ERR_INVALID_PARAM: NNRT_ReturnCode.NNRT_INVALID_PARAMETER,
    ReturnCode.HDF_ERR_INVALID_OBJECT: NNRT_ReturnCode.NNRT_INVALID_MODEL_CACHE,
    ReturnCode.HDF_ERR_MALLOC_FAIL: NNRT_ReturnCode.NNRT_OUT_OF_MEMORY,
    ReturnCode.HDF_ERR_TIMEOUT: NNRT_ReturnCode.NNRT_TIME_OUT,
    ReturnCode.HDF_ERR_DEVICE_BUSY: NNRT_ReturnCode.NNRT_DEVICE_BUSY,
    ReturnCode.HDF_ERR_IO: NNRT_ReturnCode.NNRT_INVALID_BUFFER,
    ReturnCode.HDF_ERR_BAD_FD: NNRT_ReturnCode.NNRT_INVALID_BUFFER,
}
"""The replacements of version 1.0's codes."""


class HdiErrors(interface.HdiErrors):
    """A mixin that converts exceptions to `HdiError` with the codes of versions 2.0 and 2.1."""

    def failure(self, error: Error) -> HdiError:
        if isinstance(error, UnsupportedError):
            return HdiError(NNRT_ReturnCode.NNRT_UNSUPPORTED_OP, str(error))
        failure = super().failure(error)
        return HdiError(_CODES[failure.code], str(failure)) if failure.code in _CODES else failure
