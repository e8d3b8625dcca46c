"""NNRt's structures in Python: an array and its length are one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosschip.apis.nnrt.enumerations import OH_NN_DataType, OH_NN_TensorType


@dataclass(frozen=True, slots=True)
class OH_NN_QuantParam:
    """`real = (integer - zeroPoint) * scale`, for a whole tensor or for each channel.

    Attributes:
        numBits: how many bits the integers have; there are as many of these as scales.
        scale: the scales, one or one for each channel.
        zeroPoint: the integers that stand for 0.
    """

    numBits: Sequence[int]
    scale: Sequence[float]
    zeroPoint: Sequence[int]

    @property
    def quantCount(self) -> int:
        """The number of scales."""
        return len(self.scale)


@dataclass(frozen=True, slots=True)
class OH_NN_Tensor:
    """A tensor of a model.

    Attributes:
        dataType: the type of its elements.
        dimensions: a size for each axis; -1 where it is known only when the model runs.
        quantParam: how its integers stand for reals; `None` if they do not.
        type: what it is for.
    """

    dataType: OH_NN_DataType
    dimensions: Sequence[int] = ()
    quantParam: OH_NN_QuantParam | None = None
    type: OH_NN_TensorType = OH_NN_TensorType.OH_NN_TENSOR

    @property
    def dimensionCount(self) -> int:
        """The number of axes."""
        return len(self.dimensions)


@dataclass(frozen=True, slots=True, eq=False)
class OH_NN_Memory:
    """Memory for an input or output.

    Attributes:
        data: its bytes.
    """

    data: memoryview

    @property
    def length(self) -> int:
        """The number of bytes."""
        return len(self.data)
