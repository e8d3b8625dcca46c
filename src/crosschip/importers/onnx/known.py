"""Outputs of operations that are known before the model runs."""

from __future__ import annotations

import math

import numpy as np

from crosschip.ir import Array, Operand, Operation, constant
from crosschip.ir.budget import spend
from crosschip.ops import Operator
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.quantization import Dequantize

_SMALL = 4096
"""Up to so many elements are read and made; what is larger is left to the usual passes."""


def known_outputs(operation: Operation) -> tuple[Operand, ...] | None:
    """The outputs as constants, so that shapes and conditions made of constants are known.

    `None` where they are not known, or large, or the operation refuses its constants; and of what
    is quantized, which a device may compute on as it is.
    """
    if not isinstance(operation, Operator) or isinstance(operation, Dequantize):
        return None
    values = _values(operation)
    if values is None:
        return None
    pairs = zip(operation.outputs, values, strict=True)
    return tuple(constant(value, made.name, made.type.quantization) for made, value in pairs)


def _values(operation: Operator) -> tuple[Array, ...] | None:
    if isinstance(operation, ShapeOf):
        shape = operation.input.type.static_shape
        if shape is None or max(shape, default=0) > np.iinfo(operation.dtype.dtype).max:
            return None
        return (np.array(shape, operation.dtype.dtype),)
    inputs = [operand for operand in operation.inputs if operand is not None]
    if not all(o.content is not None and math.prod(o.content.shape) <= _SMALL for o in inputs):
        return None
    types = [operand.type for operand in operation.outputs]
    counts = [-1 if t.static_shape is None else math.prod(t.static_shape) for t in types]
    if not all(0 <= count <= _SMALL for count in counts):
        return None
    spend(bytes=sum(n * t.element_type.dtype.itemsize for n, t in zip(counts, types, strict=True)))
    try:
        return operation.kernel()([o if o is None else o.value for o in operation.inputs])
    except (IndexError, MemoryError, RuntimeError, ValueError):
        # Whether that matters shows when the operation runs; its device reports it.
        return None
