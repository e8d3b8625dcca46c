"""Conversion of a float32 model to matrix products with low-bit weights.

The result has the same standard operators as imported ONNX files of the same form, so devices run
it like such files.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Model, Operand, Operation, Quantization
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import Add, Clip, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.integers import MatMulInteger
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import FullyConnected, MatMul, MatMulNBits
from crosschip.ops.standard.quantization import Dequantize, DynamicQuantize
from crosschip.ops.standard.recurrent import LSTM, DynamicQuantizeLSTM
from crosschip.tuning.variants import Form

BLOCK_SIZE = 32
"""The number of weights of a column that share a scale, for weights in blocks."""

_INT8_LIMIT = 127
_IN_INT8 = 4
"""The `accuracy_level` of MAT_MUL_N_BITS that allows a device to round `x` to int8 in blocks."""


class _Product(NamedTuple):
    """A matrix product with a constant matrix.

    Attributes:
        x: the first operand, [..., terms].
        weight: the second operand, [terms, columns], in float32.
        bias: the addend, [columns]; `None` for none.
        fuse: the activation of the result.
    """

    x: Operand
    weight: Array
    bias: Operand | None
    fuse: Fuse


def convertible(model: Model, form: Form) -> frozenset[str]:
    """Return the names of the operations that a form changes.

    These are matrix products with a constant matrix and, for `Form.DYNAMIC`, LSTM with constant
    weights.
    """
    return frozenset(
        operation.name
        for operation in model.operations
        if _is_product(operation) or (form is Form.DYNAMIC and _is_lstm(operation))
    )


def with_low_bit_weights(
    model: Model, form: Form, bits: int, in_float32: Collection[str] = ()
) -> Model:
    """Return the model with low-bit weights in its matrix products.

    - `Form.DYNAMIC`: `MAT_MUL_INTEGER` of int8 weights, with a symmetric scale per column, and of
      the other operand rounded by `DYNAMIC_QUANTIZE`; LSTM becomes `DYNAMIC_QUANTIZE_LSTM` with a
      scale per row of its weights.
    - `Form.WEIGHTS`: `DEQUANTIZE` of int8 weights, with a symmetric scale per column, before the
      float32 product.
    - `Form.BLOCKS`: `MAT_MUL_N_BITS` of weights in blocks of `BLOCK_SIZE`.

    Args:
        model: the model in float32.
        form: one of these forms; not `Form.STATIC`, which needs the ranges of activations.
        bits: the bits of a weight: 8, or for `Form.BLOCKS` also 4.
        in_float32: the names of operations that stay unchanged.
    """
    changed = convertible(model, form) - set(in_float32)
    used_names = {operation.name for operation in model.operations}
    conversion = _Conversion(form, bits)
    results: dict[Operand, Operand] = {}
    operations: list[Operation] = []
    for old in model.operations:
        operation = old
        if not results.keys().isdisjoint(old.inputs):
            operation = old.with_inputs(tuple(o and results.get(o, o) for o in old.inputs))
        if old.name not in changed:
            operations.append(operation)
            continue
        assert isinstance(operation, Operator), "`convertible` returns operators only"
        b = Builder(prefix=f"{old.name}.", used_names=used_names)
        b.origins = tuple(old.origins)
        results.update(zip(old.outputs, conversion.convert(b, operation), strict=True))
        operations += b.operations
    outputs = {name: results.get(operand, operand) for name, operand in model.outputs.items()}
    return Model(model.name, model.inputs, operations, outputs)


class _Conversion:
    """The conversion of the operations of one model.

    Args:
        form: the form of the weights.
        bits: the bits of a weight.
    """

    def __init__(self, form: Form, bits: int) -> None:
        self._bits = bits
        self._convert = {
            Form.DYNAMIC: self._dynamic,
            Form.WEIGHTS: _weights_only,
            Form.BLOCKS: self._in_blocks,
        }[form]
        # Products that read the same tensor share its quantization.
        self._bytes: dict[Operand, Sequence[Operand]] = {}

    def convert(self, b: Builder, operation: Operator) -> Sequence[Operand]:
        """Append the replacement of an operation; return its outputs, in order."""
        if isinstance(operation, LSTM):
            return _dynamic_lstm(b, operation)
        product = _product(b, operation)
        result = self._convert(b, product)
        if product.fuse is not Fuse.NONE:
            result = b.add(Clip, result, *product.fuse.bounds)
        return [result]

    def _dynamic(self, b: Builder, product: _Product) -> Operand:
        if product.x not in self._bytes:
            self._bytes[product.x] = b.add_all(DynamicQuantize, product.x)
        x, x_scale, x_zero_point = self._bytes[product.x]
        weight, scale = symmetric_int8(product.weight, axis=0)
        sums = b.add(MatMulInteger, x, b.constant(weight), x_zero_point)
        scales = b.add(Mul, x_scale, b.constant(scale))
        result = b.add(Mul, b.add(Cast, sums, ElementType.FLOAT32), scales)
        return result if product.bias is None else b.add(Add, result, product.bias)

    def _in_blocks(self, b: Builder, product: _Product) -> Operand:
        weight, scale = packed_blocks(product.weight, self._bits)
        return b.add(
            MatMulNBits,
            product.x,
            weight,
            scale,
            bias=product.bias,
            size=len(product.weight),
            block_size=BLOCK_SIZE,
            bits=self._bits,
            accuracy_level=_IN_INT8,
        )


def _weights_only(b: Builder, product: _Product) -> Operand:
    weight, scale = symmetric_int8(product.weight, axis=0)
    constant = b.constant(weight, quantization=Quantization(tuple(scale.tolist()), axis=1))
    result = b.add(MatMul, product.x, b.add(Dequantize, constant))
    return result if product.bias is None else b.add(Add, result, product.bias)


def _dynamic_lstm(b: Builder, operation: LSTM) -> Sequence[Operand]:
    named: dict[str, Any] = {slot.name: operand for slot, operand in operation.filled()}
    for name in ("weight", "recurrence_weight"):
        weight, scale = symmetric_int8(_value(operation.operand(name)), axis=2)
        named |= {name: b.constant(weight), f"{name}_scale": b.constant(scale)}
    return b.add_all(DynamicQuantizeLSTM, **named)


def symmetric_int8(weights: Array, axis: int) -> tuple[Array, Array]:
    """Return weights as int8 from -127 to 127, and their float32 scales.

    Args:
        weights: the float32 weights.
        axis: the axis whose elements share a scale; the scales lack it.
    """
    largest = np.abs(weights).max(axis=axis, keepdims=True, initial=0.0)
    scale = np.where(largest > 0, largest / np.float32(_INT8_LIMIT), 1).astype(np.float32)
    scale = np.maximum(scale, np.finfo(np.float32).tiny)
    steps = np.clip(np.rint(weights / scale), -_INT8_LIMIT, _INT8_LIMIT).astype(np.int8)
    return steps, np.squeeze(scale, axis)


def packed_blocks(weights: Array, bits: int) -> tuple[Array, Array]:
    """Return weights in the layout of MAT_MUL_N_BITS, and the scales of the blocks.

    The weight of a block with the largest magnitude becomes the least integer, since there is one
    more negative integer than positive ones. The zero point is the operator's default,
    `2 ** (bits - 1)`.

    Args:
        weights: [terms, columns], in float32.
        bits: the bits of an integer, 4 or 8.

    Returns:
        uint8 [columns, blocks, BLOCK_SIZE * bits / 8], and float32 [columns, blocks].
    """
    terms, columns = weights.shape
    rows = np.pad(weights.T, ((0, 0), (0, -terms % BLOCK_SIZE)))
    blocks = rows.reshape(columns, -1, BLOCK_SIZE)
    zero_point = 2 ** (bits - 1)
    furthest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., np.newaxis], -1)
    scale = np.where(furthest != 0, furthest / np.float32(-zero_point), 1).astype(np.float32)
    steps = np.rint(blocks / np.where(scale != 0, scale, 1)) + zero_point
    integers = np.clip(steps, 0, 2 * zero_point - 1).astype(np.uint8)
    if bits == 4:
        integers = integers[..., ::2] | integers[..., 1::2] << 4
    return integers, scale[..., 0]


def _is_product(operation: Operation) -> bool:
    match operation:
        case MatMul():
            x, weight, turned = operation.x, operation.y, operation.transpose_x
        case FullyConnected():
            x, weight, turned = operation.input, operation.weight, False
        case _:
            return False
    shape = weight.type.static_shape
    return (
        not turned
        and not x.is_constant
        and x.type.element_type is ElementType.FLOAT32
        and bool(x.type.shape)
        and 0 not in (x.type.shape or ())
        and _is_plain(weight)
        and shape is not None
        and len(shape) == 2
        and 0 not in shape
    )


def _is_lstm(operation: Operation) -> bool:
    return (
        isinstance(operation, LSTM)
        and not isinstance(operation, DynamicQuantizeLSTM)
        and operation.input.type.element_type is ElementType.FLOAT32
        and 0 not in (operation.input.type.shape or ())
        and _is_plain(operation.weight)
        and _is_plain(operation.recurrence_weight)
    )


def _is_plain(weight: Operand) -> bool:
    """Return whether weights are finite float32 constants."""
    return (
        weight.is_constant
        and weight.type.element_type is ElementType.FLOAT32
        and bool(np.isfinite(_value(weight)).all())
    )


def _product(b: Builder, operation: Operator) -> _Product:
    """Return the matrix product of an operation; inputs of higher rank are flattened."""
    if isinstance(operation, MatMul):
        weight = _value(operation.y)
        return _Product(operation.x, weight.T if operation.transpose_y else weight, None, Fuse.NONE)
    assert isinstance(operation, FullyConnected), "see `_is_product`"
    weight, x = _value(operation.weight).T, operation.input
    if len(x.type.shape or ()) > 2:
        x = b.add(Reshape, x, (-1, len(weight)))
    return _Product(x, weight, operation.bias, operation.fused)


def _value(operand: Operand | None) -> Array:
    assert operand is not None, "weights are not optional"
    return np.asarray(operand.value)
