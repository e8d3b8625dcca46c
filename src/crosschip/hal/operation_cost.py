"""Arithmetic cost of operations."""

from __future__ import annotations

from math import prod

from crosschip.ir import Operation
from crosschip.ops.standard.convolution import Conv, ConvTranspose
from crosschip.ops.standard.integers import ConvInteger, MatMulInteger
from crosschip.ops.standard.matrix import FullyConnected, MatMul, MatMulNBits
from crosschip.ops.standard.recurrent import Recurrent


def multiply_adds(operation: Operation) -> int:
    """Return the number of multiply-adds of a convolution, matrix product or recurrent network.

    It is 0 for other operations. Dynamic dimensions do not count as factors.
    """
    elements = prod(operation.outputs[0].type.static_shape or ())
    match operation:
        case Conv() | ConvInteger():
            return elements * prod((operation.filter.type.static_shape or ())[1:])
        case ConvTranspose():
            read = prod(operation.input.type.static_shape or ())
            return read * prod((operation.filter.type.static_shape or ())[1:])
        case FullyConnected():
            return elements * (operation.weight.type.static_shape or (0,))[-1]
        case MatMul():
            shape = operation.x.type.static_shape or (0,)
            return elements * shape[-2 if operation.transpose_x and len(shape) > 1 else -1]
        case MatMulInteger():
            return elements * (operation.x.type.static_shape or (0,))[-1]
        case MatMulNBits():
            return elements * operation.size
        case Recurrent():
            steps_of_batch = prod((operation.input.type.static_shape or ())[:2])
            weights = (operation.weight, operation.recurrence_weight)
            return steps_of_batch * sum(prod(o.type.static_shape or ()) for o in weights)
    return 0
