"""Arithmetic and activations."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tflite.converters.table import (
    ACTIVATION,
    ANY_BYTES,
    ARITHMETIC,
    SINGLE,
    UNSIGNED,
    WORDS,
    binary_forms,
    converts,
    fixed_output,
    rank_of,
    reshaped,
    same,
    same_quantization,
    shape_of,
    unary_forms,
    with_shape,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal
from crosschip.ir import ElementType, Operand
from crosschip.mapping.channels_last import transpose
from crosschip.ops.standard.activation import (
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    LogSoftmax,
    PRelu,
    Relu,
    Relu6,
    Sigmoid,
    Softmax,
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
)

_DIVIDED = SINGLE | {ElementType.INT32}

converts(Add, types=ARITHMETIC, quantized=binary_forms(ANY_BYTES, WORDS))(same("ADD"))
converts(Sub, types=ARITHMETIC, quantized=binary_forms(ANY_BYTES, WORDS))(same("SUB"))
converts(Mul, types=ARITHMETIC, quantized=binary_forms(ANY_BYTES, WORDS))(same("MUL"))
converts(Max, types=ARITHMETIC, limit=same_quantization, quantized=binary_forms(ANY_BYTES, WORDS))(
    same("MAXIMUM")
)
converts(Min, types=ARITHMETIC, limit=same_quantization, quantized=binary_forms(ANY_BYTES, WORDS))(
    same("MINIMUM")
)
converts(
    SquaredDifference,
    types=SINGLE | {ElementType.INT32},
    quantized=binary_forms(ACTIVATION),
)(same("SQUARED_DIFFERENCE"))


def _divisor_limit(op: Div | FloorDiv | Mod) -> Refusal | None:
    if isinstance(op, Mod) and op.fmod:
        return Refusal("fmod", "the remainder has the sign of the divisor")
    if op.input0.type.element_type in SINGLE:
        return None
    divisor = op.input1.value
    if divisor is None or np.isin(divisor, (0, -1)).any():
        return Refusal("input1", "of integers must be constant, and neither 0 nor -1")
    return None


converts(Div, types=_DIVIDED, limit=_divisor_limit)(same("DIV"))
converts(Pow)(same("POW"))
converts(FloorDiv, types=_DIVIDED, limit=_divisor_limit)(same("FLOOR_DIV"))
converts(Mod, types=ARITHMETIC, limit=_divisor_limit)(same("FLOOR_MOD"))

converts(Relu, quantized=unary_forms(ANY_BYTES, WORDS))(same("RELU"))
converts(Relu6, quantized=unary_forms(ANY_BYTES, WORDS))(same("RELU6"))
_SHARES = fixed_output(2**-8, -128)
"""The limit on outputs from 0 to 1."""

converts(Sigmoid, limit=_SHARES, quantized=unary_forms(ANY_BYTES, WORDS))(same("LOGISTIC"))


def _alpha_limit(op: Elu) -> Refusal | None:
    return None if op.alpha == 1 else Refusal("alpha", f"{op.alpha:g}, must be 1")


converts(Elu, limit=_alpha_limit, quantized=unary_forms(ACTIVATION))(same("ELU"))


@converts(Gelu, quantized=unary_forms(ANY_BYTES))
def gelu(g: Graph, op: Gelu) -> Operand:
    return g.native("GELU", op.input, type=op.outputs[0].type, approximate=op.approximate)


@converts(LeakyRelu, quantized=unary_forms(ANY_BYTES, WORDS))
def leaky_relu(g: Graph, op: LeakyRelu) -> Operand:
    return g.native("LEAKY_RELU", op.input, type=op.outputs[0].type, alpha=op.alpha)


def _hard_swish_limit(op: HardSwish) -> Refusal | None:
    usual = np.float32(op.alpha) == np.float32(1 / 6) and op.beta == 0.5
    return None if usual else Refusal("alpha", f"{op.alpha:g}, must be 1 / 6, and beta 0.5")


@converts(HardSwish, limit=_hard_swish_limit, quantized=unary_forms(ANY_BYTES))
def hard_swish(g: Graph, op: HardSwish) -> Operand:
    return g.native("HARD_SWISH", op.input, type=op.outputs[0].type)


@converts(HardSigmoid)
def hard_sigmoid(g: Graph, op: HardSigmoid) -> Operand:
    """Add `RELU6(6 * alpha * input + 6 * beta) / 6`: the activation is fused with the sum."""
    factor = np.float32(6 * op.alpha)
    scaled = op.input if factor == 1 else g.add(Mul, op.input, factor)
    steps = g.add(Relu6, g.add(Add, scaled, np.float32(6 * op.beta)))
    return g.add(Mul, steps, np.float32(1 / 6))


@converts(
    PRelu,
    quantized=[{"input": each, "slope": each, "output": each} for each in (ACTIVATION, UNSIGNED)],
)
def prelu(g: Graph, op: PRelu) -> Operand:
    slope, rank = op.slope, rank_of(op.input)
    if rank_of(slope) == 1 and rank > 2:
        # A list runs along axis 1; TensorFlow Lite's broadcasting begins with the last axis.
        slope = reshaped(g, slope, (-1, *(1,) * (rank - 2)))
    return g.native("PRELU", op.input, slope, type=op.outputs[0].type)


def softmax(g: Graph, op: Softmax | LogSoftmax) -> Operand:
    rank = rank_of(op.input)
    axis = op.axis % rank
    perm = [*(a for a in range(rank) if a != axis), axis]
    rows = transpose(g, op.input, perm)
    code, options = ("SOFTMAX", {"beta": 1.0}) if isinstance(op, Softmax) else ("LOG_SOFTMAX", {})
    output = g.native(code, rows, type=with_shape(op.outputs[0].type, shape_of(rows)), **options)
    return transpose(g, output, [perm.index(a) for a in range(rank)])


converts(Softmax, limit=_SHARES, quantized=unary_forms(ANY_BYTES, WORDS))(softmax)
converts(LogSoftmax, limit=fixed_output(2**-4, 127), quantized=unary_forms(ANY_BYTES))(softmax)


_CLIPS = {
    (-1.0, 1.0): "RELU_N1_TO_1",
    (0.0, 1.0): "RELU_0_TO_1",
    (0.0, 6.0): "RELU6",
    (0.0, np.inf): "RELU",
}


def _clip_limit(op: Clip) -> Refusal | None:
    code = _CLIPS.get((op.min, op.max), "")
    if op.input.type.element_type is ElementType.INT16 and code not in ("RELU", "RELU6"):
        return Refusal("min", f"{op.min:g} to {op.max:g} of int16")
    return None if code else Refusal("min", f"{op.min:g} to {op.max:g}")


@converts(Clip, limit=_clip_limit, quantized=unary_forms(ANY_BYTES, WORDS))
def clip(g: Graph, op: Clip) -> Operand:
    return g.native(_CLIPS[op.min, op.max], op.input, type=op.outputs[0].type)
