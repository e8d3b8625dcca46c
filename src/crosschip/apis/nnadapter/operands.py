"""NNAdapter's types of operands as those of models, and back."""

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
from crosschip.apis.nnadapter.results import invalid, misshapen
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
    """The type of the elements that are stored."""
    if precision in QUANTIZED:
        return QUANTIZED[precision][0]
    return ElementType.from_code(precision)


def check(type_: NNAdapterOperandType) -> None:
    """Check what is written in a type.

    Raises:
        Failure: it has a code that there is not, sizes that there cannot be, or other quantization
            parameters than its precision asks for.
    """
    if not isinstance(type_, NNAdapterOperandType):
        raise invalid(f"{type_!r} is no NNAdapterOperandType")
    for code, kind in ((type_.precision, Precision), (type_.layout, Layout)):
        if code not in kind._value2member_map_:
            raise invalid(f"there is no {kind.__name__} {code!r}")
    _check_sizes(type_.dimensions)
    _, wanted = QUANTIZED.get(type_.precision, (None, type(None)))
    if not isinstance(type_.quantization, wanted):
        raise invalid(
            f"{Precision(type_.precision).name} has {type_.quantization!r} for quantization, but "
            f"takes {wanted.__name__}"
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
    most = NNADAPTER_MAX_SIZE_OF_DIMENSIONS
    if dimensions.count > most:
        raise misshapen(f"{dimensions.count} axes are more than {most}")
    if dimensions.dynamic_count > NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS:
        raise misshapen(
            f"{dimensions.dynamic_count} shapes are more than "
            f"{NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS}"
        )
    for size in dimensions.data:
        if size < 0 and size != NNADAPTER_UNKNOWN:
            raise misshapen(f"{dimensions.data} has the size {size}")
    for shape in dimensions.dynamic_data:
        if not fits(shape, dimensions.data):
            raise misshapen(f"the shape {shape} does not fit {dimensions.data}")


def fits(shape: Sequence[int], data: Sequence[int]) -> bool:
    """Tell whether a known shape is one that a type has sizes for."""
    return len(shape) == len(data) and all(
        size >= 0 and known in (size, NNADAPTER_UNKNOWN)
        for size, known in zip(shape, data, strict=True)
    )


def quantization(type_: NNAdapterOperandType) -> Quantization | None:
    """The way in which integers stand for reals; axes are counted as they are stored.

    Raises:
        ValueError: a scale is not positive, or there are none.
    """
    params = type_.quantization
    if params is None:
        return None
    if isinstance(params, NNAdapterSymmPerChannelQuantParams):
        return Quantization(tuple(params.scales), axis=params.channel_dim)
    zero = params.zero_point if isinstance(params, NNAdapterAsymmPerLayerQuantParams) else 0
    return Quantization((params.scale,), (zero,))


def tensor_type(
    type_: NNAdapterOperandType, name: Callable[[int], Dim], *, known: bool = True
) -> TensorType:
    """The type of a tensor as it is stored.

    Args:
        type_: NNAdapter's.
        name: the size of an axis that is not known.
        known: whether no axes mean a tensor without axes; else, one of which nothing is known.
    """
    data = type_.dimensions.data
    shape: Shape | None = tuple(
        name(axis) if size == NNADAPTER_UNKNOWN else size for axis, size in enumerate(data)
    )
    if not data and not known:
        shape = None
    return TensorType(element_type(type_.precision), shape, quantization(type_))


def dimensions(shape: Shape | None) -> list[int]:
    """Sizes as NNAdapter has them; none of a tensor of which not even the rank is known."""
    return [size if isinstance(size, int) else NNADAPTER_UNKNOWN for size in shape or ()]


def operand_type(type_: TensorType) -> NNAdapterOperandType:
    """A tensor's type as NNAdapter has it.

    Raises:
        UnsupportedError: it has no such precision, or not so many axes.
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
    """The axes as they are stored, in the order N, C, H, W; `None` if that is how they are."""
    letters = Layout(layout).name.removeprefix("NNADAPTER_")
    if rank != len(letters) or layout == Layout.NNADAPTER_NCHW:
        return None
    return tuple(letters.index(letter) for letter in "NCHW")


def stored_order(layout: Layout, rank: int) -> tuple[int, ...] | None:
    """The axes N, C, H, W in the order in which they are stored; the other way of `order`."""
    axes = order(layout, rank)
    return None if axes is None else tuple(axes.index(axis) for axis in range(rank))


def permuted(type_: TensorType, axes: Sequence[int] | None) -> TensorType:
    """A type with its axes in another order."""
    if axes is None or type_.shape is None:
        return type_
    quantization = type_.quantization
    if quantization is not None and quantization.axis is not None:
        quantization = Quantization(
            quantization.scale, quantization.zero_point, tuple(axes).index(quantization.axis)
        )
    return TensorType(type_.element_type, tuple(type_.shape[axis] for axis in axes), quantization)
