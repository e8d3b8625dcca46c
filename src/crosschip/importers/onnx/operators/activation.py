"""Activation functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.ir import Dimension, ModelError, Operand, Shape, UnsupportedError
from crosschip.ir.types import NUMBERS
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.activation import (
    Celu,
    Elu,
    Gelu,
    Hardmax,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    LogSoftmax,
    Mish,
    PRelu,
    Relu,
    Selu,
    Shrink,
    Sigmoid,
    Softmax,
    Softplus,
    Softsign,
    Swish,
    Tanh,
    ThresholdedRelu,
)
from crosschip.ops.standard.arithmetic import Add, Clip, Mul
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Split
from crosschip.ops.standard.layout import Flatten, Reshape, Unsqueeze
from crosschip.ops.standard.logical import Where

_PLAIN: dict[str, type[Operator]] = {
    "HardSwish": HardSwish,
    "Mish": Mish,
    "Relu": Relu,
    "Sigmoid": Sigmoid,
    "Softplus": Softplus,
    "Softsign": Softsign,
    "Tanh": Tanh,
}

_WITH_NUMBERS: dict[str, tuple[type[Operator], tuple[str, ...]]] = {
    "Celu": (Celu, ("alpha",)),
    "Elu": (Elu, ("alpha",)),
    "HardSigmoid": (HardSigmoid, ("alpha", "beta")),
    "LeakyRelu": (LeakyRelu, ("alpha",)),
    "Selu": (Selu, ("alpha", "gamma")),
    "Shrink": (Shrink, ("bias", "lambd")),
    "ThresholdedRelu": (ThresholdedRelu, ("alpha",)),
}
"""The operator and its parameters, which are attributes of the same name."""


@imports(*_PLAIN)
def simple_activation(node: Node) -> Operand:
    return node.add(_PLAIN[node.type], node[0])


@imports(*_WITH_NUMBERS)
def parametric_activation(node: Node) -> Operand:
    operator, names = _WITH_NUMBERS[node.type]
    return node.add(operator, node[0], **{name: node.real(name) for name in names})


def add_activation(node: Node, operand: Operand, kind: str, numbers: Sequence[float]) -> Operand:
    """Add the activation that ONNX Runtime has fused into another operator.

    Args:
        node: the fused operator.
        operand: its result before the activation.
        kind: the activation; empty if there is none.
        numbers: the parameters of the activation; extra ones are ignored.
    """
    if not kind:
        return operand
    if kind == "Clip":
        low, high = numbers[:2]
        return node.add(Clip, operand, low, high)
    if kind in _PLAIN:
        return node.add(_PLAIN[kind], operand)
    if kind not in _WITH_NUMBERS:
        raise UnsupportedError(f"activation {kind!r} cannot be expressed")
    operator, names = _WITH_NUMBERS[kind]
    if len(numbers) < len(names):
        raise ModelError(f"activation {kind!r} needs {len(names)} numbers, not {len(numbers)}")
    return node.add(operator, operand, **dict(zip(names, numbers, strict=False)))


@imports("Gelu")
def gelu(node: Node) -> Operand:
    form = only("approximate", node.text("approximate"), "none", "tanh")
    return node.add(Gelu, node[0], form == "tanh")


@imports("com.microsoft.Gelu", "com.microsoft.BiasGelu", "com.microsoft.FastGelu")
def contributed_gelu(node: Node) -> Operand:
    """Import ONNX Runtime's Gelu, which may add a bias first."""
    input, bias = node[0], node.optional(1)
    shifted = input if bias is None else node.add(Add, input, bias)
    return node.add(Gelu, shifted, node.type == "FastGelu")


@imports("com.microsoft.BiasSplitGelu")
def bias_split_gelu(node: Node) -> Operand:
    """Add the bias, and multiply the first half of the sum by the Gelu of the second."""
    shifted = node.add(Add, node[0], node[1])
    width = (shifted.type.shape or (None,))[-1]
    if not isinstance(width, int) or width % 2:
        raise UnsupportedError(f"a last size of {width} cannot be halved")
    gated, gate = node.add_all(Split, shifted, -1, (width // 2, width // 2))
    return node.add(Mul, gated, node.add(Gelu, gate, False))


@imports("com.microsoft.ScaledSiLU")
def scaled_silu(node: Node) -> Operand:
    """Import ScaledSiLU; the optional scale input replaces `alpha`."""
    alpha, scale = node.real("alpha", 1.0), node.optional(1)
    if scale is None:
        scale = node.constant(np.array(alpha, node[0].type.element_type.dtype))
    return node.add(Swish, node.add(Mul, node[0], scale))


@imports("com.microsoft.QuickGelu")
def quick_gelu(node: Node) -> Operand:
    return _add_swish(node, node.real("alpha", 1.702))


@imports("Swish")
def swish(node: Node) -> Operand:
    return _add_swish(node, node.real("alpha"))


def _add_swish(node: Node, alpha: float) -> Operand:
    if alpha == 1:
        return node.add(Swish, node[0])
    return node.add(Mul, node[0], node.add(Sigmoid, node.add(Mul, node[0], alpha)))


@imports("PRelu")
def prelu(node: Node) -> Operand:
    """Import PRelu; ONNX broadcasts the slope to the input, not only along channels."""
    input, slope = node[0].type.shape, node[1].type.shape
    if input is not None and slope is not None and node[0].type.element_type in NUMBERS:
        wide = node[1]
        if len(slope) == 1 and len(input) > 2:
            wide = node.add(Unsqueeze, wide, (0,))
        return node.add(PRelu, node[0], wide)
    return node.add(Where, node.add(Less, node[0], 0.0), node.add(Mul, node[0], node[1]), node[0])


_ALONG_AXIS: dict[str, type[Operator]] = {
    "Softmax": Softmax,
    "LogSoftmax": LogSoftmax,
    "Hardmax": Hardmax,
}


@imports(*_ALONG_AXIS)
def along_axis(node: Node) -> Operand:
    """Import a function along an axis; before opset 13, all axes from `axis` on are merged."""
    operator, axis = _ALONG_AXIS[node.type], node.integer("axis")
    shape = node[0].type.shape
    if node.opset >= 13 or axis == -1 or (shape is not None and axis == len(shape) - 1):
        return node.add(operator, node[0], axis)
    merged = node.add(operator, node.add(Flatten, node[0], start_axis=axis), -1)
    sizes = None if shape is None else _reshape_sizes(shape, axis % max(1, len(shape)))
    return node.add(Reshape, merged, sizes or node.add(ShapeOf, node[0]))


def _reshape_sizes(shape: Shape, unchanged: int) -> tuple[int, ...] | None:
    """Return static Reshape sizes for `shape` that copy the first sizes; `None` if impossible."""
    sizes = [-1 if isinstance(size, Dimension) else size for size in shape[unchanged:]]
    return (*(0,) * unchanged, *sizes) if sizes.count(-1) <= 1 and 0 not in sizes else None
