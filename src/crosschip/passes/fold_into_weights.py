"""Folding of batch normalization and bias addition into the preceding weights."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from crosschip.ir import Array, Model, ModelError, Operand, Operation, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ir.elements import Computed, Elements
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv, ConvTranspose
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class FoldIntoWeights(Pass):
    """Folds operations that scale or shift channels into the preceding weighted operation.

    1. `BATCH_NORMALIZATION` after a convolution, a transposed convolution or `FULLY_CONNECTED`:
       the filter is scaled and the bias adapted.
    2. `ADD` of one number per channel after one of these: the number is added to the bias.
    3. `ADD` of one number per column after `MAT_MUL` of a matrix with a constant matrix: both
       become a `FULLY_CONNECTED`.

    Weights, statistics and addends must be constants. The weighted operation must have no fused
    activation, and its output no other reader. Nothing may be quantized, since rounding to integers
    would change more than the last digit. New weights are computed in float64 and rounded once.
    Weights that are computed from constants should have been folded before.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        with np.errstate(all="ignore"):  # weights may overflow without a warning
            for operation in map(rewriter.resolved, model.operations):
                folded = _fold(operation, rewriter)
                if folded is None:
                    rewriter.keep(operation)
                    continue
                source, merged = folded
                rewriter.withdraw(source)
                rewriter.emit(merged.standing_for(source, operation))
        return rewriter.finish()

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        names = {operation.name for operation in before.operations}
        for operation in after.operations:
            if operation.name not in names:
                raise ModelError(f"{operation.type} {operation.name!r} was not there before")


_MIN_DEFERRED = 2**15
"""The minimum number of weights that are scaled lazily, so that another thread can do it."""

_Weighted = Conv | ConvTranspose | FullyConnected
_Folded = tuple[Operation, Operation]
"""The weighted operation, and the operation that replaces it and the folded one."""


def _fold(operation: Operation, rewriter: Rewriter) -> _Folded | None:
    if _is_quantized(operation):
        return None
    match operation:
        case BatchNormalization():
            return _fold_batch_normalization(operation, rewriter)
        case Add():
            return _fold_addend(operation, rewriter)
    return None


def _fold_batch_normalization(norm: BatchNormalization, rewriter: Rewriter) -> _Folded | None:
    source = _weighted_source(norm.input, rewriter)
    statistics = (norm.scale, norm.bias, norm.mean, norm.variance)
    if source is None or not all(operand.is_constant for operand in statistics):
        return None
    scale, bias, mean, variance = map(_float64, statistics)
    factor = scale / np.sqrt(variance + norm.epsilon)
    old_bias = 0.0 if source.bias is None else _float64(source.bias)
    return _with_folded(source, norm, factor, (old_bias - mean) * factor + bias)


def _fold_addend(add: Add, rewriter: Rewriter) -> _Folded | None:
    for operand, addend in ((add.input0, add.input1), (add.input1, add.input0)):
        if not addend.is_constant or operand.is_constant:
            continue
        source = _weighted_source(operand, rewriter)
        if source is not None:
            channels = _per_channel(_elements(addend), operand, source)
            if channels is None:
                return None
            bias = channels.astype(np.float64)
            if source.bias is not None:
                bias = bias + _float64(source.bias)
            return _with_folded(source, add, None, bias)
        product = rewriter.producer(operand)
        if isinstance(product, MatMul) and rewriter.used_once(operand):
            if _is_quantized(product):
                return None
            return _fully_connected(product, _elements(addend), add)
    return None


def _weighted_source(operand: Operand, rewriter: Rewriter) -> _Weighted | None:
    """Return the weighted producer of an operand if it can be folded into, else `None`."""
    source = rewriter.producer(operand)
    if not isinstance(source, _Weighted) or not rewriter.used_once(operand):
        return None
    if _is_quantized(source):
        return None
    constant_bias = source.bias is None or source.bias.is_constant
    plain = source.fused is Fuse.NONE and constant_bias and _weights(source).is_constant
    return source if plain else None


def _weights(source: _Weighted) -> Operand:
    return source.weight if isinstance(source, FullyConnected) else source.filter


def _with_folded(source: _Weighted, last: Operation, factor: Array | None, bias: Array) -> _Folded:
    """Return the source and a copy with new weights and bias and the last one's outputs."""
    weights = _weights(source)
    dtype = weights.type.element_type.dtype
    inputs: dict[str, Any] = dict(source.named_inputs())
    if factor is not None:
        scaled = _scale_weights(weights, _channel_factor(source, factor))
        name = "weight" if isinstance(source, FullyConnected) else "filter"
        inputs[name] = constant(scaled, weights.name)
    inputs["bias"] = constant(bias.astype(dtype), f"{source.name}.bias")
    inputs.update(_fuse_code(last))
    bound = type(source).bind(source.name, (), inputs)
    return source, source.with_inputs(bound, last.outputs)


def _scale_weights(weights: Operand, factor: Array) -> Array | Elements:
    """Return weights times a factor, computed in float64 and rounded once to their type.

    Args:
        weights: the weights; large ones are scaled lazily, when their elements are first read.
        factor: broadcasts to the weights; one number per output channel along their first axis.
    """
    content = weights.content
    assert content is not None, "callers pass constants"

    def scale() -> Array:
        array: Array = content.copy()
        with np.errstate(all="ignore"):  # set per thread
            np.multiply(array, factor, out=array, dtype=np.float64, casting="unsafe")
        return array

    if prod(content.shape) < _MIN_DEFERRED:
        return scale()
    return Computed(content.dtype, content.shape, scale)


def _channel_factor(source: _Weighted, factor: Array) -> Array:
    """Reshape one factor per output channel to broadcast to the weights."""
    if isinstance(source, FullyConnected):
        return factor.reshape(-1, 1)
    window = (1,) * source.spatial_rank
    if isinstance(source, Conv):
        return factor.reshape(-1, 1, *window)
    in_channels, per_group = source.filter.type.static_shape[:2]  # type: ignore[index]
    group_factor = factor.reshape(source.group, 1, per_group)
    return np.repeat(group_factor, in_channels // source.group, axis=1).reshape(
        in_channels, per_group, *window
    )


def _per_channel(addend: Array, output: Operand, source: _Weighted) -> Array | None:
    """Return the addend as one number per channel of the output, else `None`."""
    shape = output.type.shape
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    if shape is None or not isinstance(channels, int) or addend.ndim > len(shape):
        return None
    full = (1,) * (len(shape) - addend.ndim) + addend.shape
    if any(size != 1 for axis, size in enumerate(full) if axis != 1):
        return None
    return np.broadcast_to(addend.reshape(-1), (channels,)) if full[1] in (1, channels) else None


def _fully_connected(product: MatMul, addend: Array, add: Add) -> _Folded | None:
    x_shape, weight = product.x.type.shape, product.y.value
    if x_shape is None or len(x_shape) != 2 or product.transpose_x:
        return None
    if weight is None or weight.ndim != 2 or product.y.type.element_type not in FLOATS:
        return None
    rows = weight if product.transpose_y else weight.T
    if (
        addend.ndim > 2
        or addend.size not in (1, rows.shape[0])
        or addend.shape[-1:] not in ((), (addend.size,))
    ):
        return None
    bias = np.ascontiguousarray(np.broadcast_to(addend.reshape(-1), rows.shape[:1]))
    arguments = {
        "input": product.x,
        "weight": constant(np.ascontiguousarray(rows), product.y.name),
        "bias": constant(bias, f"{product.name}.bias"),
        **_fuse_code(add),
    }
    bound = FullyConnected.bind(product.name, (), arguments)
    return product, FullyConnected(product.name, bound, add.outputs)


def _is_quantized(operation: Operation) -> bool:
    return any(o and o.type.quantization for o in (*operation.inputs, *operation.outputs))


def _fuse_code(last: Operation) -> dict[str, Operand]:
    return {name: operand for name, operand in last.named_inputs() if name == "fuse_code"}


def _elements(operand: Operand) -> Array:
    elements = operand.value
    assert elements is not None, "callers pass constants"
    return elements


def _float64(operand: Operand) -> Array:
    return _elements(operand).astype(np.float64)
