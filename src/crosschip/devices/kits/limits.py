"""Limits that several engines share.

Each function returns a `Refusal` if the engines cannot run the operation, else `None`, like the
limits of converters.
"""

from __future__ import annotations

import math
from operator import truediv

from crosschip.hal import Refusal, Rule
from crosschip.ir import Operand, Operation
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.definition.windows import AutoPad, SpatialOperator
from crosschip.ops.numerics.resampling import AlignMode, Rounding
from crosschip.ops.standard.convolution import ConvTranspose
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import Pool
from crosschip.ops.standard.recurrent import Recurrent
from crosschip.ops.standard.reduction import Reduction
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.searching import NonZero
from crosschip.ops.standard.slicing import Slice


def known_weight(op: FullyConnected) -> Refusal | None:
    """Require a static weight shape: the input is flattened to rows of its length."""
    shape = op.weight.type.static_shape
    return Refusal("weight", "its shape must be known", Rule.SHAPE) if shape is None else None


def one_type(op: Operator) -> Refusal | None:
    """Require one element type: engines take scale and bias in the input's type."""
    element_type = op.outputs[0].type.element_type
    for slot, operand in op.filled():
        if not slot.parameter and operand.type.element_type is not element_type:
            return Refusal(slot.name, f"must be {element_type} like the input")
    return None


def some_elements(op: Reduction) -> Refusal | None:
    """Refuse empty reductions: engines' means and extremes of nothing differ."""
    shape = op.input.type.shape or ()
    for axis in op.axes or range(len(shape)):
        if shape and shape[axis] == 0:
            return Refusal("input", f"there are no elements on axis {axis}", Rule.SHAPE)
    return None


def hidden_size(op: Recurrent) -> Refusal | None:
    """Require a static hidden size: engines take it as an attribute."""
    shape = op.recurrence_weight.type.shape
    if shape is None or not isinstance(shape[2], int):
        return Refusal("recurrence_weight", "its last size must be known", Rule.SHAPE)
    return None


def two_spatial_axes(operation: Operation) -> Refusal | None:
    """Require two spatial axes: vendors' compilers are not tested with others."""
    rank = operation.spatial_rank if isinstance(operation, SpatialOperator) else 2
    return None if rank == 2 else Refusal("input", f"is of {rank} axes, not 2", Rule.SHAPE)


def no_output_shape(op: ConvTranspose) -> Refusal | None:
    """Refuse an explicit output size: engines distribute the remaining padding differently."""
    if op.auto_pad.keeps_size:
        return Refusal("auto_pad", f"{op.auto_pad.name}")
    return (
        None if op.operand("output_shape") is None else Refusal("output_shape", "must be left out")
    )


def windows_in_image(op: Pool) -> Refusal | None:
    """Require padding narrower than the window, and no window that starts in the end padding."""
    for axis in range(op.spatial_rank):
        pads = op.pads[2 * axis : 2 * axis + 2]
        before, after = pads if op.auto_pad is AutoPad.NONE else (0, 0)
        span, stride = op.windows.spans[axis], op.strides[axis]
        if max(before, after) >= op.kernel_shape[axis]:
            return Refusal("pads", f"{max(before, after)} is not less than the window of {span}")
        if op.ceil_mode and not op.inside and after + stride > span:
            return Refusal("ceil_mode", f"a window may start in the padding of {after}")
    return None


def backward_start(op: Slice) -> Refusal | None:
    """Refuse backward slices that may start before the first element, where engines clamp."""
    if op.steps is None:
        return None
    shape, starts, ends = op.input.type.shape, op.operand("starts"), op.operand("ends")
    axes = range(len(op.steps)) if op.axes is None else op.axes
    for index, (axis, step) in enumerate(zip(axes, op.steps, strict=True)):
        if step < 0:
            size = None if shape is None else shape[axis]
            # A start at the last element is right for an empty axis, too.
            first = -size if isinstance(size, int) and size else -1
            if starts is None or starts.value is None or op.starts[index] < first:
                return Refusal(
                    "starts", "with a negative step, must be known to be in the input", Rule.SHAPE
                )
            if ends is None or ends.value is None or op.ends[index] >= _FAR:
                return Refusal(
                    "ends", "with a negative step, must be known not to be far out", Rule.SHAPE
                )
    return None


_FAR = 2**31 - 1
"""The end from which on some exporters mean "to the end" in both directions."""


def is_empty_list(parameter: Operand | None) -> bool:
    """Return whether a parameter is an empty list, for which engines reject the operation."""
    return parameter is not None and parameter.type.static_shape == (0,)


def has_axes(op: NonZero) -> Refusal | None:
    """Require axes: for a scalar, engines return more indices than there are axes."""
    return None if op.input.type.shape else Refusal("input", "must have axes", Rule.SHAPE)


def usual_pixels(op: ResizeNearest) -> Refusal | None:
    """Refuse nearest pixels other than NNAdapter's: engines round coordinates differently."""
    if op.align_mode is not AlignMode.ASYMMETRIC and not op.align_corners:
        return Refusal("align_mode", f"{op.align_mode.name}")
    usual = op.rounding is Rounding.USUAL
    return None if usual else Refusal("rounding", f"{op.rounding.name} is not done at run time")


PADDING_MODES = {
    PadMode.NONE: "zeros",
    PadMode.CONSTANT: "zeros",
    PadMode.REFLECT: "reflection",
    PadMode.REPLICATE: "border",
    PadMode.EDGE: "border",
}
"""Engines' names of the modes for samples outside of an image."""

_COORDINATE_MODES = {
    AlignMode.HALF_PIXEL: "half_pixel",
    AlignMode.ASYMMETRIC: "asymmetric",
    AlignMode.PYTORCH_HALF_PIXEL: "pytorch_half_pixel",
}


def interpolation_limit(op: ResizeCubic | ResizeLinear) -> Refusal | None:
    """Refuse antialiasing, steep cubic kernels and coordinate modes that engines lack."""
    if op.antialias:
        return Refusal("antialias", "is not done at run time")
    if isinstance(op, ResizeCubic) and abs(op.coefficient) > 1:
        return Refusal("coefficient", f"{op.coefficient:g} makes small errors of coordinates large")
    unknown = op.align_mode not in _COORDINATE_MODES and not op.align_corners
    return Refusal("align_mode", f"{op.align_mode.name}") if unknown else None


def coordinate_mode(op: ResizeCubic | ResizeLinear) -> str:
    """Return the name of the pixel positions in ONNX and engines; see `interpolation_limit`."""
    return "align_corners" if op.align_corners else _COORDINATE_MODES[op.align_mode]


def padded_once(op: Pad) -> Refusal | None:
    """Refuse padding that engines lack in modes other than `CONSTANT`.

    It is negative, wider than the axis can fill once, or not known before a run.
    """
    if op.mode in (PadMode.NONE, PadMode.CONSTANT):
        return None
    shape, pads = op.input.type.shape, op.operand("pads")
    if shape is None or pads is None or pads.value is None:
        slot, what = ("input", "its rank") if shape is None else ("pads", "they")
        return Refusal(slot, f"{what} must be known in mode {op.mode.name}", Rule.SHAPE)
    narrower = 1 if op.mode is PadMode.REFLECT else 0
    for size, before, after in zip(shape, op.pads[::2], op.pads[1::2], strict=True):
        width = max(before, after)
        if min(before, after) < 0:
            return Refusal("pads", f"negative ones in mode {op.mode.name}")
        if width > 0 and (not isinstance(size, int) or size - narrower < width):
            return Refusal("pads", f"{width} on an axis of size {size} in mode {op.mode.name}")
    return None


def divides_exactly(op: ResizeNearest) -> bool:
    """Return whether dividing by the scale selects the same pixels as the operator does.

    The operator multiplies by the inverse. Both are exact if all scales are powers of two.
    """
    image = op.input.type.shape or ()
    try:
        ratios = op.scales if op.shape is None else tuple(map(truediv, op.shape, image[2:]))
    except (ComputedParameter, TypeError, ZeroDivisionError):
        return False
    return not op.align_corners and all(math.frexp(r)[0] == 0.5 for r in ratios or (0.0,))
