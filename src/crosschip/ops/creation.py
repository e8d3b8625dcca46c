"""Operators that make a tensor from a description of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Shape
from crosschip.ir.types import ALL_TYPES, ElementType
from crosschip.ops.operator import Operator, operator
from crosschip.ops.shapes import unknown_sizes
from crosschip.ops.slots import ComputedParameter, integers, tensor


@operator("FILL")
class Fill(Operator):
    """A tensor of the given shape in which every element is `value` (one element)."""

    __slots__ = ()
    shape = integers()
    value = tensor(ALL_TYPES)

    def infer_element_type(self) -> ElementType:
        return self.value.type.element_type

    def infer_shape(self) -> Shape:
        try:
            sizes = self.shape
        except ComputedParameter:
            operand = self.operand("shape")
            length = operand.type.static_shape if operand else None
            if length is None:
                raise
            return unknown_sizes(length[0] if length else 1)
        if any(size < 0 for size in sizes):
            raise ValueError(f"shape: {list(sizes)} has a negative size")
        return sizes

    def reference(self, shape: Sequence[int], value: Array) -> Array:
        return np.full(shape, value.reshape(()), value.dtype)
