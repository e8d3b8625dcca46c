"""Where more than one engine departs from the operators' definitions in the same way.

Each function answers with the rule that an operation breaks, `slot: rule`, or `None`, as the
converters' limits do.
"""

from __future__ import annotations

import math
from operator import truediv

from crosschip.ops.convolution import Conv2DTranspose
from crosschip.ops.layout import Slice
from crosschip.ops.matrix import FullyConnected
from crosschip.ops.normalization import BatchNormalization, LayerNormalization
from crosschip.ops.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.resizing import ResizeNearest
from crosschip.ops.slots import ComputedParameter
from crosschip.ops.windows import AutoPad


def known_weight(op: FullyConnected) -> str | None:
    """The input is flattened to rows as long as the weight's, which must be known."""
    shape = op.weight.type.static_shape
    return "weight: its shape must be known" if shape is None else None


def one_type(op: BatchNormalization | LayerNormalization) -> str | None:
    """Engines take scale and bias in the input's element type."""
    own, scale = op.input.type.element_type, op.scale.type.element_type
    return None if scale is own else f"scale: must be {own} like the input"


def own_size(op: Conv2DTranspose) -> str | None:
    """What a given size leaves over, engines divide between the sides in ways of their own."""
    if op.auto_pad is AutoPad.SAME:
        return "auto_pad: SAME"
    return None if op.operand("output_shape") is None else "output_shape: must be left out"


def windows_in_image(op: AveragePool2D | MaxPool2D) -> str | None:
    """Engines want padding narrower than a window, and no window that starts in it at the end."""
    for axis in range(2):
        given = op.pads[2 * axis : 2 * axis + 2]
        before, after = given if op.auto_pad is AutoPad.NONE else (0, 0)
        kernel, stride = op.kernel_shape[axis], op.strides[axis]
        if max(before, after) >= kernel:
            return f"pads: {max(before, after)} is not less than the window of {kernel}"
        if op.ceil_mode and after + stride > kernel:
            return f"ceil_mode: a window may start in the padding of {after}"
    return None


def backward_start(op: Slice) -> str | None:
    """Backwards from before the first element, Python takes nothing; engines take the first."""
    if op.steps is None:
        return None
    shape, starts = op.input.type.shape, op.operand("starts")
    axes = range(len(op.steps)) if op.axes is None else op.axes
    for index, (axis, step) in enumerate(zip(axes, op.steps, strict=True)):
        if step < 0:
            size = None if shape is None else shape[axis]
            first = -size if isinstance(size, int) else 0
            if starts is None or starts.value is None or op.starts[index] < first:
                return "starts: with a negative step, must be known to be in the input"
    return None


def divides_exactly(op: ResizeNearest) -> bool:
    """Whether dividing by the scale finds the pixels that multiplying by its inverse does.

    Engines do the former, the operator means the latter. For powers of two both are exact.
    """
    image = op.input.type.shape or ()
    try:
        ratios = op.scales if op.shape is None else tuple(map(truediv, op.shape, image[2:]))
    except (ComputedParameter, TypeError, ZeroDivisionError):
        return False
    return not op.align_corners and all(math.frexp(r)[0] == 0.5 for r in ratios or (0.0,))
