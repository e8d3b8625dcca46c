"""Rewrites that avoid what LiteRT computes wrong; the quirks are in `quirks`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from crosschip.devices.litert.limits import EXCEEDED, scales_channels
from crosschip.ir import Builder, ElementType, Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.quantized import reals
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul, Pow, Sub
from crosschip.ops.standard.comparison import Less, LessEqual, NotEqual
from crosschip.ops.standard.conversion import BitCast, Cast
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.indexing import GatherND
from crosschip.ops.standard.layout import Expand, Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import BitwiseXor, Where
from crosschip.ops.standard.pooling import AveragePool2D
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.reduction import ReduceAny, ReduceMax, ReduceMean, ReduceMin
from crosschip.ops.standard.searching import ArgMax, ArgMin, TopK
from crosschip.ops.standard.unary import Exp, Log, Neg, Rsqrt, Sqrt
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import constant_like, rebuild
from crosschip.passes.rewriter import Rewriter


def nan_of_exponential(b: Builder, op: Exp) -> Sequence[Operand] | None:
    """Return NaN where the input is NaN (quirk `exp-of-nan`)."""
    if not _is_float(op.input):
        return None
    return (b.add(Where, _is_nan(b, op.input), op.input, rebuild(b, op)),)


def logarithm_of_finite(b: Builder, op: Log) -> Sequence[Operand] | None:
    """Return NaN and infinity themselves (quirk `log-of-nan`)."""
    if not _is_float(op.input):
        return None
    largest = constant_like(b, op.input, float(np.finfo(np.float32).max))
    return (b.add(Where, b.add(LessEqual, op.input, largest), rebuild(b, op), op.input),)


def reciprocal_of_root(b: Builder, op: Rsqrt) -> Sequence[Operand] | None:
    """Divide 1 by the root, which is infinite at 0 (quirk `rsqrt-of-zero`)."""
    if not _is_float(op.input):
        return None
    return (b.add(Div, constant_like(b, op.input, 1), b.add(Sqrt, op.input)),)


def negative_as_product(b: Builder, op: Neg) -> Sequence[Operand] | None:
    """Multiply by -1, which changes the sign of 0 (quirk `negative-of-zero`)."""
    if not _is_float(op.input):
        return None
    return (b.add(Mul, op.input, constant_like(b, op.input, -1)),)


def nan_of_extreme(b: Builder, op: Max | Min) -> Sequence[Operand] | None:
    """Return NaN where an operand is NaN (quirks `maximum-of-nan`, `minimum-of-nan`).

    Which of the operands loses it depends on how they are broadcast. It is the first, if their
    shapes are equal, and none if one is a constant of one element.
    """
    if not _is_float(op.input0):
        return None
    first, second = (op.input1, op.input0) if op.input1.is_constant else (op.input0, op.input1)
    result = rebuild(b, op, input0=first, input1=second)
    if _is_number(first) and prod(first.type.static_shape or ()) == 1:
        return (result,)
    is_broadcast = first.type.shape != second.type.shape
    for operand in (first, second) if is_broadcast else (first,):
        if not _is_number(operand):
            result = b.add(Where, _is_nan(b, operand), operand, result)
    return (result,)


def nan_of_reduction(b: Builder, op: ReduceMax | ReduceMin) -> Sequence[Operand] | None:
    """Return NaN if an element is NaN (quirks `greatest-of-nan`, `least-of-nan`)."""
    if not _is_float(op.input):
        return None
    has_nan = b.add(ReduceAny, _is_nan(b, op.input), axes=op.axes, keepdim=op.keepdim)
    return (b.add(Where, has_nan, constant_like(b, op.input, np.nan), rebuild(b, op)),)


def place_of_nan(b: Builder, op: ArgMax | ArgMin) -> Sequence[Operand] | None:
    """Return the index of the first NaN, if there is one (quirk `place-of-nan`)."""
    if not _is_float(op.input):
        return None
    is_nan = _is_nan(b, op.input)
    has_nan = b.add(ReduceAny, is_nan, axes=(op.axis,), keepdim=op.keepdim)
    first = b.add(
        ArgMax, b.add(Cast, is_nan, ElementType.INT32), op.axis, keepdim=op.keepdim, dtype=op.dtype
    )
    return (b.add(Where, has_nan, first, rebuild(b, op)),)


def largest_of_keys(b: Builder, op: TopK) -> Sequence[Operand] | None:
    """Search integers that are in the order of the numbers (quirk `largest-of-nan`).

    The bits of a number that is not negative are in its order, with NaN after infinity; those of a
    negative one are in the reverse order.
    """
    shape = op.input.type.static_shape
    if not _is_float(op.input) or shape is None:
        return None
    axis = op.axis % len(shape)
    order = [*(a for a in range(len(shape)) if a != axis), axis]
    rows = _transposed(b, op.input, order)
    lines = b.add(Reshape, rows, (prod(shape) // shape[axis], shape[axis]))
    bits = b.add(BitCast, b.add(Add, lines, constant_like(b, lines, 0)), ElementType.INT32)
    flipped = b.add(BitwiseXor, bits, np.int32(_LARGEST))
    keys = b.add(Where, b.add(Less, bits, np.int32(0)), flipped, bits)
    keys = b.add(Where, _is_nan(b, lines), np.int32(_LARGEST), keys)
    if not op.largest:
        keys = b.add(BitwiseXor, keys, np.int32(-1))
    _, places = b.add_all(
        TopK, keys, op.k, axis=-1, sorted=op.sorted, return_indices_dtype=ElementType.INT32
    )
    values = b.add(GatherND, lines, b.add(Unsqueeze, places, (2,)), batch_dims=1)
    moved = (*(shape[a] for a in order[:-1]), op.k)
    back = [order.index(a) for a in range(len(shape))]
    outputs = (values, b.add(Cast, places, op.return_indices_dtype))
    return tuple(_transposed(b, b.add(Reshape, each, moved), back) for each in outputs)


def _transposed(b: Builder, operand: Operand, order: Sequence[int]) -> Operand:
    is_changed = list(order) != list(range(len(order)))
    return b.add(Transpose, operand, order) if is_changed else operand


def power_in_full(b: Builder, op: Pow) -> Sequence[Operand] | None:
    """Repeat a single exponent, with which infinities are clamped (quirk `power-of-infinity`)."""
    shape = op.outputs[0].type.static_shape or ()
    if prod(op.input1.type.static_shape or ()) != 1 or prod(shape) == 1:
        return None
    return (rebuild(b, op, input1=b.add(Expand, op.input1, shape)),)


def mean_that_keeps_nan(b: Builder, op: AveragePool2D) -> Sequence[Operand] | None:
    """Compute a mean with a kernel that keeps NaN (quirk `average-of-nan`).

    The mean of the whole image has one. A convolution of each channel is as fast as a mean, if it
    has a kernel for the pixels of a window (quirk `nan-beside-the-window`).
    """
    image = (op.input.type.static_shape or ())[2:]
    if not _is_float(op.input) or not image:
        return None
    pads = op.windows.padding(image)
    if op.kernel_shape == image and not any(pads):
        return (b.add(ReduceMean, op.input, axes=(2, 3), keepdim=True),)
    population = op.windows.population(image, with_padding=op.count_include_pad)
    if prod(op.kernel_shape) in EXCEEDED or (population != population.max()).any():
        return (_difference_of_means(b, op),)
    channels = (op.input.type.static_shape or ())[1]
    weight = np.float32(1 / population.max())
    filter = np.full((channels, 1, *op.kernel_shape), weight, np.float32)
    return (b.add(Conv2D, op.input, filter, strides=op.strides, pads=pads, group=channels),)


def product_by_pixel(b: Builder, op: Conv2D) -> Sequence[Operand] | None:
    """Multiply channels by numbers (quirk `nan-beside-the-window`)."""
    if not scales_channels(op):
        return None
    out = (op.filter.type.static_shape or ())[0]
    factors = b.add(Reshape, op.filter, (out, 1, 1))
    if op.bias is None:
        return (b.add(Mul, op.input, factors, fuse_code=op.fused),)
    scaled, bias = b.add(Mul, op.input, factors), b.add(Reshape, op.bias, (out, 1, 1))
    return (b.add(Add, scaled, bias, fuse_code=op.fused),)


def _difference_of_means(b: Builder, op: AveragePool2D) -> Operand:
    """Subtract half the mean of negatives from half the mean.

    The mean of a window with a NaN is the least number, so that only the difference is NaN.
    """
    half, negative = (b.add(Mul, op.input, constant_like(b, op.input, c)) for c in (0.5, -0.5))
    return b.add(Sub, rebuild(b, op, input=half), rebuild(b, op, input=negative))


_LARGEST = np.iinfo(np.int32).max


def reals_of_constant(b: Builder, op: Dequantize) -> Sequence[Operand] | None:
    """Dequantize a constant in the file (quirk `dequantized-constant`)."""
    value, quantization = op.input.value, op.input.type.quantization
    if value is None or quantization is None:
        return None
    array = reals(value, quantization)
    return (b.constant(array.astype(op.outputs[0].type.element_type.dtype)),)


@dataclass(frozen=True)
class RemoveEmpty(Pass):
    """Replaces operations whose outputs have no elements by constants.

    LiteRT computes nothing for them, and some of its kernels fail.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for operation in map(rewriter.resolved, model.operations):
            if not all(0 in (output.type.static_shape or ()) for output in operation.outputs):
                rewriter.keep(operation)
                continue
            for output in operation.outputs:
                dtype = output.type.element_type.dtype
                rewriter.replace_by_value(output, np.empty(output.type.static_shape or (), dtype))
        return rewriter.finish()


def _is_float(operand: Operand) -> bool:
    return operand.type.element_type in FLOATS


def _is_number(operand: Operand) -> bool:
    """Return whether an operand is a constant without NaN."""
    return operand.value is not None and not np.isnan(operand.value).any()


def _is_nan(b: Builder, operand: Operand) -> Operand:
    return b.add(NotEqual, operand, operand)
