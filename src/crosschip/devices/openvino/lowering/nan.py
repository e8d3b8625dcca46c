"""NaN where OpenVINO loses it.

The passes compare a value with itself, which OpenVINO fuses into the surrounding kernel; IS_NAN it
does not. RELU, RELU6 and CLIP have no pass: whether they keep NaN depends on what OpenVINO fuses
them into, which their converters see in the graph.
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
    """Return NaN where the input is NaN (quirks `exp-of-nan`, `hard-sigmoid-of-nan`)."""
    return (_keeping(b, op.input, rebuild(b, op)),)


def nan_of_extreme(b: Builder, op: Max | Min) -> Sequence[Operand] | None:
    """Return NaN where the first operand is NaN, for which OpenVINO returns the second.

    A constant without NaN becomes the first operand, and needs no check. In constant folding
    OpenVINO loses NaN of either operand. Quirks `maximum-of-nan`, `minimum-of-nan`,
    `folded-maximum-of-nan`.
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
    """Correct a reduction where an element is NaN, or all are infinite.

    A product detects both: it is NaN if an element is NaN, 1 if all are the infinity, else 0.
    Quirks `greatest-with-nan`, `least-of-infinities`.
    """
    value = op.input
    if value.type.element_type not in FLOATS:
        return None
    infinity = -np.inf if isinstance(op, ReduceMax) else np.inf
    zero, one, end = (constant_like(b, value, number) for number in (0, 1, infinity))
    doubts = b.add(Where, b.add(NotEqual, value, value), value, zero)
    doubts = b.add(Where, b.add(Equal, value, end), one, doubts)
    doubt = b.add(ReduceProd, doubts, axes=op.axes, keepdim=op.keepdim)
    result = rebuild(b, op)
    return (b.add(Where, b.add(Equal, doubt, zero), result, b.add(Mul, doubt, end)),)


def loses_nan(model: Model) -> frozenset[Operation]:
    """Return the operations that lose NaN, except those on dequantized integers."""
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
    """Return the result, or the operand where that is NaN."""
    return b.add(Where, b.add(NotEqual, operand, operand), operand, result)
