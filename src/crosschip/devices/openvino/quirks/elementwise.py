"""Quirks of elementwise functions, arithmetic and comparisons."""

from __future__ import annotations

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.quirks import Differs
from crosschip.devices.openvino import instruction_sets
from crosschip.devices.openvino.converters import activation, arithmetic, conversion, logical, table
from crosschip.devices.openvino.lowering.arithmetic import (
    product_of_zero,
    remainder_of_infinite_divisors,
    zero_for_zero_divisors,
)
from crosschip.devices.openvino.lowering.comparison import swap_operands
from crosschip.devices.openvino.lowering.conversion import unlike_zero
from crosschip.devices.openvino.lowering.elementwise import (
    absolute_of_negative,
    softplus_as_series,
    zero_of_prelu,
)
from crosschip.devices.openvino.lowering.nan import nan_of_extreme, nan_of_function
from crosschip.devices.openvino.quirks.registry import quirk
from crosschip.hal import Converters
from crosschip.ir import ElementType
from crosschip.ops.standard import activation as activations
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Greater, GreaterEqual, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.unary import Abs, Exp, Neg

NAN, INF = np.nan, np.inf
_PIXEL = np.ones((1, 1, 1, 1), np.float32)
_LARGE = np.full(2, np.finfo(np.float32).min, np.float32)


def number(value: float) -> Node:
    """Create a float32 scalar."""
    return ops.constant(np.array(value, np.float32))


@quirk(
    activations.Relu,
    when="its input is NaN",
    what="returns 0",
    avoided_by=activation.relu,
    inputs=[[NAN, 1]],
    right=[NAN, 1],
    wrong=[0, 1],
    model=lambda b, x: b.add(activations.Relu, x),
)
def relu_of_nan(x: Node) -> Node:
    return ops.relu(x)


@quirk(
    Clip,
    activations.Relu6,
    when="its input is NaN",
    what="returns a bound",
    avoided_by=[activation.bounded, table.keep_nan],
    inputs=[[NAN, 7]],
    right=[NAN, 6],
    wrong=[0, 6],
    model=lambda b, x: b.add(activations.Relu6, x),
)
def clamp_of_nan(x: Node) -> Node:
    return ops.clamp(x, 0, 6)


@quirk(
    Max,
    when="its first input is NaN",
    what="returns the other one",
    avoided_by=nan_of_extreme,
    inputs=[[NAN, 3], [1, 2]],
    right=[NAN, 3],
    wrong=[1, 3],
    model=lambda b, x, y: b.add(Max, x, y),
)
def maximum_of_nan(x: Node, y: Node) -> Node:
    return ops.maximum(x, y)


@quirk(
    Min,
    when="its first input is NaN",
    what="returns the other one",
    avoided_by=nan_of_extreme,
    inputs=[[NAN, 3], [1, 2]],
    right=[NAN, 2],
    wrong=[1, 2],
    model=lambda b, x, y: b.add(Min, x, y),
)
def minimum_of_nan(x: Node, y: Node) -> Node:
    return ops.minimum(x, y)


@quirk(
    Max,
    when="it is computed while compiling, and its second input is NaN",
    what="returns the first one",
    avoided_by=[nan_of_extreme, activation.relu],
    inputs=[[1, 1]],
    right=[NAN, 4],
    wrong=[2, 4],
    model=lambda b, x: b.add(
        Mul, x, b.add(Max, np.array([2, 3], np.float32), np.array([NAN, 4], np.float32))
    ),
)
def folded_maximum_of_nan(x: Node) -> Node:
    numbers = (ops.constant(np.array(n, np.float32)) for n in ([2, 3], [NAN, 4]))
    return ops.multiply(x, ops.maximum(*numbers))


@quirk(
    Exp,
    when="its input is NaN",
    what="returns a number",
    avoided_by=nan_of_function,
    inputs=[[NAN, 0]],
    right=[NAN, 1],
    wrong=Differs(),
    model=lambda b, x: b.add(Exp, x),
)
def exp_of_nan(x: Node) -> Node:
    return ops.exp(x)


@quirk(
    activations.HardSigmoid,
    when="its input is NaN",
    what="returns a bound",
    avoided_by=nan_of_function,
    inputs=[[NAN, 0]],
    right=[NAN, 0.5],
    wrong=[1, 0.5],
    model=lambda b, x: b.add(activations.HardSigmoid, x, 0.2, 0.5),
)
def hard_sigmoid_of_nan(x: Node) -> Node:
    return ops.hard_sigmoid(x, number(0.2), number(0.5))


@quirk(
    activations.LeakyRelu,
    when="its slope is 0, and its input minus infinity and made by a convolution",
    what="returns 0",
    avoided_by=activation.leaky_relu,
    inputs=[[[[[-INF, 1]]]]],
    right=[[[[NAN, 1]]]],
    wrong=[[[[0, 1]]]],
    model=lambda b, x: b.add(activations.LeakyRelu, b.add(Conv2D, x, _PIXEL), 0.0),
)
def leaky_relu_of_infinity(x: Node) -> Node:
    return ops.prelu(_pixels(x), number(0))


def _pixels(x: Node) -> Node:
    return ops.convolution(x, ops.constant(_PIXEL), [1, 1], [0, 0], [0, 0], [1, 1])


@quirk(
    activations.Gelu,
    when="its input is infinity",
    what="returns NaN",
    avoided_by=activation.gelu,
    inputs=[[INF, 0]],
    right=[INF, 0],
    wrong=[NAN, 0],
    model=lambda b, x: b.add(activations.Gelu, x),
)
def gelu_of_infinity(x: Node) -> Node:
    return ops.gelu(x, "erf")


@quirk(
    activations.Softplus,
    when="its input is far below 0",
    what="is up to 2e-6 off, and gives negative numbers",
    avoided_by=softplus_as_series,
    inputs=[[-20, -13]],
    right=[np.log1p(np.exp(-20)), np.log1p(np.exp(-13))],
    wrong=Differs(),
    tolerance=1e-3,
    model=lambda b, x: b.add(activations.Softplus, x),
)
def softplus_of_small_powers(x: Node) -> Node:
    return ops.softplus(x)


@quirk(
    activations.PRelu,
    when="its input is 0, the slope infinite and computed, and there is no AVX-512",
    what="returns NaN",
    avoided_by=zero_of_prelu,
    inputs=[[0, -1], [INF]],
    right=[0, -INF],
    wrong=[NAN, -INF],
    environment={"ONEDNN_MAX_CPU_ISA": "AVX2"},
    model=lambda b, x, slope: b.add(activations.PRelu, x, slope),
)
def prelu_of_zero(x: Node, slope: Node) -> Node:
    return ops.prelu(x, slope)


@quirk(
    activations.Softsign,
    when="oneDNN is limited to SSE4.1 on a processor that has more",
    what="returns 1 for any number; other operators fail to compile or err",
    avoided_by=instruction_sets.refusal,
    inputs=[[-1, 3]],
    right=[-0.5, 0.75],
    wrong=[1, 1],
    environment={"ONEDNN_MAX_CPU_ISA": "SSE41"},
    processor="avx2",
    model=lambda b, x: b.add(activations.Softsign, x),
)
def limited_to_sse41(x: Node) -> Node:
    return ops.softsign(x)


@quirk(
    Div,
    when="the divisor is constant",
    what="multiplies by its rounded inverse",
    avoided_by=table.exact_quotient,
    inputs=[[5.0, 9.0, 15.0, 21.0]],
    right=np.array([5, 9, 15, 21], np.float32) / np.float32(49),
    wrong=Differs(),
    tolerance=1e-9,
)
def quotient_by_constant(x: Node) -> Node:
    return ops.divide(x, number(49))


@quirk(
    Div,
    when="integers are divided while compiling",
    what="rounds the quotient down",
    avoided_by=arithmetic.div,
    inputs=[np.array([1], np.int32)],
    right=[-3],
    wrong=[-4],
    model=lambda b, x: b.add(Mul, x, b.add(Div, np.array([-7], np.int32), np.array([2], np.int32))),
)
def folded_quotient_of_integers(x: Node) -> Node:
    numbers = (ops.constant(np.array([n], np.int32)) for n in (-7, 2))
    return ops.multiply(x, ops.divide(*numbers))


@quirk(
    Div,
    Mod,
    when="integers are divided by 0",
    what="returns an arbitrary number or dies",
    avoided_by=zero_for_zero_divisors,
    inputs=[np.array([7, 9], np.int32), np.array([0, 3], np.int32)],
    right=[0, 3],
    wrong=Differs(),
    dies=True,
    model=lambda b, x, y: b.add(Div, x, y),
)
def integers_by_zero(x: Node, y: Node) -> Node:
    return ops.divide(x, y)


@quirk(
    Mod,
    when="the divisor is infinite",
    what="returns NaN",
    avoided_by=remainder_of_infinite_divisors,
    inputs=[[5, 5], [INF, 3]],
    right=[5, 2],
    wrong=[NAN, 2],
    model=lambda b, x, y: b.add(Mod, x, y),
)
def remainder_by_infinity(x: Node, y: Node) -> Node:
    return ops.floor_mod(x, y)


@quirk(
    Mul,
    when="a product by a large constant is added to, as masks of transformers are",
    what="reorders the terms, so that the addend is lost to rounding",
    avoided_by=product_of_zero,
    inputs=[[1, 0]],
    right=[0.7, -3.4028234e38],
    wrong=[0, -3.4028234e38],
    model=lambda b, x: b.add(
        *(Add, b.add(Mul, b.add(Sub, np.ones(2, np.float32), x), _LARGE)),
        np.full(2, 0.7, np.float32),
    ),
)
def product_beside_sum(x: Node) -> Node:
    masked = ops.multiply(ops.subtract(number(1), x), ops.constant(_LARGE))
    return ops.add(masked, ops.constant(np.full(2, 0.7, np.float32)))


@quirk(
    Clip,
    when="a bound of integers is one that float32 does not hold",
    what="rounds it to float32",
    avoided_by=[table.is_exact, arithmetic.clip],
    inputs=[np.array([0, 1], np.int32)],
    right=[2**24 + 1] * 2,
    wrong=[2**24] * 2,
    model=lambda b, x: b.add(Clip, x, 2**24 + 1, 2**25),
)
def bounds_of_large_integers(x: Node) -> Node:
    return ops.clamp(x, 2**24 + 1, 2**25)


@quirk(
    Max,
    Min,
    when="constant bounds of integers are ones that float32 does not hold",
    what="fuses both, and rounds them to float32",
    avoided_by=table.is_exact,
    inputs=[np.array([0, 1], np.int32)],
    right=[2**24 + 1] * 2,
    wrong=[2**24] * 2,
    model=lambda b, x: b.add(
        *(Min, b.add(Max, x, np.array([2**24 + 1], np.int32)), np.array([2**25], np.int32))
    ),
)
def extremes_of_large_integers(x: Node) -> Node:
    low, high = (ops.constant(np.array([n], np.int32)) for n in (2**24 + 1, 2**25))
    return ops.minimum(ops.maximum(x, low), high)


@quirk(
    Div,
    when="integers of more than 24 bits are divided",
    what="computes in float32",
    avoided_by=[arithmetic.div, arithmetic.mod],
    inputs=[np.array([2**24 + 1], np.int32), np.array([1], np.int32)],
    right=[2**24 + 1],
    wrong=[2**24],
    model=lambda b, x, y: b.add(Div, x, y),
)
def quotient_of_large_integers(x: Node, y: Node) -> Node:
    return ops.divide(x, y)


@quirk(
    Equal,
    when="integers of more than 24 bits are compared",
    what="compares them as float32",
    avoided_by=Converters.supports,
    inputs=[np.array([2**24 + 1], np.int32), np.array([2**24], np.int32)],
    right=[False],
    wrong=[True],
    model=lambda b, x, y: b.add(Equal, x, y),
)
def large_integers_compared(x: Node, y: Node) -> Node:
    return ops.equal(x, y)


@quirk(
    Where,
    when="a comparison of integers chooses among integers of more than 24 bits",
    what="fuses both, and rounds them to float32",
    avoided_by=logical.where,
    inputs=[np.array([1, -1], np.int32), np.array([2**24 + 1, 5], np.int32)],
    right=[2**24 + 1, 0],
    wrong=[2**24, 0],
    model=lambda b, x, y: b.add(
        *(Where, b.add(Less, x, np.array(0, np.int32)), np.array(0, np.int32), y)
    ),
)
def chosen_large_integers(x: Node, y: Node) -> Node:
    zero = ops.constant(np.array(0, np.int32))
    return ops.select(ops.less(x, zero), zero, y)


@quirk(
    Greater,
    when="an input is NaN",
    what="returns true",
    avoided_by=swap_operands,
    inputs=[[NAN, 1], [1, NAN]],
    right=[False, False],
    wrong=[True, True],
    model=lambda b, x, y: b.add(Greater, x, y),
)
def greater_than_nan(x: Node, y: Node) -> Node:
    return ops.greater(x, y)


@quirk(
    GreaterEqual,
    when="an input is NaN",
    what="returns true",
    avoided_by=swap_operands,
    inputs=[[NAN, 1], [1, NAN]],
    right=[False, False],
    wrong=[True, True],
    model=lambda b, x, y: b.add(GreaterEqual, x, y),
)
def greater_or_equal_to_nan(x: Node, y: Node) -> Node:
    return ops.greater_equal(x, y)


@quirk(
    Cast,
    when="a NaN becomes a boolean",
    what="returns false",
    avoided_by=unlike_zero,
    inputs=[[NAN, 0]],
    right=[True, False],
    wrong=[False, False],
    model=lambda b, x: b.add(Cast, x, ElementType.BOOL),
)
def boolean_of_nan(x: Node) -> Node:
    return ops.convert(x, "boolean")


@quirk(
    Cast,
    when="an integer of uint32 from 2 ** 31 on becomes a boolean",
    what="returns false",
    avoided_by=conversion.cast,
    inputs=[np.array([2**31, 1], np.uint32)],
    right=[True, True],
    wrong=[False, True],
    model=lambda b, x: b.add(Cast, x, ElementType.BOOL),
)
def boolean_of_uint32(x: Node) -> Node:
    return ops.convert(x, "boolean")


@quirk(
    Abs,
    when="its input is a concatenation with other readers",
    what="overwrites the concatenation",
    avoided_by=absolute_of_negative,
    inputs=[[-1], [-2]],
    right=([1, 2], [-1, -2]),
    wrong=([1, 2], [1, 2]),
    model=lambda b, x, y: (
        b.add(Abs, joined := b.add(Concat, (x, y), 0)),
        b.add(Neg, b.add(Neg, joined)),
    ),
)
def absolute_of_joined(x: Node, y: Node) -> tuple[Node, Node]:
    joined = ops.concat([x, y], 0)
    return ops.abs(joined), ops.negative(ops.negative(joined))


@quirk(
    Add,
    when="integers of 8 bits are added",
    what="saturates them",
    avoided_by=table.check_uint32,
    inputs=[np.array([127], np.int8), np.array([1], np.int8)],
    right=[-128],
    wrong=[127],
)
def sum_of_bytes(x: Node, y: Node) -> Node:
    return ops.add(x, y)
