"""The hard counterpart of the softmax."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand
from crosschip.ops.activation import AlongAxis
from crosschip.ops.creation import OneHot
from crosschip.ops.elementwise import Assign, number
from crosschip.ops.operator import operator, shape_of
from crosschip.ops.shapes import axis_in
from crosschip.ops.sizes import Sizes
from crosschip.ops.sorting import ArgMax


@operator("HARDMAX", onnx=("Hardmax",))
class Hardmax(AlongAxis):
    """1 at the greatest number along `axis`, the first of several, and 0 elsewhere.

    NaN counts as greatest. Along an axis of size 0, the output is empty like the input.
    """

    __slots__ = ()

    def reference(self, input: Array, axis: int) -> Array:
        output = np.zeros_like(input)
        if input.size:
            places = np.expand_dims(np.argmax(input, axis), axis)
            np.put_along_axis(output, places, 1, axis)
        return output

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        axis = axis_in(self.axis, len(sizes.shape))
        if shape_of(self.input)[axis] == 0:
            return b.add(Assign, self.input)
        depth = sizes((sizes.shape[axis],))
        places = b.add(ArgMax, self.input, axis, False, ElementType.INT64)
        one, zero = number(1, self.input), number(0, self.input)
        return b.add(OneHot, places, depth, one, zero, axis)
