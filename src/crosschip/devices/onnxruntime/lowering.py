"""Rewrites to forms that ONNX Runtime computes faster, exactly on this processor, or at all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.devices.onnxruntime.precision import saturates
from crosschip.ir import Builder, ElementType, Model, Operand, Operation, constant
from crosschip.ops.definition.spatial import build_planar
from crosschip.ops.standard.activation import HardSigmoid, LeakyRelu, Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv1D, Conv2D
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.integers import (
    Conv1DInteger,
    Conv2DInteger,
    Conv3DInteger,
    ConvInteger,
    MatMulInteger,
)
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.quantization import Dequantize
from crosschip.passes import CancelTransposes
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewrite_operations import RewriteOperations, rebuild

_CHANNELS = (3, 4)
"""How many channels a picture has."""

_FEW = 4096
"""The maximum number of weights for which converting to channel blocks is slower."""


_BLOCK = 8
"""The minimum number of channels in a block."""

_OFFSET = 128
"""The difference between uint8 and int8 numbers of the same bits but the first."""

_FUSED = (HardSigmoid, LeakyRelu, Relu, Sigmoid, Tanh)
"""The activations that ONNX Runtime computes with the convolution before them."""


def in_blocks(b: Builder, op: Conv1D) -> Sequence[Operand] | None:
    """Compute a convolution of signals as one of images of height 1.

    ONNX Runtime keeps images in channel blocks, in the main graph, not in subgraphs. Converting to
    blocks and back takes as long as they save, unless convolutions follow each other. Fewer
    channels than a block has are not converted.
    """
    return build_planar(b, op, Conv2D)


def _faster_in_blocks(model: Model) -> set[Operation]:
    """Return large convolutions of signals with few channels, or that pass blocks to each other."""
    chosen: set[Operation] = set()
    for operation in model.operations:
        if not isinstance(operation, Conv1D) or not _is_large(operation):
            continue
        shape = operation.filter.type.shape
        if shape is not None and isinstance(shape[1], int) and shape[1] < _BLOCK:
            chosen.add(operation)
        source = model.producers.get(operation.input)
        if isinstance(source, _FUSED) and source.input is not None:
            source = model.producers.get(source.input)
        if isinstance(source, Conv1D) and _is_large(source):
            chosen |= {source, operation}
    return chosen


def _is_large(op: Conv1D) -> bool:
    shape = op.filter.type.static_shape
    return shape is None or op.group != 1 or math.prod(shape) > _FEW


def in_rows(b: Builder, op: Gather) -> Sequence[Operand] | None:
    """Gather pixels along the width of a picture as rows of the transposed picture.

    ONNX Runtime copies the 3 or 4 bytes of each pixel by a call of its own, which takes several
    times as long as to transpose the bytes.
    """
    shape, index_shape = op.input.type.shape, op.indices.type.shape
    if (
        op.input.type.element_type is not ElementType.UINT8
        or shape is None
        or len(shape) != 4
        or shape[3] not in _CHANNELS
        or op.axis not in (2, -2)
        or index_shape is None
        or len(index_shape) != 1
    ):
        return None
    rows = b.add(Gather, b.add(Transpose, op.input, (0, 2, 3, 1)), op.indices, 1)
    return (b.add(Transpose, rows, (0, 3, 1, 2)),)


def unsigned_factors(b: Builder, op: MatMulInteger) -> Sequence[Operand] | None:
    """Add 128 to a signed second factor and to its zero point (quirk `products-of-bytes`)."""
    if not _saturates(op.x, op.y):
        return None
    factor, zero_point = _unsigned(b, op.y), _unsigned(b, op.y_zero_point)
    return (rebuild(b, op, y=factor, y_zero_point=zero_point),)


def unsigned_filters(b: Builder, op: ConvInteger) -> Sequence[Operand] | None:
    """Add 128 to signed filters and to their zero point (quirk `products-of-bytes`)."""
    if not _saturates(op.input, op.filter):
        return None
    filters, zero_point = _unsigned(b, op.filter), _unsigned(b, op.filter_zero_point)
    return (rebuild(b, op, filter=filters, filter_zero_point=zero_point),)


def _saturates(unsigned: Operand, signed: Operand) -> bool:
    types = (unsigned.type.element_type, signed.type.element_type)
    return types == (ElementType.UINT8, ElementType.INT8) and saturates()


def _unsigned(b: Builder, operand: Operand | None) -> Operand:
    """Return an int8 operand plus 128, in uint8."""
    if operand is None:
        return b.constant(np.array(_OFFSET, np.uint8))
    if operand.value is not None:
        return b.constant((operand.value.astype(np.int16) + _OFFSET).astype(np.uint8))
    wide = b.add(Cast, operand, ElementType.INT32)
    return b.add(Cast, b.add(Add, wide, np.int32(_OFFSET)), ElementType.UINT8)


_UNSIGNED_FACTORS = RewriteOperations(unsigned_factors, (MatMulInteger,))
_UNSIGNED_FILTERS = RewriteOperations(
    unsigned_filters, (Conv1DInteger, Conv2DInteger, Conv3DInteger)
)
_IN_BLOCKS = RewriteOperations(in_blocks, (Conv1D,), _faster_in_blocks)
_IN_ROWS = RewriteOperations(in_rows, (Gather,))


def lower(model: Model) -> Model:
    """Return a model with its operations rewritten; those of its bodies stay."""
    for rewrite in (_UNSIGNED_FACTORS, _UNSIGNED_FILTERS, _IN_BLOCKS):
        model = rewrite.rewrite(model)
    transposed = _IN_ROWS.rewrite(model)
    return model if transposed is model else CancelTransposes().rewrite(transposed)


def copy_shared_weights(model: Model) -> Model:
    """Return a model whose operations share no int8 weights: each has a copy of its own.

    A dequantized weight that several read is dequantized for each. Avoids quirk `shared-weight`.
    """
    dequantized = {
        operation.outputs[0]: operation
        for operation in model.operations
        if isinstance(operation, Dequantize) and _is_weight(operation.input)
    }
    weights = [operand for operand in model.constants if _is_weight(operand)]
    shared = {each for each in (*weights, *dequantized) if model.uses[each] > 1}
    if not shared:
        return model
    operations: list[Operation] = []
    for operation in model.operations:
        inputs = list(operation.inputs)
        for index, operand in enumerate(operation.inputs):
            if operand in shared and operand in dequantized:
                name = f"{operation.name}.weight_{index}"
                copy = _copy_dequantization(dequantized[operand], name)
                operations.append(copy)
                inputs[index] = copy.outputs[0]
            elif operand is not None and operand in shared:
                inputs[index] = _copy(operand)
        is_changed = not shared.isdisjoint(operation.inputs)
        operations.append(operation.with_inputs(tuple(inputs)) if is_changed else operation)
    return RemoveUnused().rewrite(Model(model.name, model.inputs, operations, model.outputs))


def _is_weight(operand: Operand) -> bool:
    """Return whether an operand is a constant of quantized int8."""
    is_quantized = operand.type.quantization is not None
    return is_quantized and operand.is_constant and operand.type.element_type is ElementType.INT8


def _copy_dequantization(operation: Dequantize, name: str) -> Dequantize:
    """Return another dequantization of a copy of a weight."""
    (output,) = operation.outputs
    copies = (Operand(output.name, output.type),)
    return operation.with_inputs((_copy(operation.input),), copies).with_name(name)


def _copy(operand: Operand) -> Operand:
    """Return another constant with the same elements in memory."""
    assert operand.value is not None, "weights are constants"
    return constant(operand.value, operand.name, operand.type.quantization)
