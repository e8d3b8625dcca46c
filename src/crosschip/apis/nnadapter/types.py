"""NNAdapter's operand types.

They are C's structures in Python: an array and its length become one list, and the union of
quantization parameters becomes one attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from crosschip.apis.nnadapter.enumerations import (
    NNAdapterOperandLayoutCode,
    NNAdapterOperandLifetimeCode,
    NNAdapterOperandPrecisionCode,
)


@dataclass(frozen=True, slots=True)
class NNAdapterSymmPerLayerQuantParams:
    """`real = integer * scale`.

    Attributes:
        scale: a positive number.
    """

    scale: float


@dataclass(frozen=True, slots=True)
class NNAdapterSymmPerChannelQuantParams:
    """`real = integer * scales[channel]`.

    Attributes:
        channel_dim: the channel axis, in the stored layout.
        scales: a positive number per channel.
    """

    channel_dim: int
    scales: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NNAdapterAsymmPerLayerQuantParams:
    """`real = (integer - zero_point) * scale`.

    Attributes:
        scale: a positive number.
        zero_point: the integer that represents 0.
    """

    scale: float
    zero_point: int


NNAdapterQuantParams = (
    NNAdapterSymmPerLayerQuantParams
    | NNAdapterSymmPerChannelQuantParams
    | NNAdapterAsymmPerLayerQuantParams
)


@dataclass(slots=True)
class NNAdapterOperandDimensionType:
    """The shape of an operand.

    Attributes:
        data: the size of each axis; `NNADAPTER_UNKNOWN` for a dynamic dimension.
        dynamic_data: the shapes that the operand may have; empty for any shape that matches
            `data`.
    """

    data: list[int] = field(default_factory=list)
    dynamic_data: list[list[int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The rank."""
        return len(self.data)

    @property
    def dynamic_count(self) -> int:
        """The number of listed shapes."""
        return len(self.dynamic_data)


@dataclass(slots=True)
class NNAdapterOperandType:
    """The type of an operand; access functions write its dimensions.

    Attributes:
        precision: the element type and kind of quantization.
        layout: the memory layout, for rank 4.
        lifetime: the source of the elements; set by the functions.
        dimensions: the shape, in the stored layout.
        quantization: the parameters that the precision requires; `None` if not quantized.
    """

    precision: NNAdapterOperandPrecisionCode
    layout: NNAdapterOperandLayoutCode = NNAdapterOperandLayoutCode.NNADAPTER_NCHW
    lifetime: NNAdapterOperandLifetimeCode = (
        NNAdapterOperandLifetimeCode.NNADAPTER_TEMPORARY_VARIABLE
    )
    dimensions: NNAdapterOperandDimensionType = field(default_factory=NNAdapterOperandDimensionType)
    quantization: NNAdapterQuantParams | None = None

    @classmethod
    def of(
        cls,
        precision: NNAdapterOperandPrecisionCode,
        data: Sequence[int] = (),
        quantization: NNAdapterQuantParams | None = None,
        *,
        layout: NNAdapterOperandLayoutCode = NNAdapterOperandLayoutCode.NNADAPTER_NCHW,
        dynamic_data: Sequence[Sequence[int]] = (),
    ) -> Self:
        """Create a type from its parts."""
        dimensions = NNAdapterOperandDimensionType(list(data), list(map(list, dynamic_data)))
        return cls(precision, layout, dimensions=dimensions, quantization=quantization)

    def copy(self) -> NNAdapterOperandType:
        """Return a copy whose dimensions can be written independently."""
        sizes = self.dimensions
        dimensions = NNAdapterOperandDimensionType(
            list(sizes.data), [list(shape) for shape in sizes.dynamic_data]
        )
        return NNAdapterOperandType(
            self.precision, self.layout, self.lifetime, dimensions, self.quantization
        )
