"""Matrix products, layers, Einstein summation and Fourier transforms."""

from __future__ import annotations

import numpy as np

from crosschip.importers.einsum import contraction
from crosschip.importers.facts import rank_of, size_of, value_of
from crosschip.importers.onnx.decompositions.fourier import fourier_transform
from crosschip.importers.onnx.node import Node, axis_from_front, imports, only
from crosschip.importers.onnx.operators.activation import add_activation
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.quantized import value_type
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.creation import Range
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul, MatMulNBits
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Sqrt, Square

_HALF_OF_FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
_NUMBERS_OF_FOUR_BITS = (
    (*_HALF_OF_FP4, *(-number for number in _HALF_OF_FP4)),
    (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ),
)
"""The values of bitsandbytes' types FP4 and NF4."""


@imports("MatMul")
def matmul(node: Node) -> Operand:
    return node.add(MatMul, node[0], node[1])


@imports("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def fused_matmul(node: Node) -> Operand:
    """Import FusedMatMul, `alpha * A @ B` with optional transpositions.

    TransposeMatMul is its older name. `transA` swaps the last two axes. `transBatchA` means that
    the first axis holds the rows, and moves it after the batch axes.
    """
    sides = [
        _move_rows_after_batch(node, node[index])
        if node.flag(f"transBatch{side}", False)
        else node[index]
        for index, side in enumerate("AB")
    ]
    product = node.add(MatMul, *sides, node.flag("transA", False), node.flag("transB", False))
    alpha = node.real("alpha", 1.0)
    return product if alpha == 1 else node.add(Mul, product, alpha)


def _move_rows_after_batch(node: Node, operand: Operand) -> Operand:
    rank = rank_of(operand)
    return node.add(Transpose, operand, (*range(1, rank - 1), 0, rank - 1))


@imports("com.microsoft.MatMulBnb4")
def matmul_bnb4(node: Node) -> Operand:
    """Import a product with weights of four bits: table entries times a scale per block.

    Two weights are packed per byte, the first in the upper bits. The tables are those of
    bitsandbytes (`csrc/kernels.cu`).
    """
    node.ignore("training_mode")
    size, rows, block = node.integer("K"), node.integer("N"), node.integer("block_size")
    kind, is_transposed = node.integer("quant_type"), node.flag("transB", True)
    if kind not in range(len(_NUMBERS_OF_FOUR_BITS)):
        raise ModelError(f"quant_type {kind} is not 0 or 1")
    if min(size, rows, block) < 1:
        raise ModelError(f"K {size}, N {rows} and block_size {block} must be positive")
    packed, greatest = value_of(node[1], "the weight"), value_of(node[2], "absmax")
    count, blocks = size * rows, -(-size * rows // block)
    if packed.size * 2 < count or greatest.size < blocks:
        raise ModelError(f"{count} weights need more bytes, or more than {greatest.size} blocks")
    codes = np.stack([packed.ravel() >> 4, packed.ravel() & 15], axis=-1).ravel()[:count]
    numbers = np.array(_NUMBERS_OF_FOUR_BITS[kind], np.float32)[codes]
    scales = np.repeat(greatest.ravel().astype(np.float32), block)[:count]
    weights = (
        (numbers * scales)
        .astype(greatest.dtype)
        .reshape((rows, size) if is_transposed else (size, rows))
    )
    return node.add(MatMul, node[0], node.constant(weights), transpose_y=is_transposed)


@imports("com.microsoft.CDist")
def distances(node: Node) -> Operand:
    """Import CDist by expanding the squared distance of rows to products."""
    metric = only("metric", node.text("metric", "sqeuclidean"), "euclidean", "sqeuclidean")
    rows, columns = (
        node.add(ReduceSum, node.add(Square, node[index]), (1,), keepdim=True) for index in range(2)
    )
    product = node.add(Mul, node.add(MatMul, node[0], node[1], transpose_y=True), 2.0)
    total = node.add(Add, rows, node.add(Transpose, columns, (1, 0)))
    squares = node.add(Relu, node.add(Sub, total, product))
    return squares if metric == "sqeuclidean" else node.add(Sqrt, squares)


@imports("com.microsoft.MatMulNBits")
def matmul_n_bits(node: Node) -> Operand:
    """Import MatMulNBits; scales and zero points may be flat."""
    size, rows, block = node.integer("K"), node.integer("N"), node.integer("block_size")
    bits, level = node.integer("bits", 4), node.integer("accuracy_level", 0)
    if node.optional(4) is not None:
        raise UnsupportedError("an order of the weights' groups cannot be expressed")
    if level not in range(5):
        raise ModelError(f"accuracy_level {level} is not from 0 to 4")
    node.ignore("weight_prepacked")
    scale, zero_point = node[2], node.optional(3)
    if zero_point is not None:
        zero_point = node.add(Reshape, zero_point, (rows, -1))
    return node.add(
        MatMulNBits,
        node[0],
        node[1],
        node.add(Reshape, scale, (rows, -1)),
        zero_point,
        node.optional(5),
        size=size,
        block_size=block,
        bits=bits,
        accuracy_level=level,
    )


@imports("Det")
def determinant(node: Node) -> Operand:
    return node.add(Det, node[0])


@imports("Gemm")
def gemm(node: Node) -> Operand:
    """Import `alpha * A @ B + beta * C`, as a fully connected layer if possible."""
    a, b, c = node[0], node[1], node.optional(2)
    alpha, beta = node.real("alpha"), node.real("beta")
    trans_a, trans_b = node.flag("transA"), node.flag("transB")
    if (alpha, trans_a, trans_b) == (1, False, True) and _is_layer(a, b, c, beta):
        return node.add(FullyConnected, a, b, c)
    product = node.add(MatMul, a, b, trans_a, trans_b)
    if alpha != 1:
        product = node.add(Mul, product, alpha)
    if c is None or beta == 0:
        return product
    return node.add(Add, product, c if beta == 1 else node.add(Mul, c, beta))


@imports("com.microsoft.FusedGemm")
def fused_gemm(node: Node) -> Operand:
    kind = node.text("activation", "")
    numbers = [node.real(f"activation_{name}", 0.0) for name in ("alpha", "beta", "gamma")]
    return add_activation(node, node.on_reals("Gemm", node.inputs, opset=13), kind, numbers)


def _is_layer(a: Operand, b: Operand, c: Operand | None, beta: float) -> bool:
    """Return whether `a` and `b` are matrices and `c` has one element per column of the result."""
    rows, units = a.type.shape, b.type.shape
    if value_type(a) not in FLOATS or not rows or not units or len(rows) != 2:
        return False
    return c is None or (beta == 1 and c.type.shape == units[:1])


@imports("Einsum")
def einsum(node: Node) -> Operand:
    return contraction(node, node.text("equation"), node.all_inputs())


@imports("DFT")
def dft(node: Node) -> Operand:
    """Import DFT; the axis is an attribute before opset 20."""
    rank = rank_of(node[0])
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    length = node.optional(1)
    count = None if length is None else _integer(length, "the length")

    def along(axis: int) -> Operand:
        return fourier_transform(node, node[0], axis, count, inverse=inverse, onesided=onesided)

    axis_operand = node.optional(2) if node.opset >= 20 else None
    if axis_operand is not None and axis_operand.value is None:
        if onesided or count is not None:
            raise UnsupportedError("the axis, which changes size, is computed when the model runs")
        axis_index = node.add(
            Mod,
            node.add(Reshape, axis_operand, ()),
            np.array(rank, axis_operand.type.element_type.dtype),
        )
        return _select(node, axis_index, [along(axis) for axis in range(rank - 1)])
    if node.opset < 20:
        axis_number = node.integer("axis")
    else:
        axis_number = -2 if axis_operand is None else _integer(axis_operand, "the axis")
    axis = axis_from_front(axis_number, rank)
    if axis == rank - 1:
        raise ModelError("the last axis holds real and imaginary parts, and is not transformed")
    return along(axis)


def _select(node: Node, index: Operand, choices: list[Operand]) -> Operand:
    """Select one of several tensors of one shape by its index."""
    result = choices[-1]
    for number, choice in enumerate(choices[:-1]):
        number_like = np.array(number, index.type.element_type.dtype)
        result = node.add(Where, node.add(Equal, index, number_like), choice, result)
    return result


@imports("STFT")
def stft(node: Node) -> Operand:
    """Import STFT: transforms of frames of the signal [N, length, 1 or 2], `step` apart."""
    onesided = node.flag("onesided")
    signal, step, window, frame_length = node[0], node[1], node.optional(2), node.optional(3)
    length = size_of(signal, 1)
    if frame_length is not None:
        size = _integer(frame_length, "the frame length")
    elif window is not None:
        size = size_of(window, 0)
    else:
        raise ModelError("neither a window nor a frame length is given")
    step_scalar = node.add(Reshape, step, ())
    last = np.array(length - size + 1, step.type.element_type.dtype)
    starts = node.add(Range, np.zeros((), last.dtype), last, step_scalar)
    indices = node.add(Add, node.add(Unsqueeze, starts, (1,)), np.arange(size, dtype=last.dtype))
    frames = node.add(Gather, signal, indices, 1)
    if window is not None:
        frames = node.add(Mul, frames, node.add(Reshape, window, (-1, 1)))
    return fourier_transform(node, frames, 2, size, onesided=onesided)


def _integer(operand: Operand, what: str) -> int:
    return int(value_of(operand, what).item())
