"""Quantization whose scales are attributes of operators, as in Paddle Lite's models.

An operator that computes on integers has an attribute that says so, integer weights, and the scale
of the first tensor in slot `Input` in `Input0_scale`. It is imported as an operator on reals: its
inputs and outputs are quantized and dequantized.

Where only weights are quantized, an operator has the scales of its weight `w` in `w_quant_scale`,
and the weight is dequantized for all operators.

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
"""The attributes of operators that compute on integers, with the integer type."""

_CHANNELS: Mapping[str, int] = {
    "conv2d": 0,
    "depthwise_conv2d": 0,
    "conv2d_transpose": 1,
    "depthwise_conv2d_transpose": 1,
}
"""The axis of per-channel scales of weights; the last axis for other operators."""

_WEIGHT_BITS, _WEIGHT_SCALE = "quantize_weight_bits", "_quant_scale"
"""The attribute of operators with quantized weights, and the suffix of the scales' attributes."""

_TINY = float(np.finfo(np.float32).tiny)


def quantized_weights(operators: Iterable[Operator]) -> Mapping[str, Operator]:
    """Return the operators that hold the scales of quantized weights, by the weights' names."""
    weights: dict[str, Operator] = {}
    for operator in all_operators(operators):
        if _WEIGHT_BITS in operator.attributes:
            for name in operator.attributes:
                if name.endswith(_WEIGHT_SCALE):
                    weights.setdefault(name.removesuffix(_WEIGHT_SCALE), operator)
    return weights


def dequantize_weight(builder: Builder, weight: Operand, operator: Operator) -> Operand:
    """Dequantize a weight: int8 weights of rank 2 and more by an operation, others as constants.

    Args:
        builder: the builder of the model.
        weight: the weight in the file; its name is that of the variable.
        operator: an operator that holds its scales.

    Raises:
        ModelError: the number of scales does not match the weight.
    """
    type_, value = weight.type.element_type, weight.value
    if type_ not in _TYPES.values() or value is None:
        return weight
    where = f"operator {operator.number} ({operator.label}): {weight.name}{_WEIGHT_SCALE}"
    scale = _numbers(operator, f"{weight.name}{_WEIGHT_SCALE}")
    quantization = _quantization(operator, weight, scale)
    axis = quantization.axis or 0
    if len(quantization.scale) not in (1, *value.shape[axis : axis + 1]):
        raise ModelError(f"{where}: has {len(scale)} scales for {weight.type}")
    if type_ is ElementType.INT8 and value.ndim > 1:
        integers = builder.constant(value, f"{weight.name}.quantized", quantization)
        return builder.add(Dequantize, integers)
    factors = np.array(quantization.scale, np.float32)
    factors = factors.reshape((-1,) + (1,) * (value.ndim - 1 - axis))
    return builder.constant(np.asarray(value, np.float32) * factors, f"{weight.name}.real")


def dequantize_inputs(operator: Operator, values: Values) -> Operator:
    """Return an operator with dequantized inputs; unchanged if it does not compute on integers.

    Raises:
        UnsupportedError: it computes on integers, but has no scales.
    """
    type_ = _type(operator)
    if type_ is None:
        return operator
    inputs, has_scale = dict(operator.inputs), False
    for slot, names in operator.inputs.items():
        read_names = []
        for index, name in enumerate(names):
            scale = _scale(operator, slot, index)
            if scale is not None:
                has_scale = True
                name = _round_variable(operator, values, name, scale, type_)
            read_names.append(name)
        inputs[slot] = read_names
    if not has_scale:
        raise UnsupportedError(f"computes on {type_}, but no attribute holds a scale")
    return operator._replace(inputs=inputs)


def round_outputs(operator: Operator, values: Values) -> None:
    """Quantize and dequantize the outputs of an operator that computes on integers."""
    type_ = _type(operator)
    if type_ is None:
        return
    for slot, names in operator.outputs.items():
        for index, name in enumerate(names):
            scale = _scale(operator, slot, index)
            if scale is not None and name in values:
                rounded = _round_variable(operator, values, name, scale, type_)
                values.define(name, values[rounded])


def _type(operator: Operator) -> ElementType | None:
    return next((t for n, t in _TYPES.items() if operator.attributes.get(n) is True), None)


def _scale(operator: Operator, slot: str, index: int) -> tuple[float, ...] | None:
    """Return the scale or the per-channel scales of the tensor at an index in a slot."""
    return _numbers(operator, f"{slot}{index}_scale") or None


def _numbers(operator: Operator, name: str) -> tuple[float, ...]:
    """Return the numbers in an attribute; empty if it is missing."""
    value = operator.attributes.get(name)
    numbers = value if isinstance(value, tuple) else () if value is None else (value,)
    scales = [float(n) for n in numbers if isinstance(n, int | float)]
    if len(scales) != len(numbers):
        raise ModelError(f"{name}: holds something else than numbers")
    return tuple(scales)


def _round_variable(
    operator: Operator, values: Values, name: str, scale: Sequence[float], type_: ElementType
) -> str:
    """Quantize and dequantize a variable; return the name of the variable with the result."""
    operand = values[name]
    quantization = _quantization(operator, operand, scale)
    if values.rounded.get(operand) == quantization:
        return name
    builder = values.builder
    if operand.type.quantization is not None:
        integers = operand
    elif operand.value is not None and operand.type.element_type in _TYPES.values():
        integers = constant(np.asarray(operand.value), f"{name}.quantized", quantization)
    else:
        integers = builder.add(Quantize, operand, **parameters(quantization), dtype=type_)
    real = builder.add(Dequantize, integers)
    values.rounded[real] = quantization
    rounded_name = values.new_name(f"{name}.rounded")
    values.define(rounded_name, real)
    return rounded_name


def _quantization(operator: Operator, operand: Operand, scale: Sequence[float]) -> Quantization:
    axis, scale = None, scale[:1] if len(set(scale)) == 1 else scale
    if len(scale) > 1:
        rank = len(operand.type.shape or ())
        axis = min(_CHANNELS.get(operator.type, rank - 1), rank - 1)
    try:
        return Quantization(tuple(max(each, _TINY) for each in scale), axis=axis)
    except ValueError as error:
        raise ModelError(f"scale: {error}") from None
