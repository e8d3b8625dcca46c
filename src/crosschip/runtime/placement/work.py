"""The arithmetic that operations take."""

from __future__ import annotations

from math import prod

from crosschip.ir import Operation
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.matrix import FullyConnected, MatMul


def multiply_adds(operation: Operation) -> int:
    """The multiplications, each with an addition, of a convolution or matrix product; else 0.

    Where sizes are open, too: what they are multiplied with is not counted.
    """
    made = prod(operation.outputs[0].type.static_shape or ())
    match operation:
        case Conv2D():
            return made * prod((operation.filter.type.static_shape or ())[1:])
        case Conv2DTranspose():
            read = prod(operation.input.type.static_shape or ())
            return read * prod((operation.filter.type.static_shape or ())[1:])
        case FullyConnected():
            return made * (operation.weight.type.static_shape or (0,))[-1]
        case MatMul():
            shape = operation.x.type.static_shape or (0,)
            return made * shape[-2 if operation.transpose_x else -1]
    return 0
