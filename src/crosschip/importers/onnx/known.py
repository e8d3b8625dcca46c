"""Constants in place of operations that compute shapes and conditions from what is known."""

from __future__ import annotations

import math

from crosschip.ir import Operand, Operation, constant
from crosschip.ops.folding import fold_operation
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.quantization import Dequantize

_SMALL = 4096
"""Up to so many elements are read and made; what is larger is left to the usual passes."""


def known_outputs(operation: Operation) -> tuple[Operand, ...] | None:
    """The outputs as constants, so that what follows sees shapes and conditions as they are.

    `None` where they are not known, or large, or the operation refuses its constants; and of what
    is quantized, which a device may compute on as it is.
    """
    if isinstance(operation, Dequantize):
        return None
    if not isinstance(operation, ShapeOf):
        for operand in operation.inputs:
            content = None if operand is None else operand.content
            if operand is not None and (content is None or math.prod(content.shape) > _SMALL):
                return None
    values = fold_operation(operation, _SMALL)
    if values is None:
        return None
    pairs = zip(operation.outputs, values, strict=True)
    return tuple(constant(value, output.name, output.type.quantization) for output, value in pairs)
