"""Conversion between C's operand types and the Python interface's."""

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
from crosschip.apis.nnadapter.results import invalid, invalid_dimensions
from crosschip.apis.nnadapter.types import NNAdapterQuantParams

E = TypeVar("E", bound=IntEnum)


class Structure(NamedTuple):
    """A C structure with the memory that it points to.

    Attributes:
        pointer: the structure.
        scales: the scales that it points to; `None` without any.
    """

    pointer: Any
    scales: Any


class Types:
    """Reads and writes C's `NNAdapterOperandType`.

    Args:
        ffi: the library's cffi declarations.
    """

    def __init__(self, ffi: Any) -> None:
        self._ffi = ffi
        self._pointer = ffi.typeof("NNAdapterOperandType *")
        self._size = ffi.sizeof("NNAdapterOperandType")

    def new(self) -> Any:
        """Return a zeroed structure."""
        return self._ffi.new(self._pointer)

    def copy(self, pointer: Any) -> Any:
        """Return a copy of a structure, which points to the same scales."""
        copy = self._ffi.new(self._pointer)
        self._ffi.memmove(copy, pointer, self._size)
        return copy

    def read(self, pointer: Any) -> NNAdapterOperandType:
        """Return the Python form of a type; unknown codes are left for the interface to refuse.

        Raises:
            Failure: there are more axes or shapes than the structure can hold, or no scales.
        """
        dimensions = pointer.dimensions
        data = self.sizes(dimensions)
        shapes = dimensions.dynamic_count
        if shapes > NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS:
            limit = NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS
            raise invalid_dimensions(f"{shapes} shapes are more than {limit}")
        dynamic = [list(dimensions.dynamic_data[row])[: len(data)] for row in range(shapes)]
        return NNAdapterOperandType(
            _member(NNAdapterOperandPrecisionCode, pointer.precision),
            _member(NNAdapterOperandLayoutCode, pointer.layout),
            dimensions=NNAdapterOperandDimensionType(data, dynamic),
            quantization=self._quantization(pointer, data),
        )

    def sizes(self, dimensions: Any) -> list[int]:
        """Return a structure's sizes.

        Raises:
            Failure: there are more axes than the structure can hold.
        """
        count: int = dimensions.count
        if count > NNADAPTER_MAX_SIZE_OF_DIMENSIONS:
            raise invalid_dimensions(
                f"{count} axes are more than {NNADAPTER_MAX_SIZE_OF_DIMENSIONS}"
            )
        return self._ffi.unpack(dimensions.data, count) if count else []

    def new_from(self, type_: NNAdapterOperandType) -> Structure:
        """Return a new structure of a type."""
        pointer = self.new()
        return Structure(pointer, self.write(pointer, type_))

    def write(self, pointer: Any, type_: NNAdapterOperandType) -> Any:
        """Write a type into a structure; return the scales that it then points to, if any."""
        pointer.precision, pointer.layout = type_.precision, type_.layout
        pointer.lifetime = type_.lifetime
        self.write_sizes(pointer.dimensions, type_.dimensions.data, type_.dimensions.dynamic_data)
        params = type_.quantization
        scales = None
        if isinstance(params, NNAdapterSymmPerChannelQuantParams):
            scales = self._ffi.new("float[]", params.scales)
            fields = pointer.symm_per_channel_params
            fields.channel_dim, fields.scale_count = params.channel_dim, len(params.scales)
            fields.scales = scales
        elif isinstance(params, NNAdapterAsymmPerLayerQuantParams):
            fields = pointer.asymm_per_layer_params
            fields.scale, fields.zero_point = params.scale, params.zero_point
        elif isinstance(params, NNAdapterSymmPerLayerQuantParams):
            pointer.symm_per_layer_params.scale = params.scale
        return scales

    @staticmethod
    def write_sizes(dimensions: Any, data: Sequence[int], shapes: Sequence[Sequence[int]]) -> None:
        """Write sizes and listed shapes into a structure."""
        dimensions.count, dimensions.dynamic_count = len(data), len(shapes)
        dimensions.data[0 : len(data)] = data
        for row, shape in enumerate(shapes):
            dimensions.dynamic_data[row][0 : len(shape)] = shape

    def _quantization(self, pointer: Any, data: Sequence[int]) -> NNAdapterQuantParams | None:
        kind = QUANTIZED.get(pointer.precision, (None, None))[1]
        if kind is NNAdapterSymmPerLayerQuantParams:
            return kind(pointer.symm_per_layer_params.scale)
        if kind is NNAdapterAsymmPerLayerQuantParams:
            fields = pointer.asymm_per_layer_params
            return kind(fields.scale, fields.zero_point)
        if kind is NNAdapterSymmPerChannelQuantParams:
            fields = pointer.symm_per_channel_params
            _check_scales(fields, data)
            scales = tuple(self._ffi.unpack(fields.scales, fields.scale_count))
            return kind(fields.channel_dim, scales)
        return None


def _check_scales(params: Any, data: Sequence[int]) -> None:
    """Raise a failure unless the structure has one scale per channel."""
    axis, count = params.channel_dim, params.scale_count
    if not params.scales or not count:
        raise invalid("scales is NULL, or scale_count is 0")
    if axis >= len(data):
        raise invalid(f"channel_dim is {axis}, but there are {len(data)} axes")
    if data[axis] not in (count, NNADAPTER_UNKNOWN):
        raise invalid(f"there are {count} scales for the {data[axis]} channels of axis {axis}")


def _member(enumeration: type[E], code: int) -> E:
    """Return an enumeration's member; an unknown code unchanged."""
    members: dict[int, E] = enumeration._value2member_map_  # type: ignore[assignment]
    return members.get(code, code)  # type: ignore[return-value]
