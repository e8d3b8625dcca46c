"""Operators on signals and volumes by those on images, for devices that have only these."""

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
"""The numbers for the height of images of one row."""


def _add(b: Builder, operator: str, *arguments: object, **named: Any) -> Operand:
    return b.add(operator_named(operator), *arguments, **named)


def build_planar(
    b: Builder, op: SpatialOperator, planar: type[Operator]
) -> tuple[Operand, ...] | None:
    """A convolution or pooling of signals as one of images of height 1.

    `None` where a parameter is computed when the model runs.
    """
    arguments: dict[str, Any] = dict(op.named_inputs())
    for slot in ("input", "filter"):
        if slot not in arguments:
            continue
        operand = arguments[slot]
        # The axis of several scales is before the one that is added, so that they stay.
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
"""The numbers for the width of images whose columns are pooled."""


def build_planes(b: Builder, op: SpatialOperator, planar: type[Operator]) -> tuple[Operand, ...]:
    """A pooling of volumes as one of their planes, and then one of what that makes along the depth.

    The offset of a maximum is that in its plane, with the planes before it.
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
        results.append(_offsets_in_volume(b, stacked[1], pooled[1], area, int(size)))
    (levels,) = static(shape_of(pooled[0])[2:3])
    shape = sizes((sizes.shape[0], channels, levels, height, width))
    return tuple(_add(b, "RESHAPE", result, shape, allow_zero=True) for result in results)


def _offsets_in_volume(
    b: Builder, in_planes: Operand, in_columns: Operand, area: int, size: int
) -> Operand:
    """The offsets of maxima in a volume, -1 for those of windows without a pixel.

    Args:
        b: where computations are added.
        in_planes: the offsets of the maxima of planes, [N, C, D, `area`].
        in_columns: the offsets of the maxima of these in [D, `area`].
        area: how many maxima a plane has.
        size: how many pixels a plane has.
    """
    dtype = in_planes.type.element_type.dtype
    columns = _add(b, "FLATTEN", in_columns, 2, 3)
    offsets = _add(b, "GATHER_ELEMENTS", _add(b, "FLATTEN", in_planes, 2, 3), columns, 2)
    planes = _add(b, "DIV", columns, np.array(area, dtype))
    result = _add(b, "ADD", offsets, _add(b, "MUL", planes, np.array(size, dtype)))
    is_nowhere = _add(b, "LESS", _add(b, "MIN", columns, offsets), np.array(0, dtype))
    return _add(b, "WHERE", is_nowhere, np.array(-1, dtype), result)
