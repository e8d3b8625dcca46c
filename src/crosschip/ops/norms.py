"""Reductions to norms and logarithms of sums."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from crosschip.ir import Array, Builder, Operand
from crosschip.ir.types import FLOATS
from crosschip.ops.elementwise import Add, Clip, Mul, Sub
from crosschip.ops.operator import operator
from crosschip.ops.reduction import (
    INTEGERS,
    QUANTIZED,
    REALS,
    ReduceMax,
    ReduceSum,
    Reduction,
    reduce_face,
)
from crosschip.ops.slots import tensor
from crosschip.ops.unary import Abs, Exp, Log, Sqrt


@operator("REDUCE_L1", onnx=["ReduceL1"])
class ReduceL1(Reduction):
    """The sum of the absolute values: `sum(abs(input))`; no elements give 0.

    Integers wrap around on overflow; the absolute value of the lowest one is itself.
    """

    __slots__ = ()
    examples = (*REALS, *INTEGERS)

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.sum(np.abs(input), tuple(axes) or None, input.dtype, keepdims=keepdim)

    def decompose(self, b: Builder) -> Operand:
        return b.add(ReduceSum, b.add(Abs, self.input), *self.over())


@operator("REDUCE_SUM_SQUARE", onnx=["ReduceSumSquare"])
class ReduceSumSquare(Reduction):
    """The sum of the squares: `sum(input * input)`; no elements give 0.

    Integers wrap around on overflow.
    """

    __slots__ = ()
    examples = (*REALS, *INTEGERS)

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.sum(input * input, tuple(axes) or None, input.dtype, keepdims=keepdim)

    def decompose(self, b: Builder) -> Operand:
        return b.add(ReduceSum, b.add(Mul, self.input, self.input), *self.over())


@operator("REDUCE_L2", nnrt=[reduce_face(106, "L2")], onnx=["ReduceL2"])
class ReduceL2(Reduction):
    """The Euclidean norm: `sqrt(sum(input * input))`; no elements give 0.

    The squares are not scaled, so that the norm is infinite where their sum is.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    examples = (*REALS, *QUANTIZED)

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.sqrt(np.sum(input * input, tuple(axes) or None, keepdims=keepdim))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Sqrt, b.add(ReduceSumSquare, self.input, *self.over()))


@operator("REDUCE_LOG_SUM", onnx=["ReduceLogSum"])
class ReduceLogSum(Reduction):
    """The natural logarithm of the sum: `log(sum(input))`.

    It is minus infinity for a sum of 0, which is that of no elements, and NaN for a negative one.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    examples = REALS

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.log(np.sum(input, tuple(axes) or None, keepdims=keepdim))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Log, b.add(ReduceSum, self.input, *self.over()))


@operator("REDUCE_LOG_SUM_EXP", onnx=["ReduceLogSumExp"])
class ReduceLogSumExp(Reduction):
    """The natural logarithm of the sum of powers of e: `log(sum(exp(input)))`.

    It is computed as `m + log(sum(exp(input - m)))`, where `m` is the greatest element brought
    into the finite range of the type, so that no power overflows. It is infinity if an element is,
    minus infinity if all elements are or there are none, and NaN if an element is.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    examples = REALS

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        over = tuple(axes) or None
        finite = np.finfo(input.dtype)
        greatest = np.max(input, over, keepdims=True, initial=finite.min)
        greatest = np.minimum(greatest, finite.max)
        total = np.log(np.sum(np.exp(input - greatest), over, keepdims=True)) + greatest
        return total if keepdim else np.squeeze(total, over)

    def decompose(self, b: Builder) -> Operand:
        axes, keepdim = self.over()
        # NumPy's finfo, which has types, does not know bfloat16.
        finite = ml_dtypes.finfo(self.input.type.element_type.dtype)  # type: ignore[no-untyped-call]
        low, high = float(finite.min), float(finite.max)
        each = b.add(Clip, b.add(ReduceMax, self.input, axes), low, high)
        powers = b.add(Exp, b.add(Sub, self.input, each))
        greatest = b.add(Clip, b.add(ReduceMax, self.input, axes, keepdim), low, high)
        return b.add(Add, b.add(Log, b.add(ReduceSum, powers, axes, keepdim)), greatest)
