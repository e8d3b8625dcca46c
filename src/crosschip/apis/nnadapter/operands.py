"""Conversion between NNAdapter's operand types and crosschip's tensor types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from crosschip.apis.nnadapter.enumerations import (
    NNADAPTER_MAX_SIZE_OF_DIMENSIONS,
    NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS,
    NNADAPTER_UNKNOWN,
)
from crosschip.apis.nnadapter.enumerations import NNAdapterOperandLayoutCode as Layout
from crosschip.apis.nnadapter.enumerations import NNAdapterOperandPrecisionCode as Precision
from crosschip.apis.nnadapter.results import invalid, invalid_dimensions
from crosschip.apis.nnadapter.types import (
    NNAdapterAsymmPerLayerQuantParams,
    NNAdapterOperandDimensionType,
    NNAdapterOperandType,
    NNAdapterQuantParams,
    NNAdapterSymmPerChannelQuantParams,
    NNAdapterSymmPerLayerQuantParams,
)
from crosschip.ir import Dim, ElementType, Quantization, Shape, TensorType, UnsupportedError

T = TypeVar("T")

_LAYER = NNAdapterSymmPerLayerQuantParams
_CHANNEL = NNAdapterSymmPerChannelQuantParams
_ASYMMETRIC = NNAdapterAsymmPerLayerQuantParams

QUANTIZED: Mapping[Precision, tuple[ElementType, type[NNAdapterQuantParams]]] = {
    Precision.NNADAPTER_QUANT_INT8_SYMM_PER_LAYER: (ElementType.INT8, _LAYER),
    Precision.NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL: (ElementType.INT8, _CHANNEL),
    Precision.NNADAPTER_QUANT_UINT8_ASYMM_PER_LAYER: (ElementType.UINT8, _ASYMMETRIC),
    Precision.NNADAPTER_QUANT_INT16_SYMM_PER_LAYER: (ElementType.INT16, _LAYER),
    Precision.NNADAPTER_QUANT_INT16_SYMM_PER_CHANNEL: (ElementType.INT16, _CHANNEL),
    Precision.NNADAPTER_QUANT_UINT16_ASYMM_PER_LAYER: (ElementType.UINT16, _ASYMMETRIC),
    Precision.NNADAPTER_QUANT_INT32_SYMM_PER_LAYER: (ElementType.INT32, _LAYER),
    Precision.NNADAPTER_QUANT_INT32_SYMM_PER_CHANNEL: (ElementType.INT32, _CHANNEL),
    Precision.NNADAPTER_QUANT_UINT32_ASYMM_PER_LAYER: (ElementType.UINT32, _ASYMMETRIC),
}
_PRECISIONS = {kind: precision for precision, kind in QUANTIZED.items()}


def element_type(precision: Precision) -> ElementType:
    """Return the type of the stored elements."""
    if precision in QUANTIZED:
        return QUANTIZED[precision][0]
    return ElementType.from_code(precision)


def check(type_: NNAdapterOperandType) -> None:
    """Check a type's fields.

    Raises:
        Failure: a code is unknown, a size is invalid, or the quantization parameters are not
            those that the precision requires.
    """
    if not isinstance(type_, NNAdapterOperandType):
        raise invalid(f"{type_!r} is no NNAdapterOperandType")
    for code, kind in ((type_.precision, Precision), (type_.layout, Layout)):
        if code not in kind._value2member_map_:
            raise invalid(f"there is no {kind.__name__} {code!r}")
    _check_sizes(type_.dimensions)
    _, params_type = QUANTIZED.get(type_.precision, (None, type(None)))
    if not isinstance(type_.quantization, params_type):
        raise invalid(
            f"{Precision(type_.precision).name} has {type_.quantization!r} for quantization, but "
            f"takes {params_type.__name__}"
        )
    try:
        quantized = quantization(type_)
    except ValueError as error:
        raise invalid(str(error)) from None
    count = type_.dimensions.count
    if (
        quantized is not None
        and quantized.axis is not None
        and not 0 <= quantized.axis < max(count, 1)
    ):
        raise invalid(f"channel_dim is {quantized.axis}, but there are {count} axes")


def _check_sizes(dimensions: NNAdapterOperandDimensionType) -> None:
    max_rank = NNADAPTER_MAX_SIZE_OF_DIMENSIONS
    if dimensions.count > max_rank:
        raise invalid_dimensions(f"{dimensions.count} axes are more than {max_rank}")
    if dimensions.dynamic_count > NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS:
        raise invalid_dimensions(
            f"{dimensions.dynamic_count} shapes are more than "
            f"{NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS}"
        )
    for size in dimensions.data:
        if size < 0 and size != NNADAPTER_UNKNOWN:
            raise invalid_dimensions(f"{dimensions.data} has the size {size}")
    for shape in dimensions.dynamic_data:
        if not fits(shape, dimensions.data):
            raise invalid_dimensions(f"the shape {shape} does not fit {dimensions.data}")


def fits(shape: Sequence[int], data: Sequence[int]) -> bool:
    """Return whether a static shape matches a declared one."""
    return len(shape) == len(data) and all(
        size >= 0 and declared in (size, NNADAPTER_UNKNOWN)
        for size, declared in zip(shape, data, strict=True)
    )


def quantization(type_: NNAdapterOperandType) -> Quantization | None:
    """Return the quantization parameters; the axis is that of the stored layout.

    Raises:
        ValueError: a scale is missing or not positive.
    """
    params = type_.quantization
    if params is None:
        return None
    if isinstance(params, NNAdapterSymmPerChannelQuantParams):
        return Quantization(tuple(params.scales), axis=params.channel_dim)
    zero = params.zero_point if isinstance(params, NNAdapterAsymmPerLayerQuantParams) else 0
    return Quantization((params.scale,), (zero,))


def tensor_type(
    type_: NNAdapterOperandType, name: Callable[[int], Dim], *, ranked: bool = True
) -> TensorType:
    """Return crosschip's tensor type, in the stored layout.

    Args:
        type_: NNAdapter's type.
        name: returns the symbol of a dynamic dimension, given the axis.
        ranked: whether no axes mean rank 0; else they mean an unknown rank.
    """
    data = type_.dimensions.data
    shape: Shape | None = tuple(
        name(axis) if size == NNADAPTER_UNKNOWN else size for axis, size in enumerate(data)
    )
    if not data and not ranked:
        shape = None
    return TensorType(element_type(type_.precision), shape, quantization(type_))


def dimensions(shape: Shape | None) -> list[int]:
    """Return a shape as NNAdapter's sizes; none for an unknown rank."""
    return [size if isinstance(size, int) else NNADAPTER_UNKNOWN for size in shape or ()]


def operand_type(type_: TensorType) -> NNAdapterOperandType:
    """Return NNAdapter's form of a tensor type.

    Raises:
        UnsupportedError: NNAdapter lacks the element type, the quantization or the rank.
    """
    if len(type_.shape or ()) > NNADAPTER_MAX_SIZE_OF_DIMENSIONS:
        raise UnsupportedError(f"NNAdapter has no operands of so many axes as {type_}")
    precision, params = _precision(type_)
    return NNAdapterOperandType.of(precision, dimensions(type_.shape), params)


def _precision(type_: TensorType) -> tuple[Precision, NNAdapterQuantParams | None]:
    quantization = type_.quantization
    params: NNAdapterQuantParams | None = None
    if quantization is not None:
        if quantization.axis is not None and quantization.symmetric:
            params = _CHANNEL(quantization.axis, quantization.scale)
        elif quantization.axis is None:
            (scale,), (zero,) = quantization.scale, quantization.zero_point
            signed = type_.element_type.value.startswith("int")
            params = _LAYER(scale) if signed and not zero else _ASYMMETRIC(scale, zero)
        precision = _PRECISIONS.get((type_.element_type, type(params)))  # type: ignore[arg-type]
    else:
        plain = 0 <= type_.element_type.code <= Precision.NNADAPTER_FLOAT64
        precision = Precision(type_.element_type.code) if plain else None
    if precision is None:
        raise UnsupportedError(f"NNAdapter has no precision for {type_}")
    return precision, params


def order(layout: Layout, rank: int) -> tuple[int, ...] | None:
    """Return the permutation from the stored layout to N, C, H, W; `None` for the identity."""
    letters = Layout(layout).name.removeprefix("NNADAPTER_")
    if rank != len(letters) or layout == Layout.NNADAPTER_NCHW:
        return None
    return tuple(letters.index(letter) for letter in "NCHW")


def stored_order(layout: Layout, rank: int) -> tuple[int, ...] | None:
    """Return the permutation from N, C, H, W to the stored layout, the inverse of `order`."""
    axes = order(layout, rank)
    return None if axes is None else tuple(axes.index(axis) for axis in range(rank))


def permute(type_: TensorType, axes: Sequence[int] | None) -> TensorType:
    """Return a type with its axes permuted."""
    if axes is None or type_.shape is None:
        return type_
    quantization = type_.quantization
    if quantization is not None and quantization.axis is not None:
        quantization = Quantization(
            quantization.scale, quantization.zero_point, tuple(axes).index(quantization.axis)
        )
    return TensorType(type_.element_type, tuple(type_.shape[axis] for axis in axes), quantization)
