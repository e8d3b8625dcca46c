"""Integers that stand for reals: Paddle's three ways to write them.

Scales are the greatest magnitude there is, for which the greatest integer stands: of `b` bits,
`2 ** (b - 1) - 1`. Paddle holds integers in float32 tensors; what converts them back reads the
integers themselves here. Where a real is beyond the greatest magnitude, an integer may be less by
one than Paddle's, which knows no -128 in some of its operators.
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
    """Integers, whose zero point is always 0."""
    if _only_observes(op):
        return
    _expect_no_zero_point(op)
    op.define(_as_reals(op, _quantized(op, op.input(), _constant(op, "Scale"), _axis(op))), "Y")


@imports("dequantize_linear")
def dequantize_linear(op: Context) -> None:
    if _only_observes(op):
        return
    _expect_no_zero_point(op)
    op.define(_dequantized(op, op.input(), _constant(op, "Scale"), _axis(op)), "Y")


@imports("fake_quantize_moving_average_abs_max", "fake_quantize_range_abs_max")
def fake_quantize(op: Context) -> None:
    """Integers in float32, of a scale that training has found."""
    op.define(_as_reals(op, _quantized(op, op.input(), _constant(op, "InScale"), None)))


@imports("fake_quantize_abs_max")
def fake_quantize_abs_max(op: Context) -> None:
    """Integers in float32, of the scale that the tensor itself has."""
    _make_integers(op, None)


@imports("fake_channel_wise_quantize_abs_max")
def fake_channel_wise_quantize_abs_max(op: Context) -> None:
    """The same, with a scale for each index of an axis."""
    _make_integers(op, op.integer("quant_axis", 0))


@imports("fake_quantize_dequantize_moving_average_abs_max")
def fake_quantize_dequantize(op: Context) -> None:
    """Reals, rounded to what integers stand for."""
    integers = _quantized(op, op.input(), _constant(op, "InScale"), None)
    op.define(op.add(Dequantize, integers))


@imports("fake_quantize_dequantize_abs_max")
def fake_quantize_dequantize_abs_max(op: Context) -> None:
    """Reals, rounded by the scale that the tensor itself has."""
    _make_rounded(op, None)


@imports("fake_channel_wise_quantize_dequantize_abs_max")
def fake_channel_wise_quantize_dequantize_abs_max(op: Context) -> None:
    """The same, with a scale for each index of an axis."""
    _make_rounded(op, op.integer("quant_axis", 0))


@imports("fake_dequantize_max_abs")
def fake_dequantize_max_abs(op: Context) -> None:
    """`X * Scale / max_range`."""
    scale = _constant(op, "Scale").reshape(-1)
    if scale.size != 1:
        raise ModelError(f"Scale: has {scale.size} elements, but must have one")
    factor = scale[0] / np.float32(op.real("max_range"))
    op.define(op.add(Mul, _plain(op, op.input()), np.float32(factor)))


@imports("fake_channel_wise_dequantize_max_abs")
def fake_channel_wise_dequantize_max_abs(op: Context) -> None:
    """One scale a channel; and where there are two lists, one of the whole, of what it multiplied.

    The first list runs along an axis of weights, or along the channels of a product.
    """
    scales = [np.asarray(s.value) for s in op.inputs("Scales") if s.value is not None]
    bits = op.integers("quant_bits", (8,))
    if not scales or len(scales) != len(op.inputs("Scales")) or len(bits) < len(scales):
        raise UnsupportedError("Scales: must be constant, with a number of quant_bits for each")
    x = op.input()
    if len(scales) == 1:
        op.define(_dequantized(op, x, scales[0], op.integer("quant_axis", 0), bits[0]))
        return
    axis = op.integer("x_num_col_dims", 1)
    shape = (-1,) + (1,) * (op.rank(x) - 1 - axis)
    by_channel = scales[0].reshape(shape) / np.float32(2 ** (bits[0] - 1) - 1)
    whole = scales[1].reshape(-1)[0] / np.float32(2 ** (bits[1] - 1) - 1)
    op.define(op.add(Mul, _plain(op, x), (by_channel * whole).astype(np.float32)))


@imports("moving_average_abs_max_scale")
def moving_average_abs_max_scale(op: Context) -> None:
    """The input; the scale is for whoever quantizes the program."""
    op.define(op.input())


def _make_integers(op: Context, axis: int | None) -> None:
    """Make integers in float32, and the magnitudes that they are scaled by."""
    x = op.input()
    if x.value is None:
        steps, magnitudes = _own_steps(op, x, axis)
        op.define(steps)
        if op.is_read("OutScale"):
            op.define(op.add(Reshape, magnitudes, (-1,)), "OutScale")
        return
    scale = _magnitudes(x.value, axis)
    op.define(_as_reals(op, _quantized(op, x, scale, axis)))
    if op.is_read("OutScale"):
        op.define(op.constant(scale.reshape(-1), "OutScale"), "OutScale")


def _make_rounded(op: Context, axis: int | None) -> None:
    """Make reals that are rounded to integers and back."""
    x = op.input()
    if x.value is None:
        steps, magnitudes = _own_steps(op, x, axis)
        op.define(op.add(Div, op.add(Mul, steps, magnitudes), np.float32(_greatest(op))))
        return
    op.define(op.add(Dequantize, _quantized(op, x, _magnitudes(x.value, axis), axis)))


def _quantized(op: Context, x: Operand, scale: Array, axis: int | None) -> Operand:
    """The integers that stand for reals."""
    bits = op.integer("bit_length", 8)
    known, dtype = _quantization(scale, bits, axis), _type(bits)
    if x.value is not None:
        values = stored(x.value.astype(np.float32), known, dtype)
        return constant(values, f"{x.name}.quantized", known)
    return op.add(Quantize, _plain(op, x), **parameters(known), dtype=dtype)


def _as_reals(op: Context, integers: Operand) -> Operand:
    """The integers in float32, where Paddle has them."""
    return op.add(Cast, op.add(Reinterpret, integers, bare=True), ElementType.FLOAT32)


def _dequantized(
    op: Context, x: Operand, scale: Array, axis: int | None, bits: int | None = None
) -> Operand:
    """What integers stand for."""
    length = op.integer("bit_length", 8) if bits is None else bits
    known, dtype = _quantization(scale, length, axis), _type(length)
    if x.value is not None:
        low, high = limits(dtype)
        if np.all(np.rint(x.value) == x.value) and np.all((low <= x.value) & (x.value <= high)):
            integers = constant(x.value.astype(dtype.dtype), f"{x.name}.quantized", known)
            return op.add(Dequantize, integers)
    before = _integers_before(op, x)
    if before is not None and before.type.quantization == known:
        return op.add(Dequantize, before)
    factors = np.array(known.scale, np.float32)
    if known.axis is not None:
        factors = factors.reshape((-1,) + (1,) * (op.rank(x) - 1 - known.axis))
    return op.add(Mul, _plain(op, x), factors)


def _integers_before(op: Context, x: Operand) -> Operand | None:
    """The quantized operand whose integers a tensor holds, if it was made by `_as_reals`."""
    operations = reversed(op.values.builder.operations)
    cast = next((operation for operation in operations if x in operation.outputs), None)
    if not isinstance(cast, Cast):
        return None
    bare = next((operation for operation in operations if cast.input in operation.outputs), None)
    return bare.input if isinstance(bare, Reinterpret) else None


def _plain(op: Context, x: Operand) -> Operand:
    return op.as_type(x, ElementType.FLOAT32)


def _own_steps(op: Context, x: Operand, axis: int | None) -> tuple[Operand, Operand]:
    """Integers in float32, and the greatest magnitude that they were scaled by."""
    axes = tuple(a for a in range(op.rank(x)) if a != axis)
    scale = op.add(Max, op.add(ReduceMax, op.add(Abs, x), axes, keepdim=True), _LEAST)
    whole = op.add(Mul, op.add(Div, x, scale), np.float32(_greatest(op)))
    return op.add(Round, whole), scale


def _magnitudes(array: Array, axis: int | None) -> Array:
    """The greatest magnitudes in an array, or along its axis."""
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


def _greatest(op: Context) -> int:
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


def _only_observes(op: Context) -> bool:
    """Hand the input on if the operator only notes its scale, for chips that compute otherwise."""
    observes = op.flag("only_observer", False)
    if observes:
        op.define(op.input(), "Y")
    return observes


def _constant(op: Context, slot: str) -> Array:
    operand = op.input(slot)
    if operand.value is None:
        raise UnsupportedError(f"{slot}: must be constant")
    return np.asarray(operand.value)


def _expect_no_zero_point(op: Context) -> None:
    operand = op.optional_input("ZeroPoint")
    if operand is not None and (operand.value is None or np.any(operand.value)):
        raise UnsupportedError("ZeroPoint: must be constant, and 0")
