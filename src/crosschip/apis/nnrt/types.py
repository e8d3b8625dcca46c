"""NNRt's structures in Python: an array and its length become one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosschip.apis.nnrt.enumerations import OH_NN_DataType, OH_NN_TensorType


@dataclass(frozen=True, slots=True)
class OH_NN_QuantParam:
    """`real = (integer - zeroPoint) * scale`, per tensor or per channel.

    Attributes:
        numBits: the integers' numbers of bits, one per scale.
        scale: the scales, one or one per channel.
        zeroPoint: the integers that represent 0.
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
        dataType: the element type.
        dimensions: the shape, with -1 for dynamic dimensions.
        quantParam: the quantization parameters, or `None`.
        type: data, or an operator's parameter.
    """

    dataType: OH_NN_DataType
    dimensions: Sequence[int] = ()
    quantParam: OH_NN_QuantParam | None = None
    type: OH_NN_TensorType = OH_NN_TensorType.OH_NN_TENSOR

    @property
    def dimensionCount(self) -> int:
        """The rank."""
        return len(self.dimensions)


@dataclass(frozen=True, slots=True, eq=False)
class OH_NN_Memory:
    """Memory of an input or output.

    Attributes:
        data: the bytes.
    """

    data: memoryview

    @property
    def length(self) -> int:
        """The number of bytes."""
        return len(self.data)
