"""Functions of each element: unary ones, and those of two tensors that are broadcast."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.options import (
    AddOptions,
    DivOptions,
    GeluOptions,
    LeakyReluOptions,
    MulOptions,
    SubOptions,
)
from crosschip.importers.facts import rank_of, static_shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.standard.activation import (
    Elu,
    Gelu,
    HardSwish,
    LeakyRelu,
    PRelu,
    Relu,
    Relu6,
    Sigmoid,
    Tanh,
)
from crosschip.ops.standard.arithmetic import (
    Add,
    Clip,
    Div,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
    Sum,
)
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import BitShift, BitwiseXor, ShiftDirection
from crosschip.ops.standard.unary import (
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
)

_UNARY: dict[str, type[Operator]] = {
    "ABS": Abs,
    "CEIL": Ceil,
    "COS": Cos,
    "ELU": Elu,
    "EXP": Exp,
    "FLOOR": Floor,
    "HARD_SWISH": HardSwish,
    "LOG": Log,
    "LOGISTIC": Sigmoid,
    "NEG": Neg,
    "RELU": Relu,
    "RELU6": Relu6,
    "ROUND": Round,
    "RSQRT": Rsqrt,
    "SIGN": Sign,
    "SIN": Sin,
    "SQRT": Sqrt,
    "SQUARE": Square,
    "TANH": Tanh,
}

_BINARY: dict[str, type[Operator]] = {
    "BITWISE_XOR": BitwiseXor,
    "FLOOR_DIV": FloorDiv,
    "FLOOR_MOD": Mod,
    "MAXIMUM": Max,
    "MINIMUM": Min,
    "POW": Pow,
    "SQUARED_DIFFERENCE": SquaredDifference,
}

_CLIPS = {"RELU_0_TO_1": (0.0, 1.0), "RELU_N1_TO_1": (-1.0, 1.0)}


@imports(*_UNARY)
def unary(node: Node) -> Operand:
    return node.add(_UNARY[node.type], node[0])


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    return node.add(_BINARY[node.type], node[0], node[1])


@imports("PRELU")
def prelu(node: Node) -> Operand:
    """Import a slope for each channel, on the last axis, in the layout of convolutions."""
    input, slope = node[0], node[1]
    rank, sizes = rank_of(input), static_shape_of(slope)
    if rank < 2 or any(size != 1 for size in sizes[:-1]):
        ones = (1,) * (rank - len(sizes))
        return node.add(PRelu, input, node.add(Reshape, slope, (*ones, *sizes)))
    channels = node.add(Reshape, slope, (-1,))
    activated = node.add(PRelu, node.channels_first(input), channels)
    return node.channels_last(node.fit(activated, node.output()))


@imports("ADD")
def add(node: Node) -> Operand:
    total = node.add(Add, node[0], node[1])
    return node.activate(total, node.options(AddOptions).fused_activation_function)


@imports("SUB")
def sub(node: Node) -> Operand:
    difference = node.add(Sub, node[0], node[1])
    return node.activate(difference, node.options(SubOptions).fused_activation_function)


@imports("MUL")
def mul(node: Node) -> Operand:
    product = node.add(Mul, node[0], node[1])
    return node.activate(product, node.options(MulOptions).fused_activation_function)


@imports("DIV")
def div(node: Node) -> Operand:
    quotient = node.add(Div, node[0], node[1])
    return node.activate(quotient, node.options(DivOptions).fused_activation_function)


@imports("ADD_N")
def add_n(node: Node) -> Operand:
    return node.add(Sum, node.all_inputs())


@imports("RIGHT_SHIFT")
def right_shift(node: Node) -> Operand:
    """Import a shift; numbers of bits beyond the type's are clamped to its bits less one."""
    bits = node[0].type.element_type.dtype.itemsize * 8
    count = node.add(Clip, node[1], 0, bits - 1)
    return node.add(BitShift, node[0], count, direction=ShiftDirection.RIGHT)


@imports(*_CLIPS)
def clip(node: Node) -> Operand:
    low, high = _CLIPS[node.type]
    return node.add(Clip, node[0], low, high)


@imports("GELU")
def gelu(node: Node) -> Operand:
    return node.add(Gelu, node[0], approximate=bool(node.options(GeluOptions).approximate))


@imports("LEAKY_RELU")
def leaky_relu(node: Node) -> Operand:
    return node.add(LeakyRelu, node[0], alpha=node.options(LeakyReluOptions).alpha)
