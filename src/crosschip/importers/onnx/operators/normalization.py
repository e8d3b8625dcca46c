"""Normalization by given or computed statistics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.importers.facts import rank_of, shape_of
from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, axis_from_front, imports, only
from crosschip.importers.onnx.tensors import element_type
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.activation import Sigmoid, Swish
from crosschip.ops.standard.arithmetic import Add, Mul, Sub
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import And
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    RMSNormalization,
    SkipLayerNormalization,
    SkipRMSNormalization,
)
from crosschip.ops.standard.reduction import ReduceMean, ReduceSum
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Reciprocal, Sqrt, Square

_TO_SCALE, _TO_ZERO_POINT = 6, 11
"""QEmbedLayerNormalization: distances from an input's index to its scale and zero point."""


@imports("BatchNormalization")
def batch_normalization(node: Node) -> list[Operand]:
    """Import BatchNormalization; training mode uses the batch's statistics.

    Before opset 14, a node with more than one output is in training mode.
    """
    momentum, epsilon = node.real("momentum"), node.real("epsilon")
    only("spatial", node.integer("spatial") if node.opset < 9 else 1, 1)
    operand, scale, bias, mean, variance = (node[index] for index in range(5))
    if node.opset < 14:
        only("number of outputs", sum(map(bool, node.outputs)), 1)
    elif node.flag("training_mode"):
        node.scope.note_training()
        batch_mean, batch_variance = _statistics(node, operand, (0, *range(2, rank_of(operand))))
        statistics = (batch_mean, batch_variance)
        normal = node.add(BatchNormalization, operand, scale, bias, *statistics, epsilon)
        averages = (
            node.add(Add, node.add(Mul, old, momentum), node.add(Mul, new, 1 - momentum))
            for old, new in zip((mean, variance), statistics, strict=True)
        )
        return [normal, *averages]
    return [node.add(BatchNormalization, operand, scale, bias, mean, variance, epsilon)]


@imports("LayerNormalization")
def layer_normalization(node: Node) -> list[Operand]:
    """Import LayerNormalization; outputs 1 and 2 are mean and inverse standard deviation."""
    precision = element_type(node.integer("stash_type"))
    axis, epsilon = node.integer("axis"), node.real("epsilon")
    normal = node.add(LayerNormalization, node[0], node[1], node.optional(2), axis, epsilon)
    if not any(node.outputs[1:]):
        return [normal]
    rank = rank_of(node[0])
    axes = tuple(range(axis_from_front(axis, rank), rank))
    precise = node.add(Cast, node[0], precision)
    mean, variance = _statistics(node, precise, axes, keepdim=True)
    deviation = node.add(Sqrt, node.add(Add, variance, epsilon))
    return [normal, mean, node.add(Reciprocal, deviation)]


@imports("InstanceNormalization")
def instance_normalization(node: Node) -> Operand:
    epsilon = node.real("epsilon")
    return node.add(InstanceNormalization, node[0], node[1], node[2], epsilon)


@imports("GroupNormalization")
def group_normalization(node: Node) -> Operand:
    """Import GroupNormalization; before opset 21, scale and bias are per group."""
    if node.opset < 21:
        raise UnsupportedError("scales of groups are expressed by other operators")
    only("stash_type", node.integer("stash_type"), 1)
    epsilon, groups = node.real("epsilon"), node.integer("num_groups")
    return node.add(GroupNormalization, node[0], node[1], node[2], epsilon, groups)


@imports("RMSNormalization")
def rms_normalization(node: Node) -> Operand:
    only("stash_type", node.integer("stash_type"), 1)
    axis, epsilon = node.integer("axis"), node.real("epsilon")
    return node.add(RMSNormalization, node[0], node[1], axis, epsilon)


@imports("SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization")
def simplified_layer_normalization(node: Node) -> Operand:
    """Import ONNX Runtime's RMS normalization without its second output, which is for training."""
    only("number of outputs", sum(map(bool, node.outputs)), 1)
    only("stash_type", node.integer("stash_type", 1), 1)
    axis, epsilon = node.integer("axis", -1), node.real("epsilon", 1e-5)
    return node.add(RMSNormalization, node[0], node[1], axis, epsilon)


@imports("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")
def skip_normalization(node: Node) -> list[Operand | None]:
    """Import a normalization of a sum.

    Outputs 1 and 2 are statistics for training, which ONNX Runtime does not compute.
    """
    only("number of outputs", sum(map(bool, node.outputs[1:3])), 0)
    is_whole = node.type == "SkipLayerNormalization"
    operator = SkipLayerNormalization if is_whole else SkipRMSNormalization
    count = len(operator.slots) - 1
    operands = [node[index] if index < 3 else node.optional(index) for index in range(count)]
    output, total = node.add_all(operator, *operands, epsilon=node.real("epsilon", 1e-12))
    return [output, None, None, total]


@imports("com.microsoft.GatedRMSNorm")
def gated_rms_normalization(node: Node) -> Operand:
    """Normalize groups as wide as the scale, and multiply by the activated gate."""
    input, scale, gate = node[0], node[1], node[2]
    epsilon, activation = node.real("epsilon", 1e-5), node.text("activation", "silu")
    shape, (group,) = shape_of(input), scale.type.static_shape or (None,)
    width, leading = shape[-1], (0,) * (len(shape) - 1)
    if group is None or (width != group and not isinstance(width, int)):
        raise UnsupportedError("sizes that are computed when the model runs cannot be expressed")
    is_single = width == group
    rows = input if is_single else node.add(Reshape, input, (*leading, -1, group))
    normal = node.add(RMSNormalization, rows, scale, -1, epsilon)
    normal = normal if is_single else node.add(Reshape, normal, (*leading, width))
    if activation not in ("silu", "swish", "sigmoid"):
        raise ModelError(f"activation {activation!r} is not known")
    activated_gate = node.add(Sigmoid if activation == "sigmoid" else Swish, gate)
    return node.add(Mul, normal, activated_gate)


@imports("com.microsoft.EmbedLayerNormalization")
def embed_layer_normalization(node: Node) -> list[Operand | None]:
    """Import EmbedLayerNormalization: normalized sum of embeddings, number of words, the sum.

    The inputs are words, segments, the embeddings of words, positions and segments, scale, bias,
    mask and positions.
    """
    node.ignore("mask_index_type")
    total = add_embeddings(node, node.optional(8))
    epsilon = node.real("epsilon", 1e-12)
    normal = node.add(LayerNormalization, total, node[5], node[6], -1, epsilon)
    return [normal, count_words(node), total]


def add_embeddings(
    node: Node, positions: Operand | None, real: Callable[[Operand, int], Operand] | None = None
) -> Operand:
    """Return the sum of the embeddings of words, positions and optional segments.

    Args:
        node: the operator, whose first inputs are words, segments, and the embeddings of words,
            positions and segments.
        positions: the positions; 0, 1, … by default.
        real: dequantizes rows of the input at an index.
    """
    words, segments = node[0], node.optional(1)
    if positions is None:
        count = node.add(Slice, node.add(ShapeOf, words), (0,), (1,), (2,))
        position_rows = node.add(Slice, node[3], (0,), (0,), count)
    else:
        position_rows = node.add(Gather, node[3], positions, 0)
    parts = {2: node.add(Gather, node[2], words, 0), 3: position_rows}
    if segments is not None:
        parts[4] = node.add(Gather, node[4], segments, 0)
    rows = [part if real is None else real(part, index) for index, part in parts.items()]
    total = node.add(Add, rows[0], rows[1])
    return node.add(Add, total, rows[2]) if len(rows) > 2 else total


def count_words(node: Node) -> Operand | None:
    """Return the number of unmasked words per entry, 0 without a mask; `None` if not an output."""
    if len(node.outputs) < 2 or not node.outputs[1]:
        return None
    words, mask = node[0], node.optional(7)
    counted = node.add(Equal, words if mask is None else mask, 1)
    if mask is None:
        counted = node.add(And, counted, np.array(False))
    ones = node.add(Cast, counted, ElementType.INT32)
    return node.add(ReduceSum, ones, (1,), keepdim=False)


@imports("LRN")
def local_response_normalization(node: Node) -> Operand:
    """Import LRN; ONNX divides `alpha` by the window size."""
    size = node.integer("size")
    alpha, beta = node.real("alpha"), node.real("beta")
    bias = node.real("bias")
    return node.add(LRN, node[0], size=size, bias=bias, alpha=alpha / size, beta=beta)


@imports("LpNormalization")
def lp_normalization(node: Node) -> Operand:
    axis, power = node.integer("axis"), node.integer("p")
    return node.add(LpNormalization, node[0], axis=axis, p=power, epsilon=0.0)


def _statistics(
    node: Node, operand: Operand, axes: tuple[int, ...], *, keepdim: bool = False
) -> tuple[Operand, Operand]:
    """Return mean and population variance."""
    mean = node.add(ReduceMean, operand, axes, keepdim=True)
    squares = node.add(Square, node.add(Sub, operand, mean))
    variance = node.add(ReduceMean, squares, axes, keepdim=keepdim)
    return (mean if keepdim else node.add(ReduceMean, operand, axes, keepdim=False)), variance


@imports(f"{DOMAIN}.QEmbedLayerNormalization")
def quantized_embed_layer_normalization(node: Node) -> list[Operand | None]:
    """Import QEmbedLayerNormalization: normalized sum of embeddings, number of words.

    The inputs are words, segments, the embeddings of words, positions and segments, scale, bias and
    mask; then the scales of inputs 2 to 6, and their zero points.
    """

    def real(operand: Operand, index: int) -> Operand:
        numbers = [node[index + _TO_SCALE], node[index + _TO_ZERO_POINT]]
        return node.on_reals("DequantizeLinear", [operand, *numbers], opset=13)

    epsilon = node.real("epsilon", 1e-12)
    total = add_embeddings(node, None, real)
    scale, bias = (real(node[index], index) for index in (5, 6))
    normal = node.add(LayerNormalization, total, scale, bias, -1, epsilon)
    return [normal, count_words(node)]
