"""Decompositions of operators on signals and volumes into those on images.

Devices that support two spatial axes only run them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crosschip.ir import Builder, Operand
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator_named
from crosschip.ops.definition.shape_values import Sizes
from crosschip.ops.definition.slots import Parameter
from crosschip.ops.definition.windows import SpatialOperator, static

_OF_HEIGHT = {
    "pads": (0, 0),
    "kernel_shape": (1,),
    "strides": (1,),
    "dilations": (1,),
    "output_padding": (0,),
    "output_shape": (1,),
}
"""The parameters for the height axis of images of height 1."""


def _add(b: Builder, operator: str, *arguments: object, **named: Any) -> Operand:
    return b.add(operator_named(operator), *arguments, **named)


def build_planar(
    b: Builder, op: SpatialOperator, planar: type[Operator]
) -> tuple[Operand, ...] | None:
    """Build a convolution or pooling of signals as one of images of height 1.

    Returns `None` if a parameter is computed at run time.
    """
    arguments: dict[str, Any] = dict(op.named_inputs())
    for slot in ("input", "filter"):
        if slot not in arguments:
            continue
        operand = arguments[slot]
        # The axis of per-channel scales is before the new axis, so it keeps its index. A single
        # scale loses its axis, as UNSQUEEZE decomposes to QUANTIZE, whose single scale has none.
        scales, value = operand.type.quantization, operand.value
        if scales is not None and len(scales.scale) == 1:
            scales = replace(scales, axis=None)
        if value is None:
            arguments[slot] = _add(b, "UNSQUEEZE", operand, (2,), quantization=scales)
        else:
            arguments[slot] = b.constant(np.expand_dims(value, 2), operand.name, scales)
    for slot, of_height in _OF_HEIGHT.items():
        if slot in arguments:
            if not arguments[slot].is_constant:
                return None
            arguments[slot] = (*of_height, *getattr(op, slot))
    stored = tuple(output.type.quantization for output in op.outputs)
    images = b.add_all(planar, **arguments, quantization=stored)
    return tuple(
        _add(b, "SQUEEZE", image, (2,), quantization=image.type.quantization) for image in images
    )


_OF_WIDTH = {"pads": (0, 0), "kernel_shape": (1,), "strides": (1,), "dilations": (1,)}
"""The parameters for the width axis of images whose columns are pooled."""


def build_planes(b: Builder, op: SpatialOperator, planar: type[Operator]) -> tuple[Operand, ...]:
    """Build a pooling of volumes as one of planes, and one of the results along the depth.

    The offset of a maximum is its offset in its plane plus the size of the planes before it.
    """
    arguments = {slot: operand for slot, operand in op.named_inputs() if slot != "input"}
    of_planes, of_columns = dict[str, Any](arguments), dict[str, Any](arguments)
    (volume, *_) = op.inputs
    assert volume is not None, "it is required"
    channels, depth = static(shape_of(volume)[1:3])
    for slot in op.slots:
        if slot.name in arguments and isinstance(slot, Parameter) and slot.axis_length:
            numbers = getattr(op, slot.name)
            of_planes[slot.name] = numbers[slot.axis_length :]
            of_columns[slot.name] = (*numbers[: slot.axis_length], *_OF_WIDTH.get(slot.name, ()))
    planes = b.add_all(planar, _add(b, "FLATTEN", volume, 1, 2), **of_planes)
    sizes = Sizes(b, planes[0])
    *_, height, width = sizes.shape
    if "output_shape" in arguments:
        of_columns["output_shape"] = (*of_columns["output_shape"], *static((height * width,)))
    stacked_shape = sizes((sizes.shape[0], channels, depth, height * width))
    stacked = [_add(b, "RESHAPE", o, stacked_shape, allow_zero=True) for o in planes]
    pooled = b.add_all(planar, stacked[0], **of_columns)
    results = [pooled[0]]
    if len(pooled) > 1:
        area, size = static((height * width,))[0], np.prod(static(shape_of(volume)[3:]))
        results.append(_volume_offsets(b, stacked[1], pooled[1], area, int(size)))
    (levels,) = static(shape_of(pooled[0])[2:3])
    shape = sizes((sizes.shape[0], channels, levels, height, width))
    return tuple(_add(b, "RESHAPE", result, shape, allow_zero=True) for result in results)


def _volume_offsets(
    b: Builder, in_planes: Operand, in_columns: Operand, area: int, size: int
) -> Operand:
    """Return the offsets of maxima in a volume; -1 for windows without a pixel.

    Args:
        b: the builder.
        in_planes: the offsets of the maxima in their planes, [N, C, D, `area`].
        in_columns: the offsets in [D, `area`] of the maxima along the depth.
        area: the number of maxima of a plane.
        size: the number of pixels of a plane.
    """
    dtype = in_planes.type.element_type.dtype
    columns = _add(b, "FLATTEN", in_columns, 2, 3)
    offsets = _add(b, "GATHER_ELEMENTS", _add(b, "FLATTEN", in_planes, 2, 3), columns, 2)
    planes = _add(b, "DIV", columns, np.array(area, dtype))
    result = _add(b, "ADD", offsets, _add(b, "MUL", planes, np.array(size, dtype)))
    is_nowhere = _add(b, "LESS", _add(b, "MIN", columns, offsets), np.array(0, dtype))
    return _add(b, "WHERE", is_nowhere, np.array(-1, dtype), result)
