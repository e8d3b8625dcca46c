"""The sizes of a run that fit an operation, where that is known without looking at it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from crosschip.ir import Dim, Operand, Operation, Shape
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard.convolution import (
    Conv,
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    ConvTranspose,
)
from crosschip.ops.standard.indexing import GatherElements, GatherND
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
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, DynamicQuantizeLSTM


@dataclass(frozen=True, slots=True)
class Fit:
    """What of the sizes in a run shows that those of an operation fit.

    Attributes:
        equal: sizes that are equal, in pairs.
        positive: sizes that are 1 or more.
    """

    equal: tuple[tuple[Dim, Dim], ...] = ()
    positive: tuple[Dim, ...] = ()


ALWAYS = Fit()
"""Of an operation whose sizes fit in every run."""


def fit_of(operation: Operation) -> Fit | None:
    """What shows that an operation's sizes fit, which has been inferred when its model was made.

    What its rules say about sizes that are known, or of one name, holds in every run then.

    Returns:
        `None` if more than a `Fit` can say is needed, or it is not known what.
    """
    decides = _DECIDING.get(type(operation))
    read = [operand for operand in operation.inputs if operand is not None]
    if decides is None or any(operand.type.shape is None for operand in read):
        return None
    if not all(map(_has_its_scales, [*read, *operation.outputs])):
        return None
    try:
        return decides(operation)
    except (ComputedParameter, UnknownRank):
        return None


def _has_its_scales(operand: Operand) -> bool:
    """Tell whether there is a scale for all of an operand, or one for each of known places."""
    stored, shape = operand.type.quantization, operand.type.shape
    if stored is None or stored.axis is None:
        return True
    return shape is not None and isinstance(shape[stored.axis % len(shape)], int)


def _fit(equal: Iterable[tuple[Dim, Dim]] = (), positive: Iterable[Dim] = ()) -> Fit:
    """What is not known to hold already."""
    return Fit(
        tuple(dict.fromkeys((one, other) for one, other in equal if one != other)),
        tuple(dict.fromkeys(size for size in positive if not isinstance(size, int) or size < 1)),
    )


def _always_if(known: bool) -> Fit | None:
    return ALWAYS if known else None


def _of_concat(operation: Concat) -> Fit:
    shapes = [_shape(part) for part in operation.parts]
    axis = operation.axis % len(shapes[0])
    return _fit(
        pair
        for one, other in pairwise(shapes)
        for pair in zip(_without(one, axis), _without(other, axis), strict=True)
    )


def _of_windows(operation: Conv | ConvTranspose) -> Fit | None:
    """There is a window: no size that is computed of a smaller image is positive."""
    image, *others = (_shape(o) for o in operation.inputs if o is not None)
    if not isinstance(image[1], int) or not all(map(_is_known, others)):
        return None
    output_shape = operation.infer_shape()
    return _fit(positive=(*image[2:], *output_shape[2:]))


def _of_places(operation: GatherND) -> Fit | None:
    own, places = _shape(operation.input), _shape(operation.indices)
    batch = operation.batch_dims
    if not isinstance(places[-1], int):
        return None
    return _fit(zip(own[:batch], places[:batch], strict=True))


def _of_steps(operation: RNN | GRU | LSTM) -> Fit:
    equal = [
        pair
        for slot, wanted in operation.wanted_shapes().items()
        if (operand := operation.operand(slot)) is not None
        for pair in zip(_shape(operand), wanted, strict=True)
    ]
    return _fit(equal, _shape(operation.input)[:1])


def _of_integers(operation: Quantize | Dequantize) -> Fit:
    """That there are as many scales as places has been seen to."""
    return ALWAYS


def _of_channels(operation: Operation) -> Fit | None:
    image, *numbers = (_shape(o) for o in operation.inputs if o is not None)
    return _always_if(isinstance(image[1], int) and all(map(_is_known, numbers)))


def _of_elements(operation: GatherElements) -> Fit:
    own, places = _shape(operation.input), _shape(operation.indices)
    axis = operation.axis % len(own)
    return _fit(zip(_without(own, axis), _without(places, axis), strict=True))


def _of_last(operation: Operation) -> Fit | None:
    value, *numbers = (_shape(o) for o in operation.inputs if o is not None)
    most = max(map(len, numbers), default=0)
    return _always_if(all(map(_is_known, numbers)) and _is_known(value[len(value) - most :]))


def _of_rows(operation: FullyConnected) -> Fit | None:
    value, *others = (_shape(o) for o in operation.inputs if o is not None)
    return _always_if(len(value) == 2 and isinstance(value[1], int) and all(map(_is_known, others)))


def _of_sides(operation: Pad) -> Fit | None:
    """Constants are put around anything; what is taken away, or repeated, must be there."""
    pads, mode = operation.pads, operation.mode
    if mode in (PadMode.NONE, PadMode.CONSTANT) and min(pads, default=0) >= 0:
        return ALWAYS
    sides = zip(_shape(operation.input), pads[::2], pads[1::2], strict=True)
    return _always_if(all(isinstance(size, int) for size, *both in sides if any(both)))


_DECIDING: Mapping[type[Operation], Callable[[Any], Fit | None]] = {
    Concat: _of_concat,
    **dict.fromkeys((Conv1D, Conv2D, Conv3D), _of_windows),
    **dict.fromkeys((Conv1DTranspose, Conv2DTranspose, Conv3DTranspose), _of_windows),
    BatchNormalization: _of_channels,
    GroupNormalization: _of_channels,
    InstanceNormalization: _of_channels,
    LayerNormalization: _of_last,
    RMSNormalization: _of_last,
    FullyConnected: _of_rows,
    GatherElements: _of_elements,
    GatherND: _of_places,
    GRU: _of_steps,
    LSTM: _of_steps,
    RNN: _of_steps,
    DynamicQuantizeLSTM: _of_steps,
    Pad: _of_sides,
    Quantize: _of_integers,
    Dequantize: _of_integers,
}
"""For an operator, what shows that sizes fit its rules."""


def _shape(operand: Operand) -> Shape:
    assert operand.type.shape is not None, "shapes that are not known are decided about before"
    return operand.type.shape


def _is_known(shape: Shape) -> bool:
    return all(isinstance(size, int) for size in shape)


def _without(shape: Shape, axis: int) -> tuple[Dim, ...]:
    return shape[:axis] + shape[axis + 1 :]
