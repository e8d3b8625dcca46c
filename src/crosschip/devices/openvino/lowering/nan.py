"""NaN where OpenVINO loses it.

A NaN is unequal to itself; that comparison is computed in one kernel with what is around it, which
IS_NAN is not. RELU, RELU6 and CLIP are not among these passes: whether one keeps NaN depends on
what OpenVINO fuses it into, so their converters look at the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ir.types import FLOATS
from crosschip.ops.standard.activation import HardSigmoid, Softplus
from crosschip.ops.standard.arithmetic import Max, Min, Mul
from crosschip.ops.standard.comparison import Equal, NotEqual
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin, ReduceProd
from crosschip.ops.standard.unary import Exp
from crosschip.passes.rewrite_operations import constant_like, rebuild


def nan_of_function(b: Builder, op: Exp | HardSigmoid | Softplus) -> Sequence[Operand]:
    """Take NaN from the input, of which OpenVINO's kernel makes a number.

    Quirks `exp-of-nan`, `hard-sigmoid-of-nan`.
    """
    return (_keeping(b, op.input, rebuild(b, op)),)


def nan_of_extreme(b: Builder, op: Max | Min) -> Sequence[Operand] | None:
    """Take NaN from the first operand, where OpenVINO returns the second.

    A constant comes first, where a number loses nothing. Where both are known as it compiles,
    OpenVINO loses a NaN in either.

    Quirks `maximum-of-nan`, `minimum-of-nan`, `folded-maximum-of-nan`.
    """
    first, second = _in_order(op)
    if op.input0.type.element_type not in FLOATS or op.input0 is op.input1:
        return None
    result = rebuild(b, op, input0=first, input1=second)
    if not _is_number(first):
        result = _keeping(b, first, result)
    if first.is_constant and not _is_number(second):
        result = _keeping(b, second, result)
    return (result,)


def nan_and_infinity_of_reduction(
    b: Builder, op: ReduceMax | ReduceMin
) -> Sequence[Operand] | None:
    """Tell by a product where there is a NaN, or nothing but infinities.

    OpenVINO leaves NaN out, and of infinities alone makes the last number before them. The product
    is 0 where there are other numbers, 1 where there are none, NaN where one is NaN.

    Quirks `greatest-with-nan`, `least-of-infinities`.
    """
    value = op.input
    if value.type.element_type not in FLOATS:
        return None
    none = -np.inf if isinstance(op, ReduceMax) else np.inf
    zero, one, end = (constant_like(b, value, number) for number in (0, 1, none))
    doubts = b.add(Where, b.add(NotEqual, value, value), value, zero)
    doubts = b.add(Where, b.add(Equal, value, end), one, doubts)
    doubt = b.add(ReduceProd, doubts, axes=op.axes, keepdim=op.keepdim)
    result = rebuild(b, op)
    return (b.add(Where, b.add(Equal, doubt, zero), result, b.add(Mul, doubt, end)),)


def loses_nan(model: Model) -> frozenset[Operation]:
    """The operations that lose a NaN, but for those on what is made of integers, which is none."""
    return frozenset(
        operation
        for operation in model.operations
        if isinstance(operation, Exp | HardSigmoid | Softplus | Max | Min)
        and not isinstance(model.producers.get(_source(operation)), Dequantize)
    )


def _source(op: Exp | HardSigmoid | Softplus | Max | Min) -> Operand:
    return _in_order(op)[0] if isinstance(op, Max | Min) else op.input


def _in_order(op: Max | Min) -> tuple[Operand, Operand]:
    return (op.input1, op.input0) if op.input1.is_constant else (op.input0, op.input1)


def _is_number(operand: Operand) -> bool:
    return operand.value is not None and not np.isnan(operand.value).any()


def _keeping(b: Builder, operand: Operand, result: Operand) -> Operand:
    """A result, with NaN wherever the operand that it is made of is NaN."""
    return b.add(Where, b.add(NotEqual, operand, operand), operand, result)
