"""The methods of a device and of a prepared model in versions 2.0 and 2.1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from crosschip.apis.nnrt.hdi.v1_0.interface import AnyNnrtDevice, AnyPreparedModel
from crosschip.apis.nnrt.hdi.v1_0.types import IOTensor, SharedBuffer
from crosschip.apis.nnrt.hdi.v2_1.types import ModelConfig


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
