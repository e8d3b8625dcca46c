"""Operations whose sizes fit whatever the open ones are in a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from crosschip.ir import Dim, Operand, Operation, Shape
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard.indexing import GatherElements
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.normalization import (
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    RMSNormalization,
)
from crosschip.ops.standard.padding import Pad, PadMode


def is_known_to_fit(operation: Operation) -> bool:
    """Tell whether the sizes that an operation's rules are about are known, or of one name.

    Such an operation has been inferred when its model was made: what its rules say about sizes
    holds in every run. `False` if that is not known.
    """
    decides = _DECIDING.get(type(operation))
    shapes = [None if o is None else o.type.shape for o in operation.inputs]
    if decides is None or any(
        shape is None and operand is not None
        for shape, operand in zip(shapes, operation.inputs, strict=True)
    ):
        return False
    if any(o is not None and o.type.quantization is not None for o in operation.inputs):
        return False
    return decides(operation)


def sizes_to_agree(operation: Operation) -> list[tuple[Dim, Dim]] | None:
    """The sizes that must be equal in a run, in pairs, for an operation's sizes to fit.

    Returns:
        The pairs; `None` if more than that is needed, or it is not known what.
    """
    if not isinstance(operation, Concat) or any(
        part.type.shape is None or part.type.quantization is not None for part in operation.parts
    ):
        return None
    return [(one, other) for one, other in _pairs(operation) if one != other]


def _of_concat(operation: Concat) -> bool:
    return all(one == other for one, other in _pairs(operation))


def _pairs(operation: Concat) -> list[tuple[Dim, Dim]]:
    """The sizes beside the axis that is joined, each with that of the next part."""
    shapes = [_shape(part) for part in operation.parts]
    axis = operation.axis % len(shapes[0])
    return [
        pair
        for one, other in pairwise(shapes)
        for pair in zip(_without(one, axis), _without(other, axis), strict=True)
    ]


def _of_channels(operation: Operation) -> bool:
    image, *numbers = (_shape(o) for o in operation.inputs if o is not None)
    return isinstance(image[1], int) and all(map(_is_known, numbers))


def _of_elements(operation: GatherElements) -> bool:
    own, places = _shape(operation.input), _shape(operation.indices)
    axis = operation.axis % len(own)
    return _without(own, axis) == _without(places, axis)


def _of_last(operation: Operation) -> bool:
    value, *numbers = (_shape(o) for o in operation.inputs if o is not None)
    most = max(map(len, numbers), default=0)
    return all(map(_is_known, numbers)) and _is_known(value[len(value) - most :])


def _of_rows(operation: FullyConnected) -> bool:
    value, *others = (_shape(o) for o in operation.inputs if o is not None)
    return len(value) == 2 and isinstance(value[1], int) and all(map(_is_known, others))


def _of_sides(operation: Pad) -> bool:
    """Constants are put around anything; what is taken away, or repeated, must be there."""
    try:
        pads, mode = operation.pads, operation.mode
    except ComputedParameter:
        return False
    if mode in (PadMode.NONE, PadMode.CONSTANT) and min(pads, default=0) >= 0:
        return True
    sides = zip(_shape(operation.input), pads[::2], pads[1::2], strict=True)
    return all(isinstance(size, int) for size, *both in sides if any(both))


_DECIDING: Mapping[type[Operation], Callable[[Any], bool]] = {
    Concat: _of_concat,
    BatchNormalization: _of_channels,
    GroupNormalization: _of_channels,
    InstanceNormalization: _of_channels,
    LayerNormalization: _of_last,
    RMSNormalization: _of_last,
    FullyConnected: _of_rows,
    GatherElements: _of_elements,
    Pad: _of_sides,
}
"""For an operator, whether the sizes that its rules are about are known or equal."""


def _shape(operand: Operand) -> Shape:
    assert operand.type.shape is not None, "shapes that are not known are decided about before"
    return operand.type.shape


def _is_known(shape: Shape) -> bool:
    return all(isinstance(size, int) for size in shape)


def _without(shape: Shape, axis: int) -> tuple[Dim, ...]:
    return shape[:axis] + shape[axis + 1 :]
