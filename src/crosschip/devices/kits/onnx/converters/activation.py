"""Activation functions."""

from __future__ import annotations

from math import isfinite

from crosschip.devices.kits.onnx.converters.table import (
    FLOAT_TYPES,
    NARROW_FLOATS,
    accepts,
    converts,
    needs_rank,
    ordered,
    same,
)
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.standard import activation
from crosschip.ops.standard.activation import Hardmax

converts(activation.Sigmoid)(same("Sigmoid"))
converts(activation.Tanh)(same("Tanh"))
converts(activation.Relu, types=FLOAT_TYPES | {ElementType.INT8, ElementType.INT32})(same("Relu"))
converts(activation.Softsign, types=NARROW_FLOATS)(same("Softsign"))
converts(activation.Mish, types=NARROW_FLOATS)(same("Mish"))
converts(activation.LeakyRelu, types=NARROW_FLOATS)(same("LeakyRelu", "alpha"))
converts(activation.ThresholdedRelu, types=NARROW_FLOATS)(same("ThresholdedRelu", "alpha"))
converts(activation.Shrink, types=NARROW_FLOATS)(same("Shrink", "bias", "lambd"))
converts(activation.HardSigmoid, types=NARROW_FLOATS)(same("HardSigmoid", "alpha", "beta"))


@converts(activation.Relu6)
def relu6(g: Graph, op: activation.Relu6) -> str:
    return g.add("Clip", g[op.input], g.scalar(0, op.input), g.scalar(6, op.input))


accepts(activation.HardSwish, activation.Swish, types=NARROW_FLOATS)


@converts(activation.Gelu, types=NARROW_FLOATS)
def gelu(g: Graph, op: activation.Gelu) -> str:
    return g.add("Gelu", g[op.input], approximate="tanh" if op.approximate else "none")


def _softplus_limit(op: activation.Softplus) -> Refusal | None:
    if op.beta != 1:
        return Refusal("beta", f"{op.beta} is not 1")
    # From 20 on, log(1 + exp(x)) equals x in float32.
    return None if op.threshold >= 20 else Refusal("threshold", f"{op.threshold} is less than 20")


converts(activation.Softplus, types=NARROW_FLOATS, limit=_softplus_limit)(same("Softplus"))


def _elu_limit(op: activation.Elu | activation.Selu) -> Refusal | None:
    # ONNX does not multiply positive elements by alpha, where infinity would give NaN.
    return None if isfinite(op.alpha) else Refusal("alpha", f"is {op.alpha:g}")


converts(activation.Elu, types=NARROW_FLOATS, limit=_elu_limit)(same("Elu", "alpha"))
converts(activation.Selu, types=NARROW_FLOATS, limit=_elu_limit)(same("Selu", "alpha", "gamma"))


def _celu_limit(op: activation.Celu) -> Refusal | None:
    # ONNX Runtime divides and multiplies positive elements by alpha, too (quirk celu-of-no-alpha).
    bad = op.alpha == 0 or not isfinite(op.alpha)
    return Refusal("alpha", f"is {op.alpha:g}") if bad else None


@converts(activation.Celu, types={ElementType.FLOAT32}, limit=_celu_limit)
def celu(g: Graph, op: activation.Celu) -> str:
    return g.add("Celu", g[op.input], alpha=op.alpha)


_ALONG_AXIS: dict[type[activation.AlongAxis], str] = {
    activation.Softmax: "Softmax",
    activation.LogSoftmax: "LogSoftmax",
}


def _along_axis_limit(op: activation.AlongAxis) -> Refusal | None:
    # Quirk log-softmax-of-nan.
    if isinstance(op, activation.LogSoftmax) and op.input.type.element_type is ElementType.FLOAT64:
        return Refusal("input", "of float64, a NaN gets lost", Rule.ELEMENT_TYPE)
    return None


@converts(*_ALONG_AXIS, limit=_along_axis_limit)
def along_axis(g: Graph, op: activation.AlongAxis) -> str:
    return g.add(_ALONG_AXIS[type(op)], g[op.input], axis=op.axis)


@converts(Hardmax, types=NARROW_FLOATS)
def hardmax(g: Graph, op: Hardmax) -> str:
    hot = g.add("Hardmax", ordered(g, op.input, greatest=True), axis=op.axis)
    return g.cast(hot, op.input.type.element_type.dtype)


def _prelu_limit(op: activation.PRelu) -> Refusal | None:
    return needs_rank("input", op.input) or needs_rank("slope", op.slope)


converts(activation.PRelu, types=NARROW_FLOATS, limit=_prelu_limit)(same("PRelu"))
