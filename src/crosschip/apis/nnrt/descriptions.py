"""Functions about descriptions of tensors and about quantization parameters."""

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
"""How many bits quantized integers have."""

_MOST_AXES = 10
_MOST_ELEMENTS = 1 << 60


class NN_TensorDesc(Handle):
    """A description of a tensor.

    Attributes:
        name: its name; empty if it has none.
        data_type: the type of its elements.
        shape: a size for each axis, -1 where it is open; `None` if it has never been set.
        format: the order in which the axes of an image are stored.
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
        """Return the same description, to be changed on its own."""
        return NN_TensorDesc(self.name, self.data_type, self.shape, self.format)

    @property
    def size(self) -> int:
        """The number of bytes that the elements take; 0 if that is open."""
        shape = self.shape or ()
        if any(size < 0 for size in shape) or not self.data_type:
            return 0
        return math.prod(shape) * element_type(self.data_type).dtype.itemsize


class NN_QuantParam(Handle):
    """The parameters by which the integers of a tensor stand for reals.

    Attributes:
        scales: the scales; one, or one for each channel.
        zero_points: the integers that stand for 0.
        num_bits: how many bits the integers have.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scales: tuple[float, ...] = ()
        self.zero_points: tuple[int, ...] = ()
        self.num_bits: tuple[int, ...] = ()


@cache
def element_type(data_type: OH_NN_DataType) -> ElementType:
    """Return the type of the elements.

    Raises:
        Failure: it is not known.
    """
    name = OH_NN_DataType(data_type).name.removeprefix("OH_NN_").lower()
    if name == "unknown":
        raise invalid("the data type is not known")
    return ElementType(name)


def described(type_: TensorType) -> OH_NN_Tensor:
    """Return a tensor's type as NNRt has it.

    Raises:
        UnsupportedError: NNRt has no such type.
    """
    shape, quantization = type_.shape, type_.quantization
    known = f"OH_NN_{type_.element_type.value.upper()}" in OH_NN_DataType.__members__
    if not known or shape is None or len(shape) > _MOST_AXES or 0 in shape:
        raise UnsupportedError(f"NNRt has no tensors of {type_}")
    sizes = tuple(size if isinstance(size, int) else -1 for size in shape)
    params = None
    if quantization is not None:
        count = len(quantization.scale)
        byte = type_.element_type.dtype.itemsize == 1
        if not byte or (
            quantization.axis is not None and quantization.axis != quantized_axis(sizes, count)
        ):
            raise UnsupportedError(f"NNRt has no quantization parameters for {type_}")
        params = OH_NN_QuantParam(
            (BITS,) * count, quantization.scale, quantization.zero_point or (0,) * count
        )
    return OH_NN_Tensor(data_type(type_.element_type), sizes, params)


@cache
def data_type(element_type: ElementType) -> OH_NN_DataType:
    """Return the number of a type of elements.

    Raises:
        Failure: there is none.
    """
    code = OH_NN_DataType.__members__.get(f"OH_NN_{element_type.value.upper()}")
    if code is None:
        raise invalid(f"there is no data type for {element_type}")
    return code


def member(kind: type[Any], value: object) -> Any:
    """Return a member of an enumeration.

    Raises:
        Failure: there is none of that value.
    """
    if value not in kind._value2member_map_:
        raise invalid(f"there is no {kind.__name__} {value!r}")
    return kind(value)


@returns_handle
def OH_NNTensorDesc_Create() -> NN_TensorDesc:
    """Make an empty description."""
    return NN_TensorDesc()


@returns_code
def OH_NNTensorDesc_Destroy(tensorDesc: NN_TensorDesc) -> None:
    """Release a description."""
    live(tensorDesc, NN_TensorDesc).destroy()


@returns_code
def OH_NNTensorDesc_SetName(tensorDesc: NN_TensorDesc, name: str) -> None:
    """Give a description a name."""
    tensorDesc = live(tensorDesc, NN_TensorDesc)
    if not isinstance(name, str):
        raise invalid(f"the name is {name!r}, but must be text")
    tensorDesc.name = name


@returns_value
def OH_NNTensorDesc_GetName(tensorDesc: NN_TensorDesc) -> str:
    """Return the name; empty if there is none."""
    return live(tensorDesc, NN_TensorDesc).name


@returns_code
def OH_NNTensorDesc_SetDataType(tensorDesc: NN_TensorDesc, dataType: OH_NN_DataType) -> None:
    """Set the type of the elements."""
    live(tensorDesc, NN_TensorDesc).data_type = member(OH_NN_DataType, dataType)


@returns_value
def OH_NNTensorDesc_GetDataType(tensorDesc: NN_TensorDesc) -> OH_NN_DataType:
    """Return the type of the elements."""
    return live(tensorDesc, NN_TensorDesc).data_type


@returns_code
def OH_NNTensorDesc_SetShape(tensorDesc: NN_TensorDesc, shape: Sequence[int]) -> None:
    """Set the sizes, of which there are from 1 to 10; what has no axes is never given any."""
    tensorDesc = live(tensorDesc, NN_TensorDesc)
    if shape is None or not 1 <= len(shape) <= _MOST_AXES:
        raise invalid(f"the shape is {shape!r}, but must have from 1 to {_MOST_AXES} sizes")
    tensorDesc.shape = tuple(map(int, shape))


@returns_value
def OH_NNTensorDesc_GetShape(tensorDesc: NN_TensorDesc) -> tuple[int, ...]:
    """Return the sizes; none if they have never been set."""
    return live(tensorDesc, NN_TensorDesc).shape or ()


@returns_code
def OH_NNTensorDesc_SetFormat(tensorDesc: NN_TensorDesc, format: OH_NN_Format) -> None:
    """Set the order in which the axes of an image are stored."""
    live(tensorDesc, NN_TensorDesc).format = member(OH_NN_Format, format)


@returns_value
def OH_NNTensorDesc_GetFormat(tensorDesc: NN_TensorDesc) -> OH_NN_Format:
    """Return the order in which the axes of an image are stored."""
    return live(tensorDesc, NN_TensorDesc).format


@returns_value
def OH_NNTensorDesc_GetElementCount(tensorDesc: NN_TensorDesc) -> int:
    """Return the number of elements; `OH_NN_DYNAMIC_SHAPE` if that is open."""
    return math.prod(_known(tensorDesc))


@returns_value
def OH_NNTensorDesc_GetByteSize(tensorDesc: NN_TensorDesc) -> int:
    """Return the number of bytes that the elements take.

    `OH_NN_DYNAMIC_SHAPE` if that is open; as the source has it, it succeeds with 0.
    """
    tensorDesc = live(tensorDesc, NN_TensorDesc)
    if as_reference() and tensorDesc.shape is not None and min(tensorDesc.shape) < 0:
        return 0
    return math.prod(_known(tensorDesc)) * element_type(tensorDesc.data_type).dtype.itemsize


@returns_handle
def OH_NNQuantParam_Create() -> NN_QuantParam:
    """Make empty quantization parameters."""
    return NN_QuantParam()


@returns_code
def OH_NNQuantParam_SetScales(quantParams: NN_QuantParam, scales: Sequence[float]) -> None:
    """Set the scales."""
    live(quantParams, NN_QuantParam).scales = tuple(map(float, _listed(scales, "scales")))


@returns_code
def OH_NNQuantParam_SetZeroPoints(quantParams: NN_QuantParam, zeroPoints: Sequence[int]) -> None:
    """Set the integers that stand for 0."""
    live(quantParams, NN_QuantParam).zero_points = tuple(map(int, _listed(zeroPoints, "zeros")))


@returns_code
def OH_NNQuantParam_SetNumBits(quantParams: NN_QuantParam, numBits: Sequence[int]) -> None:
    """Set how many bits the integers have."""
    live(quantParams, NN_QuantParam).num_bits = tuple(map(int, _listed(numBits, "bits")))


@returns_code
def OH_NNQuantParam_Destroy(quantParams: NN_QuantParam) -> None:
    """Release quantization parameters; tensors that they were given to keep them."""
    live(quantParams, NN_QuantParam).destroy()


def _listed(values: Sequence[Any] | None, name: str) -> Sequence[Any]:
    if not values:
        raise invalid(f"there are no {name}")
    return values


def _known(tensorDesc: NN_TensorDesc) -> tuple[int, ...]:
    tensorDesc = live(tensorDesc, NN_TensorDesc)
    if tensorDesc.shape is None:
        raise invalid("the shape has not been set")
    if min(tensorDesc.shape) < 0:
        raise Failure(Code.OH_NN_DYNAMIC_SHAPE, f"{list(tensorDesc.shape)} has an open size")
    if math.prod(tensorDesc.shape) > _MOST_ELEMENTS:
        raise invalid(f"{list(tensorDesc.shape)} has more elements than there can be")
    return tensorDesc.shape
