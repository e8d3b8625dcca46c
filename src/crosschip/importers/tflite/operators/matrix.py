"""Layers and matrix products."""

from __future__ import annotations

import numpy as np

from crosschip.flatbuffer.schemas.tflite import BlockwiseQuantization
from crosschip.flatbuffer.schemas.tflite.enumerations import FullyConnectedOptionsWeightsFormat
from crosschip.flatbuffer.schemas.tflite.options import BatchMatMulOptions, FullyConnectedOptions
from crosschip.importers.facts import rank_of, shape_of, size_of, static_shape_of
from crosschip.importers.tflite.bias import accumulated_bias
from crosschip.importers.tflite.custom_options import CustomOptions
from crosschip.importers.tflite.hybrid import is_hybrid, round_activations
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.quantization import DequantizeBlocks
from crosschip.ops.standard.slicing import Slice


@imports("FULLY_CONNECTED")
def fully_connected(node: Node) -> Operand:
    """Import a layer with weights [units, size]; the input is flattened to rows of that size."""
    options = node.options(FullyConnectedOptions)
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise UnsupportedError("shuffled weights; convert the model again without them")
    input, weight = node[0], node[1]
    size = size_of(weight, 1)
    rows = (
        input
        if rank_of(input) == 2 and shape_of(input)[1] == size
        else node.add(Reshape, input, (-1, size))
    )
    blocks = node.subgraph.blocks(node.input_indices[1])
    if blocks is not None:
        rows = round_activations(node, rows, (1,), asymmetric=True)
        weight = _dequantized_blocks(node, weight, blocks)
    elif is_hybrid(rows, weight):
        rows = round_activations(node, rows, (1,), bool(options.asymmetric_quantize_inputs))
    output = node.add(
        FullyConnected,
        rows,
        weight,
        accumulated_bias(node, node.optional(2), rows, weight),
        fuse_code=node.fuse_code(options.fused_activation_function),
    )
    output = node.fit(output, node.output())
    if not options.keep_num_dims or rank_of(input) == 2:
        return output
    return node.add(Reshape, output, with_last_size(node, input, size_of(weight, 0)))


def _dequantized_blocks(node: Node, weight: Operand, blocks: BlockwiseQuantization) -> Operand:
    """Return weights of which each block along the last axis has a scale."""
    scale = node.subgraph.array(blocks.scales).astype(np.float32)
    shape = size_of(weight, 0), -(-size_of(weight, 1) // max(blocks.block_size, 1))
    return node.add(
        DequantizeBlocks,
        node.integers(weight),
        node.constant(scale.reshape(shape)),
        axis=1,
        block_size=blocks.block_size,
    )


def with_last_size(node: Node, input: Operand, size: int) -> Operand | tuple[int, ...]:
    """Return an input's shape with another last size."""
    shape = shape_of(input)[:-1]
    if sum(not isinstance(each, int) for each in shape) <= 1:
        return (*(each if isinstance(each, int) else -1 for each in shape), size)
    sizes = node.add(ShapeOf, input)
    before = node.add(Slice, sizes, (0,), (0,), (len(shape),))
    return node.add(Concat, parts=[before, node.constant(np.array([size]))], axis=0)


@imports("BATCH_MATMUL")
def batch_matmul(node: Node) -> Operand:
    """Import a product of the last two axes; `adj_x` and `adj_y` swap these."""
    options = node.options(BatchMatMulOptions)
    x, y = node[0], node[1]
    if is_hybrid(x, y):
        along = (rank_of(x) - 2,) if options.adj_x else (rank_of(x) - 1,)
        x = round_activations(node, x, along, bool(options.asymmetric_quantize_inputs))
    if x.type.element_type is ElementType.INT8 and node.output().element_type is ElementType.INT32:
        raise UnsupportedError("a product of 8-bit integers in 32 bits")
    return node.add(MatMul, x, y, transpose_x=bool(options.adj_x), transpose_y=bool(options.adj_y))


@imports("custom.aeq.hadamard_rotation")
def hadamard_rotation(node: Node) -> Operand:
    """Import the product of parts of the last axis with a Hadamard matrix of unit columns."""
    size = CustomOptions(node.custom_options).integer("hadamard_size")
    if size < 1 or size & (size - 1):
        raise ModelError(f"a Hadamard matrix of size {size}, which is no power of two")
    spend(bytes=4 * size**2)
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    rows = node.add(Reshape, node[0], (-1, size))
    product = node.add(MatMul, rows, matrix / np.float32(np.sqrt(size)))
    return node.add(Reshape, product, static_shape_of(node[0]))
