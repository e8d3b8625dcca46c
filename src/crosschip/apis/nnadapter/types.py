"""Types of NNAdapter's operands.

They are C's structures in Python: an array and its length are one list, and the union of
quantization parameters is one member.
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
        channel_dim: the axis of the channels, in the order in which the axes are stored.
        scales: a positive number for each channel.
    """

    channel_dim: int
    scales: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NNAdapterAsymmPerLayerQuantParams:
    """`real = (integer - zero_point) * scale`.

    Attributes:
        scale: a positive number.
        zero_point: the integer that stands for 0.
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
    """The sizes of an operand.

    Attributes:
        data: a size for each axis; `NNADAPTER_UNKNOWN` where it is known only when the model runs.
        dynamic_data: the shapes that there may be; empty if there may be any that fits `data`.
    """

    data: list[int] = field(default_factory=list)
    dynamic_data: list[list[int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of axes."""
        return len(self.data)

    @property
    def dynamic_count(self) -> int:
        """The number of shapes that there may be."""
        return len(self.dynamic_data)


@dataclass(slots=True)
class NNAdapterOperandType:
    """The type of an operand; access functions write into its dimensions.

    Attributes:
        precision: the type of the elements.
        layout: the order in which the axes are stored, if there are four.
        lifetime: where the elements come from; the functions set it.
        dimensions: the sizes, in the order in which they are stored.
        quantization: the parameters that the precision asks for; `None` if it is not quantized.
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
        """A type from its parts."""
        dimensions = NNAdapterOperandDimensionType(list(data), list(map(list, dynamic_data)))
        return cls(precision, layout, dimensions=dimensions, quantization=quantization)

    def copy(self) -> NNAdapterOperandType:
        """The same type, whose dimensions can be written without changing this one's."""
        sizes = self.dimensions
        dimensions = NNAdapterOperandDimensionType(
            list(sizes.data), [list(shape) for shape in sizes.dynamic_data]
        )
        return NNAdapterOperandType(
            self.precision, self.layout, self.lifetime, dimensions, self.quantization
        )
