"""Integers whose scales are attributes of the operators that read and make them.

So Paddle Lite's tools write quantized programs: an operator that computes on integers says so, and
has the scale of the first tensor of a slot `Input` in `Input0_scale`. Its weights are integers.
What it reads and makes is a real here that has been rounded to what integers stand for.

Where only weights are quantized, an operator has the scales of its weight `w` in `w_quant_scale`.
Every operator reads them as reals.

Source: DequantizeWeight in lite/api/light_api.cc of Paddle Lite 2.14.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from crosschip.importers.paddle.program import Operator, all_operators
from crosschip.importers.paddle.values import Values
from crosschip.ir import (
    Builder,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    UnsupportedError,
    constant,
)
from crosschip.ops.standard.quantization import Dequantize, Quantize, parameters

_TYPES = {"enable_int8": ElementType.INT8, "enable_int16": ElementType.INT16}
"""The attributes by which operators say that they compute on integers, and of which type."""

_CHANNELS: Mapping[str, int] = {
    "conv2d": 0,
    "depthwise_conv2d": 0,
    "conv2d_transpose": 1,
    "depthwise_conv2d_transpose": 1,
}
"""The axis of weights that several scales run along; the last one of other operators."""

_WEIGHT_BITS, _WEIGHT_SCALE = "quantize_weight_bits", "_quant_scale"
"""The attribute of operators with quantized weights, and the end of those that hold the scales."""

_TINY = float(np.finfo(np.float32).tiny)


def quantized_weights(operators: Iterable[Operator]) -> Mapping[str, Operator]:
    """The operators that say what integers their weights stand for, by the weights' names."""
    weights: dict[str, Operator] = {}
    for operator in all_operators(operators):
        if _WEIGHT_BITS in operator.attributes:
            for name in operator.attributes:
                if name.endswith(_WEIGHT_SCALE):
                    weights.setdefault(name.removesuffix(_WEIGHT_SCALE), operator)
    return weights


def real_weight(builder: Builder, weight: Operand, operator: Operator) -> Operand:
    """The reals that a weight stands for; weights of int8 with several axes stay integers.

    Args:
        builder: where they are built.
        weight: what the file holds; its name is that of the variable.
        operator: one that says what it stands for.

    Raises:
        ModelError: the scales are not those of the weight.
    """
    type_, value = weight.type.element_type, weight.value
    if type_ not in _TYPES.values() or value is None:
        return weight
    where = f"operator {operator.number} ({operator.label}): {weight.name}{_WEIGHT_SCALE}"
    scale = _numbers(operator, f"{weight.name}{_WEIGHT_SCALE}")
    known = _quantization(operator, weight, scale)
    axis = known.axis or 0
    if len(known.scale) not in (1, *value.shape[axis : axis + 1]):
        raise ModelError(f"{where}: has {len(scale)} scales for {weight.type}")
    if type_ is ElementType.INT8 and value.ndim > 1:
        integers = builder.constant(value, f"{weight.name}.quantized", known)
        return builder.add(Dequantize, integers)
    factors = np.array(known.scale, np.float32).reshape((-1,) + (1,) * (value.ndim - 1 - axis))
    return builder.constant(np.asarray(value, np.float32) * factors, f"{weight.name}.real")


def reals_read(operator: Operator, values: Values) -> Operator:
    """The operator as it reads what integers stand for; the same if it does not compute on them.

    Raises:
        UnsupportedError: it does, but does not say what they stand for.
    """
    type_ = _type(operator)
    if type_ is None:
        return operator
    inputs, has_scale = dict(operator.inputs), False
    for slot, names in operator.inputs.items():
        read_names = []
        for place, name in enumerate(names):
            scale = _scale(operator, slot, place)
            if scale is not None:
                has_scale = True
                name = _rounded(operator, values, name, scale, type_)
            read_names.append(name)
        inputs[slot] = read_names
    if not has_scale:
        raise UnsupportedError(f"computes on {type_}, but no attribute holds a scale")
    return operator._replace(inputs=inputs)


def round_made(operator: Operator, values: Values) -> None:
    """Round what an operator makes to what integers stand for, if it says so."""
    type_ = _type(operator)
    if type_ is None:
        return
    for slot, names in operator.outputs.items():
        for place, name in enumerate(names):
            scale = _scale(operator, slot, place)
            if scale is not None and name in values:
                rounded = _rounded(operator, values, name, scale, type_)
                values.define(name, values[rounded])


def _type(operator: Operator) -> ElementType | None:
    return next((t for n, t in _TYPES.items() if operator.attributes.get(n) is True), None)


def _scale(operator: Operator, slot: str, place: int) -> tuple[float, ...] | None:
    """The scale of a tensor, or its scales along an axis."""
    return _numbers(operator, f"{slot}{place}_scale") or None


def _numbers(operator: Operator, name: str) -> tuple[float, ...]:
    """The numbers in an attribute."""
    value = operator.attributes.get(name)
    numbers = value if isinstance(value, tuple) else () if value is None else (value,)
    scales = [float(n) for n in numbers if isinstance(n, int | float)]
    if len(scales) != len(numbers):
        raise ModelError(f"{name}: holds something else than numbers")
    return tuple(scales)


def _rounded(
    operator: Operator, values: Values, name: str, scale: Sequence[float], type_: ElementType
) -> str:
    """The variable that holds what integers stand for, in place of another one."""
    operand = values[name]
    known = _quantization(operator, operand, scale)
    if values.rounded.get(operand) == known:
        return name
    builder = values.builder
    if operand.type.quantization is not None:
        integers = operand
    elif operand.value is not None and operand.type.element_type in _TYPES.values():
        integers = constant(np.asarray(operand.value), f"{name}.quantized", known)
    else:
        integers = builder.add(Quantize, operand, **parameters(known), dtype=type_)
    real = builder.add(Dequantize, integers)
    values.rounded[real] = known
    new = values.new_name(f"{name}.rounded")
    values.define(new, real)
    return new


def _quantization(operator: Operator, operand: Operand, scale: Sequence[float]) -> Quantization:
    axis, scale = None, scale[:1] if len(set(scale)) == 1 else scale
    if len(scale) > 1:
        rank = len(operand.type.shape or ())
        axis = min(_CHANNELS.get(operator.type, rank - 1), rank - 1)
    try:
        return Quantization(tuple(max(each, _TINY) for each in scale), axis=axis)
    except ValueError as error:
        raise ModelError(f"scale: {error}") from None
