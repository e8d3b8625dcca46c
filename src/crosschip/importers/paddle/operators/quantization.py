"""Quantization operators of Paddle, of its three generations.

A scale is the greatest magnitude, which maps to the greatest integer, `2 ** (b - 1) - 1` for `b`
bits. Paddle stores integers in float32 tensors; dequantization here reads the integers themselves.
Values beyond the greatest magnitude may become -128 here, which some operators of Paddle exclude.
"""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import (
    Array,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    UnsupportedError,
    constant,
)
from crosschip.ops.definition.quantized import limits, stored
from crosschip.ops.standard.arithmetic import Div, Max, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.quantization import Dequantize, Quantize, Reinterpret, parameters
from crosschip.ops.standard.reduction import ReduceMax
from crosschip.ops.standard.unary import Abs, Round

_TYPES = {4: ElementType.INT4, 8: ElementType.INT8, 16: ElementType.INT16}
_LEAST = np.float32(1e-30)


@imports("quantize_linear")
def quantize_linear(op: Context) -> None:
    """Integers in float32; the zero point is always 0."""
    if _pass_if_observer(op):
        return
    _check_zero_point(op)
    integers = _quantize(op, op.input(), _constant(op, "Scale"), _axis(op))
    op.define(_as_float_integers(op, integers), "Y")


@imports("dequantize_linear")
def dequantize_linear(op: Context) -> None:
    if _pass_if_observer(op):
        return
    _check_zero_point(op)
    op.define(_dequantize(op, op.input(), _constant(op, "Scale"), _axis(op)), "Y")


@imports("fake_quantize_moving_average_abs_max", "fake_quantize_range_abs_max")
def fake_quantize(op: Context) -> None:
    """Integers in float32, by a constant scale."""
    op.define(_as_float_integers(op, _quantize(op, op.input(), _constant(op, "InScale"), None)))


@imports("fake_quantize_abs_max")
def fake_quantize_abs_max(op: Context) -> None:
    """Integers in float32, by the greatest magnitude in the tensor."""
    _make_integers(op, None)


@imports("fake_channel_wise_quantize_abs_max")
def fake_channel_wise_quantize_abs_max(op: Context) -> None:
    """Integers in float32, by the greatest magnitude in each channel."""
    _make_integers(op, op.integer("quant_axis", 0))


@imports("fake_quantize_dequantize_moving_average_abs_max")
def fake_quantize_dequantize(op: Context) -> None:
    """Quantize and dequantize reals by a constant scale."""
    integers = _quantize(op, op.input(), _constant(op, "InScale"), None)
    op.define(op.add(Dequantize, integers))


@imports("fake_quantize_dequantize_abs_max")
def fake_quantize_dequantize_abs_max(op: Context) -> None:
    """Quantize and dequantize reals by the greatest magnitude in the tensor."""
    _make_fake_quantized(op, None)


@imports("fake_channel_wise_quantize_dequantize_abs_max")
def fake_channel_wise_quantize_dequantize_abs_max(op: Context) -> None:
    """Quantize and dequantize reals by the greatest magnitude in each channel."""
    _make_fake_quantized(op, op.integer("quant_axis", 0))


@imports("fake_dequantize_max_abs")
def fake_dequantize_max_abs(op: Context) -> None:
    """`X * Scale / max_range`."""
    scale = _constant(op, "Scale").reshape(-1)
    if scale.size != 1:
        raise ModelError(f"Scale: has {scale.size} elements, but must have one")
    factor = scale[0] / np.float32(op.real("max_range"))
    op.define(op.add(Mul, _as_float32(op, op.input()), np.float32(factor)))


@imports("fake_channel_wise_dequantize_max_abs")
def fake_channel_wise_dequantize_max_abs(op: Context) -> None:
    """Dequantization with per-channel scales.

    The first list of scales is for the channels of a weight or of a product. If there is a second
    list, it has the scale of the tensor that was multiplied by the weight.
    """
    scales = [np.asarray(s.value) for s in op.inputs("Scales") if s.value is not None]
    bits = op.integers("quant_bits", (8,))
    if not scales or len(scales) != len(op.inputs("Scales")) or len(bits) < len(scales):
        raise UnsupportedError("Scales: must be constant, with a number of quant_bits for each")
    x = op.input()
    if len(scales) == 1:
        op.define(_dequantize(op, x, scales[0], op.integer("quant_axis", 0), bits[0]))
        return
    axis = op.integer("x_num_col_dims", 1)
    shape = (-1,) + (1,) * (op.rank(x) - 1 - axis)
    channel_steps = scales[0].reshape(shape) / np.float32(2 ** (bits[0] - 1) - 1)
    input_step = scales[1].reshape(-1)[0] / np.float32(2 ** (bits[1] - 1) - 1)
    op.define(op.add(Mul, _as_float32(op, x), (channel_steps * input_step).astype(np.float32)))


@imports("moving_average_abs_max_scale")
def moving_average_abs_max_scale(op: Context) -> None:
    """Set the output to the input; the computed scale is for tools that quantize the program."""
    op.define(op.input())


def _make_integers(op: Context, axis: int | None) -> None:
    """Set the outputs to integers in float32, and to their scales."""
    x = op.input()
    if x.value is None:
        steps, magnitudes = _quantize_dynamically(op, x, axis)
        op.define(steps)
        if op.is_read("OutScale"):
            op.define(op.add(Reshape, magnitudes, (-1,)), "OutScale")
        return
    scale = _magnitudes(x.value, axis)
    op.define(_as_float_integers(op, _quantize(op, x, scale, axis)))
    if op.is_read("OutScale"):
        op.define(op.constant(scale.reshape(-1), "OutScale"), "OutScale")


def _make_fake_quantized(op: Context, axis: int | None) -> None:
    """Set the output to reals that are quantized and dequantized."""
    x = op.input()
    if x.value is None:
        steps, magnitudes = _quantize_dynamically(op, x, axis)
        op.define(op.add(Div, op.add(Mul, steps, magnitudes), np.float32(_max_integer(op))))
        return
    op.define(op.add(Dequantize, _quantize(op, x, _magnitudes(x.value, axis), axis)))


def _quantize(op: Context, x: Operand, scale: Array, axis: int | None) -> Operand:
    """Quantize an operand."""
    bits = op.integer("bit_length", 8)
    quantization, dtype = _quantization(scale, bits, axis), _type(bits)
    if x.value is not None:
        values = stored(x.value.astype(np.float32), quantization, dtype)
        return constant(values, f"{x.name}.quantized", quantization)
    return op.add(Quantize, _as_float32(op, x), **parameters(quantization), dtype=dtype)


def _as_float_integers(op: Context, integers: Operand) -> Operand:
    """Cast quantized integers, without dequantization, to float32, as Paddle stores them."""
    return op.add(Cast, op.add(Reinterpret, integers, bare=True), ElementType.FLOAT32)


def _dequantize(
    op: Context, x: Operand, scale: Array, axis: int | None, bits: int | None = None
) -> Operand:
    """Dequantize integers in float32 or in a constant."""
    bit_length = op.integer("bit_length", 8) if bits is None else bits
    quantization, dtype = _quantization(scale, bit_length, axis), _type(bit_length)
    if x.value is not None:
        low, high = limits(dtype)
        if np.all(np.rint(x.value) == x.value) and np.all((low <= x.value) & (x.value <= high)):
            integers = constant(x.value.astype(dtype.dtype), f"{x.name}.quantized", quantization)
            return op.add(Dequantize, integers)
    integers_of_x = _source_integers(op, x)
    if integers_of_x is not None and integers_of_x.type.quantization == quantization:
        return op.add(Dequantize, integers_of_x)
    factors = np.array(quantization.scale, np.float32)
    if quantization.axis is not None:
        factors = factors.reshape((-1,) + (1,) * (op.rank(x) - 1 - quantization.axis))
    return op.add(Mul, _as_float32(op, x), factors)


def _source_integers(op: Context, x: Operand) -> Operand | None:
    """Return the quantized operand that `_as_float_integers` has cast to `x`, if there is one."""
    operations = reversed(op.values.builder.operations)
    cast = next((operation for operation in operations if x in operation.outputs), None)
    if not isinstance(cast, Cast):
        return None
    bare = next((operation for operation in operations if cast.input in operation.outputs), None)
    return bare.input if isinstance(bare, Reinterpret) else None


def _as_float32(op: Context, x: Operand) -> Operand:
    return op.as_type(x, ElementType.FLOAT32)


def _quantize_dynamically(op: Context, x: Operand, axis: int | None) -> tuple[Operand, Operand]:
    """Return integers in float32, and the greatest magnitudes that they are scaled by."""
    axes = tuple(a for a in range(op.rank(x)) if a != axis)
    scale = op.add(Max, op.add(ReduceMax, op.add(Abs, x), axes, keepdim=True), _LEAST)
    scaled = op.add(Mul, op.add(Div, x, scale), np.float32(_max_integer(op)))
    return op.add(Round, scaled), scale


def _magnitudes(array: Array, axis: int | None) -> Array:
    """Return the greatest magnitude in an array, or in each channel of `axis`."""
    axes = tuple(a for a in range(array.ndim) if a != axis)
    magnitudes = np.abs(array.astype(np.float32)).max(axes, initial=0)
    return np.asarray(np.maximum(magnitudes, _LEAST))


def _quantization(scale: Array, bits: int, axis: int | None) -> Quantization:
    _type(bits)
    steps = np.asarray(scale, np.float32).reshape(-1) / np.float32(2 ** (bits - 1) - 1)
    try:
        return Quantization(
            tuple(np.maximum(steps, np.finfo(np.float32).tiny).tolist()),
            axis=axis if steps.size > 1 else None,
        )
    except ValueError as error:
        raise ModelError(f"Scale: {error}") from None


def _max_integer(op: Context) -> int:
    bits = op.integer("bit_length", 8)
    _type(bits)
    return int(2 ** (bits - 1) - 1)


def _type(bits: int) -> ElementType:
    if bits not in _TYPES:
        raise UnsupportedError(f"integers of {bits} bits; there are those of {list(_TYPES)}")
    return _TYPES[bits]


def _axis(op: Context) -> int | None:
    axis = op.integer("quant_axis", -1)
    return None if axis < 0 else axis


def _pass_if_observer(op: Context) -> bool:
    """Set `Y` to the input, and return true, if the operator only records the scale."""
    observes = op.flag("only_observer", False)
    if observes:
        op.define(op.input(), "Y")
    return observes


def _constant(op: Context, slot: str) -> Array:
    operand = op.input(slot)
    if operand.value is None:
        raise UnsupportedError(f"{slot}: must be constant")
    return np.asarray(operand.value)


def _check_zero_point(op: Context) -> None:
    operand = op.optional_input("ZeroPoint")
    if operand is not None and (operand.value is None or np.any(operand.value)):
        raise UnsupportedError("ZeroPoint: must be constant, and 0")
