"""The tables of converters, and what several families need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Converters, Refusal, Rule
from crosschip.hal.converters import Form, Scheme
from crosschip.ir import ElementType, Operand, Quantization, TensorType, constant
from crosschip.ir.types import BOOLEANS, INTEGERS
from crosschip.mapping.channels_last import (
    channels_first_axes,
    channels_last_axes,
    transpose,
    transpose_type,
)
from crosschip.ops import Operator
from crosschip.ops.standard.layout import Reshape

SINGLE = frozenset({ElementType.FLOAT32})
INDICES = frozenset({ElementType.INT32, ElementType.INT64})
ARITHMETIC = SINGLE | INDICES
BYTES = frozenset({ElementType.INT8, ElementType.UINT8})
MOVABLE = (SINGLE | BOOLEANS | INTEGERS | {ElementType.FLOAT16}) - {
    ElementType.UINT16,
    ElementType.UINT32,
    ElementType.UINT64,
}

MAX_TRANSPOSED = 6
"""The largest rank of what is transposed."""

converters = Converters[Graph, Operand](SINGLE, fuses=True, device="tflite")
"""The converters of operators that compute the same in any axis order, or have axes as operands."""
images = Converters[Graph, Operand](SINGLE, fuses=True, device="tflite")
"""The converters of operators on images, whose channels TensorFlow Lite stores last."""

converts = converters.converts
converts_images = images.converts

ACTIVATION = Scheme(frozenset({ElementType.INT8}))
UNSIGNED = Scheme(frozenset({ElementType.UINT8}))
WORDS = Scheme(frozenset({ElementType.INT16}), symmetric=True)
ANY_BYTES = Scheme(BYTES)


def unary_forms(*schemes: Scheme) -> Sequence[Form]:
    """Return the quantized forms of an operator with one input."""
    return [{"input": scheme, "output": scheme} for scheme in schemes]


def binary_forms(*schemes: Scheme) -> Sequence[Form]:
    """Return the quantized forms of an operator with two inputs."""
    return [{"input0": scheme, "input1": scheme, "output": scheme} for scheme in schemes]


def fixed_output(
    scale: float, zero_point: int = 0, words: float = 2**-15
) -> Callable[[Operator], Refusal | None]:
    """Return the limit on the output of an operator whose kernel has one quantization of it.

    Args:
        scale: that of bytes.
        zero_point: that of int8; that of uint8 is 128 more.
        words: the scale of int16.
    """
    required = {
        ElementType.INT8: Quantization((scale,), (zero_point,)),
        ElementType.UINT8: Quantization((scale,), (zero_point + 128,)),
        ElementType.INT16: Quantization((words,)),
    }

    def limit(op: Operator) -> Refusal | None:
        type_ = op.outputs[0].type
        if type_.quantization in (None, required.get(type_.element_type)):
            return None
        return Refusal("output", f"is quantized as {type_}", Rule.QUANTIZATION)

    return limit


def same_quantization(op: Operator) -> Refusal | None:
    """Refuse tensors whose quantizations differ."""
    tensors = [(slot.name, operand) for slot, operand in op.filled() if not slot.parameter]
    for name, operand in tensors:
        if operand.type.quantization != op.outputs[0].type.quantization:
            return Refusal(name, "is not quantized as the output", Rule.QUANTIZATION)
    return None


def same(code: str, **options: object) -> Callable[[Graph, Operator], Operand]:
    """Return the converter to an operator with the same operands and one output."""

    def convert(g: Graph, op: Operator) -> Operand:
        operands = [operand for slot, operand in op.filled() if not slot.parameter]
        return g.native(code, *operands, type=op.outputs[0].type, **options)

    return convert


def to_channels_last(g: Graph, operand: Operand) -> Operand:
    """Return an image with its channels last."""
    return transpose(g, operand, channels_last_axes(rank_of(operand)))


def to_channels_first(g: Graph, operand: Operand) -> Operand:
    """Return an image with its channels on axis 1."""
    return transpose(g, operand, channels_first_axes(rank_of(operand)))


def channels_last_type(type_: TensorType) -> TensorType:
    """Return the type of an image with its channels last."""
    return transpose_type(type_, channels_last_axes(len(type_.shape or ())))


def reshaped(g: Graph, operand: Operand, shape: Sequence[int]) -> Operand:
    """Return an operand in another shape; a constant stays a constant."""
    if operand.value is None:
        return g.add(Reshape, operand, tuple(shape))
    array = operand.value.reshape(shape)
    return constant(array, operand.name, operand.type.quantization)


def rank_of(operand: Operand) -> int:
    """Return an operand's rank, which the target requires to be known."""
    return len(shape_of(operand))


def shape_of(operand: Operand) -> tuple[int, ...]:
    """Return an operand's shape, which the target requires to be static."""
    shape = operand.type.static_shape
    assert shape is not None, "the target requires it"
    return shape


def max_rank(rank: int) -> Callable[[Operator], Refusal | None]:
    """Return the limit on the rank of all tensors."""

    def limit(op: Operator) -> Refusal | None:
        for slot, operand in op.filled():
            if not slot.parameter and rank_of(operand) > rank:
                return Refusal(slot.name, f"has {rank_of(operand)} axes", Rule.SHAPE)
        return None

    return limit


def with_shape(type_: TensorType, shape: Sequence[int]) -> TensorType:
    """Return a type with another shape."""
    return replace(type_, shape=tuple(shape), shape_value=None)
