"""The methods of a device and of a prepared model since 2.0; 2.1 has the same."""

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
            outputs: where its outputs are to be written, in order. The sizes in these are not
                looked at.

        Returns:
            The sizes of each output.

        Raises:
            HdiError: an input does not fit the model, there is no room for an output
                (`NNRT_INSUFFICIENT_BUFFER`), memory is not as it is said, or the device failed.
        """

    @abstractmethod
    def GetInputDimRanges(self) -> tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]:
        """Return the smallest sizes of each input, and the greatest; the same where a size is known."""


class INnrtDevice(AnyNnrtDevice[ModelConfig, IPreparedModel]):
    """A chip, as its driver's service shows it."""

    @abstractmethod
    def PrepareOfflineModel(
        self, modelCache: Sequence[SharedBuffer], config: ModelConfig
    ) -> IPreparedModel:
        """Make a prepared model from one that was compiled elsewhere, for this sort of device.

        Args:
            modelCache: the compiled model: the last input of the custom node that is all of an
                offline model.
            config: the wishes; the custom node's attributes are its extensions.

        Raises:
            HdiError: it is damaged or of another device, or the device takes none.
        """
