"""Forms: how a tensor of a model lies in the chip's memory.

Images are [N, C, H, W] in a model and [N, H, W, C] on the chip. The chip's bytes are unsigned, so
int8 is moved up by 128, its zero point with it. Reals are float16.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosschip.ir import Array, DeviceError, ElementType, Operand, Quantization
from crosschip.ops.definition import quantized
from fake_npu_ddk import DataType, Tensor

BYTES = frozenset({ElementType.INT8, ElementType.UINT8})
REALS = frozenset({ElementType.FLOAT16, ElementType.FLOAT32})

TO_CHIP = (0, 2, 3, 1)
"""The order of an image's axes on the chip, by their numbers in the model."""
FROM_CHIP = (0, 3, 1, 2)


@dataclass(frozen=True, slots=True)
class Form:
    """A tensor of a model as it lies in the chip's memory.

    Attributes:
        element_type: the type in the model.
        shape: the shape in the model.
        quantization: how bytes on the chip stand for the reals that the model has: they are
            converted where they enter and leave. `None` where the model has them as on the chip.
    """

    element_type: ElementType
    shape: tuple[int, ...]
    quantization: Quantization | None = None

    @classmethod
    def of(cls, operand: Operand, quantization: Quantization | None = None) -> Form:
        """The form of an operand of known shape."""
        shape = operand.type.static_shape
        if shape is None:
            raise DeviceError("the chip takes known sizes only")
        return cls(operand.type.element_type, shape, quantization)

    @property
    def tensor(self) -> Tensor:
        """The tensor on the chip, without what its bytes stand for."""
        shape = self.shape or (1,)
        if len(shape) == 4:
            shape = tuple(shape[axis] for axis in TO_CHIP)
        if self.element_type in BYTES or self.quantization is not None:
            return Tensor(DataType.UINT8, shape, scale=1.0, zero_point=0)
        return Tensor(DataType.FLOAT16, shape)

    def to_chip(self, array: Array) -> Array:
        """The elements as the chip has them."""
        if self.quantization is None:
            array = encoded(array)
        else:
            wide = array.astype(np.float32, copy=False)
            array = quantized.stored(wide, self.quantization, ElementType.UINT8)
        return array.transpose(TO_CHIP) if array.ndim == 4 else array.reshape(array.shape or (1,))

    def from_chip(self, elements: Array) -> Array:
        """The elements as the model has them, in C order and memory of their own."""
        turned = elements.transpose(FROM_CHIP) if len(self.shape) == 4 else elements
        array = np.array(turned.reshape(self.shape), order="C")
        if self.quantization is not None:
            reals = np.asarray(quantized.reals(array, self.quantization))
            return reals.astype(self.element_type.dtype)
        return decoded(array, self.element_type)


def encoded(array: Array) -> Array:
    """Elements in the type that the chip has for them; their order stays."""
    if array.dtype == np.int8:
        return np.asarray(np.ascontiguousarray(array).view(np.uint8) ^ np.uint8(128))
    if array.dtype == np.uint8:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float16)


def decoded(elements: Array, element_type: ElementType) -> Array:
    """What `encoded` was given, of a type."""
    if element_type is ElementType.INT8:
        return np.asarray(elements ^ np.uint8(128)).view(np.int8)
    return elements.astype(element_type.dtype, copy=False)


def on_chip(operand: Operand) -> Quantization | None:
    """How the chip's bytes stand for the reals of a quantized operand."""
    stored = operand.type.quantization
    if stored is None:
        return None
    up = 128 if operand.type.element_type is ElementType.INT8 else 0
    return Quantization(stored.scale, tuple(zero + up for zero in stored.zero_point))
