"""NNRt's functions for tensor descriptions and quantization parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from crosschip.apis.nnrt.conformance import as_reference
from crosschip.apis.nnrt.enumerations import OH_NN_DataType, OH_NN_Format
from crosschip.apis.nnrt.enumerations import OH_NN_ReturnCode as Code
from crosschip.apis.nnrt.results import (
    Failure,
    Handle,
    invalid,
    live,
    returns_code,
    returns_handle,
    returns_value,
)
from crosschip.apis.nnrt.types import OH_NN_QuantParam, OH_NN_Tensor
from crosschip.ir import ElementType, TensorType, UnsupportedError
from crosschip.mapping.common import quantized_axis

BITS = 8
"""The number of bits of quantized integers."""

_MAX_RANK = 10
_MAX_ELEMENTS = 1 << 60


class NN_TensorDesc(Handle):
    """A tensor description.

    Attributes:
        name: the name, or "".
        data_type: the element type.
        shape: the shape, with -1 for dynamic dimensions; `None` before it is set.
        format: the memory layout of an image.
    """

    def __init__(
        self,
        name: str = "",
        data_type: OH_NN_DataType = OH_NN_DataType.OH_NN_UNKNOWN,
        shape: Sequence[int] | None = None,
        format: OH_NN_Format = OH_NN_Format.OH_NN_FORMAT_NONE,
    ) -> None:
        super().__init__()
        self.name = name
        self.data_type = data_type
        self.shape = None if shape is None else tuple(shape)
        self.format = format

    def copy(self) -> NN_TensorDesc:
        """Return an independent copy."""
        return NN_TensorDesc(self.name, self.data_type, self.shape, self.format)

    @property
    def size(self) -> int:
        """The number of bytes of the elements; 0 with a dynamic dimension."""
        shape = self.shape or ()
        if any(size < 0 for size in shape) or not self.data_type:
            return 0
        return math.prod(shape) * element_type(self.data_type).dtype.itemsize


class NN_QuantParam(Handle):
    """Quantization parameters.

    Attributes:
        scales: the scales, one or one per channel.
        zero_points: the integers that represent 0.
        num_bits: the integers' numbers of bits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scales: tuple[float, ...] = ()
        self.zero_points: tuple[int, ...] = ()
        self.num_bits: tuple[int, ...] = ()


@cache
def element_type(data_type: OH_NN_DataType) -> ElementType:
    """Return crosschip's element type.

    Raises:
        Failure: the type is unknown.
    """
    name = OH_NN_DataType(data_type).name.removeprefix("OH_NN_").lower()
    if name == "unknown":
        raise invalid("the data type is not known")
    return ElementType(name)


def nnrt_tensor(type_: TensorType) -> OH_NN_Tensor:
    """Return NNRt's form of a tensor type.

    Raises:
        UnsupportedError: NNRt has no such type.
    """
    shape, quantization = type_.shape, type_.quantization
    has_type = f"OH_NN_{type_.element_type.value.upper()}" in OH_NN_DataType.__members__
    if not has_type or shape is None or len(shape) > _MAX_RANK or 0 in shape:
        raise UnsupportedError(f"NNRt has no tensors of {type_}")
    sizes = tuple(size if isinstance(size, int) else -1 for size in shape)
    params = None
    if quantization is not None:
        count = len(quantization.scale)
        is_byte = type_.element_type.dtype.itemsize == 1
        if not is_byte or (
            quantization.axis is not None and quantization.axis != quantized_axis(sizes, count)
        ):
            raise UnsupportedError(f"NNRt has no quantization parameters for {type_}")
        params = OH_NN_QuantParam(
            (BITS,) * count, quantization.scale, quantization.zero_point or (0,) * count
        )
    return OH_NN_Tensor(data_type(type_.element_type), sizes, params)


@cache
def data_type(element_type: ElementType) -> OH_NN_DataType:
    """Return NNRt's element type.

    Raises:
        Failure: NNRt has no such type.
    """
    code = OH_NN_DataType.__members__.get(f"OH_NN_{element_type.value.upper()}")
    if code is None:
        raise invalid(f"there is no data type for {element_type}")
    return code


def member(kind: type[Any], value: object) -> Any:
    """Return an enumeration's member.

    Raises:
        Failure: the value is no member's.
    """
    if value not in kind._value2member_map_:
        raise invalid(f"there is no {kind.__name__} {value!r}")
    return kind(value)


@returns_handle
def OH_NNTensorDesc_Create() -> NN_TensorDesc:
    """Create an empty description."""
    return NN_TensorDesc()


@returns_code
def OH_NNTensorDesc_Destroy(tensorDesc: NN_TensorDesc) -> None:
    """Release a description."""
    live(tensorDesc, NN_TensorDesc).destroy()


@returns_code
def OH_NNTensorDesc_SetName(tensorDesc: NN_TensorDesc, name: str) -> None:
    """Set the name."""
    tensorDesc = live(tensorDesc, NN_TensorDesc)
    if not isinstance(name, str):
        raise invalid(f"the name is {name!r}, but must be text")
    tensorDesc.name = name


@returns_value
def OH_NNTensorDesc_GetName(tensorDesc: NN_TensorDesc) -> str:
    """Return the name, or ""."""
    return live(tensorDesc, NN_TensorDesc).name


@returns_code
def OH_NNTensorDesc_SetDataType(tensorDesc: NN_TensorDesc, dataType: OH_NN_DataType) -> None:
    """Set the element type."""
    live(tensorDesc, NN_TensorDesc).data_type = member(OH_NN_DataType, dataType)


@returns_value
def OH_NNTensorDesc_GetDataType(tensorDesc: NN_TensorDesc) -> OH_NN_DataType:
    """Return the element type."""
    return live(tensorDesc, NN_TensorDesc).data_type


@returns_code
def OH_NNTensorDesc_SetShape(tensorDesc: NN_TensorDesc, shape: Sequence[int]) -> None:
    """Set the shape, of rank 1 to 10; a description without a shape has rank 0."""
    tensorDesc = live(tensorDesc, NN_TensorDesc)
    if shape is None or not 1 <= len(shape) <= _MAX_RANK:
        raise invalid(f"the shape is {shape!r}, but must have from 1 to {_MAX_RANK} sizes")
    tensorDesc.shape = tuple(map(int, shape))


@returns_value
def OH_NNTensorDesc_GetShape(tensorDesc: NN_TensorDesc) -> tuple[int, ...]:
    """Return the shape; empty before it is set."""
    return live(tensorDesc, NN_TensorDesc).shape or ()


@returns_code
def OH_NNTensorDesc_SetFormat(tensorDesc: NN_TensorDesc, format: OH_NN_Format) -> None:
    """Set the memory layout of an image."""
    live(tensorDesc, NN_TensorDesc).format = member(OH_NN_Format, format)


@returns_value
def OH_NNTensorDesc_GetFormat(tensorDesc: NN_TensorDesc) -> OH_NN_Format:
    """Return the memory layout of an image."""
    return live(tensorDesc, NN_TensorDesc).format


@returns_value
def OH_NNTensorDesc_GetElementCount(tensorDesc: NN_TensorDesc) -> int:
    """Return the number of elements; fail with `OH_NN_DYNAMIC_SHAPE` if it is unknown."""
    return math.prod(_static_shape(tensorDesc))


@returns_value
def OH_NNTensorDesc_GetByteSize(tensorDesc: NN_TensorDesc) -> int:
    """Return the number of bytes of the elements.

    With a dynamic dimension it fails with `OH_NN_DYNAMIC_SHAPE`; in reference mode it returns 0.
    """
    tensorDesc = live(tensorDesc, NN_TensorDesc)
    if as_reference() and tensorDesc.shape is not None and min(tensorDesc.shape) < 0:
        return 0
    return math.prod(_static_shape(tensorDesc)) * element_type(tensorDesc.data_type).dtype.itemsize


@returns_handle
def OH_NNQuantParam_Create() -> NN_QuantParam:
    """Create empty quantization parameters."""
    return NN_QuantParam()


@returns_code
def OH_NNQuantParam_SetScales(quantParams: NN_QuantParam, scales: Sequence[float]) -> None:
    """Set the scales."""
    live(quantParams, NN_QuantParam).scales = tuple(map(float, _check_not_empty(scales, "scales")))


@returns_code
def OH_NNQuantParam_SetZeroPoints(quantParams: NN_QuantParam, zeroPoints: Sequence[int]) -> None:
    """Set the integers that represent 0."""
    live(quantParams, NN_QuantParam).zero_points = tuple(
        map(int, _check_not_empty(zeroPoints, "zeros"))
    )


@returns_code
def OH_NNQuantParam_SetNumBits(quantParams: NN_QuantParam, numBits: Sequence[int]) -> None:
    """Set the integers' numbers of bits."""
    live(quantParams, NN_QuantParam).num_bits = tuple(map(int, _check_not_empty(numBits, "bits")))


@returns_code
def OH_NNQuantParam_Destroy(quantParams: NN_QuantParam) -> None:
    """Release quantization parameters; tensors keep their copies."""
    live(quantParams, NN_QuantParam).destroy()


def _check_not_empty(values: Sequence[Any] | None, name: str) -> Sequence[Any]:
    if not values:
        raise invalid(f"there are no {name}")
    return values


def _static_shape(tensorDesc: NN_TensorDesc) -> tuple[int, ...]:
    tensorDesc = live(tensorDesc, NN_TensorDesc)
    if tensorDesc.shape is None:
        raise invalid("the shape has not been set")
    if min(tensorDesc.shape) < 0:
        raise Failure(Code.OH_NN_DYNAMIC_SHAPE, f"{list(tensorDesc.shape)} has an open size")
    if math.prod(tensorDesc.shape) > _MAX_ELEMENTS:
        raise invalid(f"{list(tensorDesc.shape)} has more elements than there can be")
    return tensorDesc.shape
