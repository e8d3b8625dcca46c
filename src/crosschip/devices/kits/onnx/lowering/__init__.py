"""Passes that adapt operations to ONNX as ONNX Runtime computes it.

After them, converters map each operation to a node or two. The passes also rewrite operations in
bodies of control flow. Passes that avoid a quirk name its record; `onnxruntime.quirks` has the
reproductions on ONNX Runtime itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.devices.kits.onnx.lowering import arithmetic, networks, reduction
from crosschip.hal.device import single_operation_model
from crosschip.ir import Operation
from crosschip.ops.standard.activation import HardSwish, PRelu, Swish
from crosschip.ops.standard.arithmetic import Div, Mod
from crosschip.ops.standard.indexing import ScatterElements, ScatterND
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.reduction import (
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from crosschip.ops.standard.searching import NonZero
from crosschip.passes.base import run
from crosschip.passes.rewrite_operations import RewriteOperations

PASSES = (
    RewriteOperations(arithmetic.remainder_without_traps, (Mod,)),
    RewriteOperations(arithmetic.quotient_without_traps, (Div,)),
    RewriteOperations(arithmetic.remainder_with_sign_of_divisor, (Mod,)),
    RewriteOperations(arithmetic.choice_in_wider_type, (Where,)),
    RewriteOperations(networks.hard_swish_as_product, (HardSwish,)),
    RewriteOperations(networks.swish_as_product, (Swish,)),
    RewriteOperations(networks.slope_along_channels, (PRelu,)),
    RewriteOperations(networks.transpose_operands, (MatMul,)),
    RewriteOperations(networks.vector_as_matrix, (MatMul,)),
    RewriteOperations(networks.input_as_matrix, (FullyConnected,)),
    RewriteOperations(networks.non_zero_of_booleans, (NonZero,)),
    RewriteOperations(networks.scatter_in_float32, (ScatterElements, ScatterND)),
    RewriteOperations(reduction.extreme_of_booleans, (ReduceMax, ReduceMin)),
)
"""The passes without which ONNX Runtime rejects operations or ends, in order."""

WORKAROUNDS = (
    RewriteOperations(reduction.sum_that_wraps, (ReduceSum,)),
    RewriteOperations(reduction.nan_of_reduction, (ReduceLogSumExp, ReduceMax, ReduceMin)),
    RewriteOperations(reduction.product_of_few, (ReduceProd,)),
    RewriteOperations(reduction.mean_of_nothing, (ReduceMean,)),
)
"""The passes without which some values are wrong on ONNX Runtime, after the other passes."""

_REWRITTEN = frozenset(operator for each in PASSES + WORKAROUNDS for operator in each.operators)


def lower(operation: Operation, *, workarounds: bool = True) -> Sequence[Operation]:
    """Rewrite an operation into operations to convert; they keep its name."""
    if type(operation) not in _REWRITTEN:
        return (operation,)
    passes = (*PASSES, *WORKAROUNDS) if workarounds else PASSES
    parts = run(single_operation_model(operation), passes).operations
    return [part if part is operation else part.with_name(operation.name) for part in parts]
