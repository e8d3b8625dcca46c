"""Types of operands, from C's structures to the Python face's, and back."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

from crosschip.apis.nnadapter import (
    NNADAPTER_MAX_SIZE_OF_DIMENSIONS,
    NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS,
    NNADAPTER_UNKNOWN,
    NNAdapterAsymmPerLayerQuantParams,
    NNAdapterOperandDimensionType,
    NNAdapterOperandLayoutCode,
    NNAdapterOperandPrecisionCode,
    NNAdapterOperandType,
    NNAdapterSymmPerChannelQuantParams,
    NNAdapterSymmPerLayerQuantParams,
)
from crosschip.apis.nnadapter.operands import QUANTIZED
from crosschip.apis.nnadapter.results import invalid, misshapen
from crosschip.apis.nnadapter.types import NNAdapterQuantParams

E = TypeVar("E", bound=IntEnum)


class Written(NamedTuple):
    """A structure of C, with what it points to.

    Attributes:
        pointer: the structure.
        scales: those that it points to, if there are.
    """

    pointer: Any
    scales: Any


class Types:
    """Reads and writes C's `NNAdapterOperandType`.

    Args:
        ffi: the library's declarations.
    """

    def __init__(self, ffi: Any) -> None:
        self._ffi = ffi
        self._pointer = ffi.typeof("NNAdapterOperandType *")
        self._size = ffi.sizeof("NNAdapterOperandType")

    def new(self) -> Any:
        """An empty structure."""
        return self._ffi.new(self._pointer)

    def copy(self, pointer: Any) -> Any:
        """A copy of a structure; it points to the same scales."""
        copy = self._ffi.new(self._pointer)
        self._ffi.memmove(copy, pointer, self._size)
        return copy

    def read(self, pointer: Any) -> NNAdapterOperandType:
        """A type as the face has it; codes that there are not are left to it to refuse.

        Raises:
            Failure: there are more sizes or shapes than the structure has places for, or no scales.
        """
        dimensions = pointer.dimensions
        data = self.sizes(dimensions)
        shapes = dimensions.dynamic_count
        if shapes > NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS:
            most = NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS
            raise misshapen(f"{shapes} shapes are more than {most}")
        dynamic = [list(dimensions.dynamic_data[row])[: len(data)] for row in range(shapes)]
        return NNAdapterOperandType(
            _member(NNAdapterOperandPrecisionCode, pointer.precision),
            _member(NNAdapterOperandLayoutCode, pointer.layout),
            dimensions=NNAdapterOperandDimensionType(data, dynamic),
            quantization=self._quantization(pointer, data),
        )

    def sizes(self, dimensions: Any) -> list[int]:
        """The sizes that a structure has.

        Raises:
            Failure: there are more than it has places for.
        """
        count: int = dimensions.count
        if count > NNADAPTER_MAX_SIZE_OF_DIMENSIONS:
            raise misshapen(f"{count} axes are more than {NNADAPTER_MAX_SIZE_OF_DIMENSIONS}")
        return self._ffi.unpack(dimensions.data, count) if count else []

    def written(self, type_: NNAdapterOperandType) -> Written:
        """A new structure with a type."""
        pointer = self.new()
        return Written(pointer, self.write(pointer, type_))

    def write(self, pointer: Any, type_: NNAdapterOperandType) -> Any:
        """Write a type into a structure; the scales that it now points to, if there are."""
        pointer.precision, pointer.layout = type_.precision, type_.layout
        pointer.lifetime = type_.lifetime
        self.write_sizes(pointer.dimensions, type_.dimensions.data, type_.dimensions.dynamic_data)
        params = type_.quantization
        scales = None
        if isinstance(params, NNAdapterSymmPerChannelQuantParams):
            scales = self._ffi.new("float[]", params.scales)
            there = pointer.symm_per_channel_params
            there.channel_dim, there.scale_count = params.channel_dim, len(params.scales)
            there.scales = scales
        elif isinstance(params, NNAdapterAsymmPerLayerQuantParams):
            there = pointer.asymm_per_layer_params
            there.scale, there.zero_point = params.scale, params.zero_point
        elif isinstance(params, NNAdapterSymmPerLayerQuantParams):
            pointer.symm_per_layer_params.scale = params.scale
        return scales

    @staticmethod
    def write_sizes(dimensions: Any, data: Sequence[int], shapes: Sequence[Sequence[int]]) -> None:
        """Write sizes, and the shapes that there may be, into a structure."""
        dimensions.count, dimensions.dynamic_count = len(data), len(shapes)
        dimensions.data[0 : len(data)] = data
        for row, shape in enumerate(shapes):
            dimensions.dynamic_data[row][0 : len(shape)] = shape

    def _quantization(self, pointer: Any, data: Sequence[int]) -> NNAdapterQuantParams | None:
        kind = QUANTIZED.get(pointer.precision, (None, None))[1]
        if kind is NNAdapterSymmPerLayerQuantParams:
            return kind(pointer.symm_per_layer_params.scale)
        if kind is NNAdapterAsymmPerLayerQuantParams:
            there = pointer.asymm_per_layer_params
            return kind(there.scale, there.zero_point)
        if kind is NNAdapterSymmPerChannelQuantParams:
            there = pointer.symm_per_channel_params
            _check_scales(there, data)
            scales = tuple(self._ffi.unpack(there.scales, there.scale_count))
            return kind(there.channel_dim, scales)
        return None


def _check_scales(params: Any, data: Sequence[int]) -> None:
    """Check that there is a scale for each channel, before they are read."""
    axis, count = params.channel_dim, params.scale_count
    if not params.scales or not count:
        raise invalid("scales is NULL, or scale_count is 0")
    if axis >= len(data):
        raise invalid(f"channel_dim is {axis}, but there are {len(data)} axes")
    if data[axis] not in (count, NNADAPTER_UNKNOWN):
        raise invalid(f"there are {count} scales for the {data[axis]} channels of axis {axis}")


def _member(enumeration: type[E], code: int) -> E:
    """The member of a code; the code itself if there is none."""
    members: dict[int, E] = enumeration._value2member_map_  # type: ignore[assignment]
    return members.get(code, code)  # type: ignore[return-value]
