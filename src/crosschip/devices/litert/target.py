"""The operations that LiteRT runs, and the passes before they are written to a file."""

from __future__ import annotations

from dataclasses import replace

from crosschip.devices.kits.tflite import lowering
from crosschip.devices.kits.tflite.converters.table import MOVABLE
from crosschip.devices.litert.limits import refusal
from crosschip.devices.litert.lowering import (
    RemoveEmpty,
    largest_of_keys,
    logarithm_of_finite,
    mean_that_keeps_nan,
    nan_of_exponential,
    nan_of_extreme,
    nan_of_reduction,
    negative_as_product,
    place_of_nan,
    power_in_full,
    product_by_pixel,
    reals_of_constant,
    reciprocal_of_root,
)
from crosschip.hal import YES, Rule, Support
from crosschip.hal.converters import to_support
from crosschip.ir import If, Operation
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Max, Min, Pow
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.pooling import AveragePool2D
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin
from crosschip.ops.standard.searching import ArgMax, ArgMin, TopK
from crosschip.ops.standard.unary import Exp, Log, Neg, Rsqrt
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import RewriteOperations

_PASSES: tuple[Pass, ...] = (
    RemoveEmpty(),
    RewriteOperations(mean_that_keeps_nan, (AveragePool2D,)),
    RewriteOperations(product_by_pixel, (Conv2D,)),
    RewriteOperations(reals_of_constant, (Dequantize,)),
    RewriteOperations(place_of_nan, (ArgMax, ArgMin)),
    RewriteOperations(largest_of_keys, (TopK,)),
    RewriteOperations(power_in_full, (Pow,)),
    RewriteOperations(nan_of_reduction, (ReduceMax, ReduceMin)),
    RewriteOperations(nan_of_extreme, (Max, Min)),
    RewriteOperations(nan_of_exponential, (Exp,)),
    RewriteOperations(logarithm_of_finite, (Log,)),
    RewriteOperations(reciprocal_of_root, (Rsqrt,)),
    RewriteOperations(negative_as_product, (Neg,)),
)


def _supports(operation: Operation) -> Support:
    if isinstance(operation, If):
        return lowering.supports_branches(operation, TARGET)
    for slot, operand in operation.filled() if isinstance(operation, Operator) else ():
        if slot.parameter and not operand.is_constant:
            detail = "is computed at run time, but must be constant or follow from shapes here"
            return Support.no(operation, slot.name, detail, Rule.COMPUTED)
    if _is_empty(operation):
        return YES
    support = lowering.supports(operation)
    if not support:
        return support
    refused = refusal(operation)
    return support if refused is None else to_support(operation, refused)


def _is_empty(operation: Operation) -> bool:
    """Return whether all outputs are known to have no elements, which `RemoveEmpty` replaces."""
    operands = (*(o for o in operation.inputs if o is not None), *operation.outputs)
    return (
        operation.type in lowering.TARGET.operators
        and all(operand.type.element_type in MOVABLE for operand in operands)
        and all(0 in (output.type.static_shape or ()) for output in operation.outputs)
    )


TARGET = replace(lowering.TARGET, name="litert", supports=_supports, passes=_PASSES)
"""The standard operators that LiteRT runs."""
