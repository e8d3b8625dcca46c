"""Conditions on a run's sizes under which an operation's rules hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from crosschip.ir import Dim, Operand, Operation, Shape
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard import convolution, normalization
from crosschip.ops.standard.indexing import GatherElements, GatherND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, DynamicQuantizeLSTM


@dataclass(frozen=True, slots=True)
class Fit:
    """Conditions under which the sizes of an operation fit its rules.

    Attributes:
        equal: pairs of sizes that must be equal.
        positive: sizes that must be at least 1.
    """

    equal: tuple[tuple[Dim, Dim], ...] = ()
    positive: tuple[Dim, ...] = ()


ALWAYS = Fit()
"""The conditions of an operation whose sizes fit in all runs."""


def fit_of(operation: Operation) -> Fit | None:
    """Return the conditions under which an operation's sizes fit its rules.

    The operation's types must be inferred, so rules about static and named dimensions already hold.

    Returns:
        `None` if a `Fit` cannot express the conditions, or these are not known.
    """
    rule = _FIT_RULES.get(type(operation))
    read = [operand for operand in operation.inputs if operand is not None]
    if rule is None or any(operand.type.shape is None for operand in read):
        return None
    if not all(map(_has_all_scales, [*read, *operation.outputs])):
        return None
    try:
        return rule(operation)
    except (ComputedParameter, UnknownRank):
        return None


def _has_all_scales(operand: Operand) -> bool:
    """Return whether an operand is quantized per tensor, or along a static axis."""
    quantization, shape = operand.type.quantization, operand.type.shape
    if quantization is None or quantization.axis is None:
        return True
    return shape is not None and isinstance(shape[quantization.axis % len(shape)], int)


def _fit(equal: Iterable[tuple[Dim, Dim]] = (), positive: Iterable[Dim] = ()) -> Fit:
    """Return the conditions that are not known to hold."""
    return Fit(
        tuple(dict.fromkeys((one, other) for one, other in equal if one != other)),
        tuple(dict.fromkeys(size for size in positive if not isinstance(size, int) or size < 1)),
    )


def _always_if(fits: bool) -> Fit | None:
    return ALWAYS if fits else None


def _concat(operation: Concat) -> Fit:
    shapes = [_shape(part) for part in operation.parts]
    axis = operation.axis % len(shapes[0])
    return _fit(
        pair
        for one, other in pairwise(shapes)
        for pair in zip(_without(one, axis), _without(other, axis), strict=True)
    )


def _convolution(operation: convolution.Conv | convolution.ConvTranspose) -> Fit | None:
    """Require positive input and output sizes: otherwise there is no window."""
    image, *parameter_shapes = (_shape(o) for o in operation.inputs if o is not None)
    if not isinstance(image[1], int) or not all(map(_is_known, parameter_shapes)):
        return None
    output_shape = operation.infer_shape()
    return _fit(positive=(*image[2:], *output_shape[2:]))


def _gather_nd(operation: GatherND) -> Fit | None:
    input_shape, index_shape = _shape(operation.input), _shape(operation.indices)
    batch = operation.batch_dims
    if not isinstance(index_shape[-1], int):
        return None
    return _fit(zip(input_shape[:batch], index_shape[:batch], strict=True))


def _recurrent(operation: RNN | GRU | LSTM) -> Fit:
    equal = [
        pair
        for slot, expected in operation.wanted_shapes().items()
        if (operand := operation.operand(slot)) is not None
        for pair in zip(_shape(operand), expected, strict=True)
    ]
    return _fit(equal, _shape(operation.input)[:1])


def _quantization(operation: Quantize | Dequantize) -> Fit:
    """Require nothing: `fit_of` has checked the scales."""
    return ALWAYS


def _channel_normalization(operation: Operation) -> Fit | None:
    image, *parameter_shapes = (_shape(o) for o in operation.inputs if o is not None)
    return _always_if(isinstance(image[1], int) and all(map(_is_known, parameter_shapes)))


def _gather_elements(operation: GatherElements) -> Fit:
    input_shape, index_shape = _shape(operation.input), _shape(operation.indices)
    axis = operation.axis % len(input_shape)
    return _fit(zip(_without(input_shape, axis), _without(index_shape, axis), strict=True))


def _last_axes_normalization(operation: Operation) -> Fit | None:
    input_shape, *parameter_shapes = (_shape(o) for o in operation.inputs if o is not None)
    rank = max(map(len, parameter_shapes), default=0)
    return _always_if(
        all(map(_is_known, parameter_shapes)) and _is_known(input_shape[len(input_shape) - rank :])
    )


def _fully_connected(operation: FullyConnected) -> Fit | None:
    input_shape, *parameter_shapes = (_shape(o) for o in operation.inputs if o is not None)
    return _always_if(
        len(input_shape) == 2
        and isinstance(input_shape[1], int)
        and all(map(_is_known, parameter_shapes))
    )


def _pad(operation: Pad) -> Fit | None:
    """Require static sizes where elements are removed or repeated."""
    pads, mode = operation.pads, operation.mode
    if mode in (PadMode.NONE, PadMode.CONSTANT) and min(pads, default=0) >= 0:
        return ALWAYS
    sides = zip(_shape(operation.input), pads[::2], pads[1::2], strict=True)
    return _always_if(all(isinstance(size, int) for size, *both in sides if any(both)))


_FIT_RULES: Mapping[type[Operation], Callable[[Any], Fit | None]] = {
    Concat: _concat,
    **dict.fromkeys((convolution.Conv1D, convolution.Conv2D, convolution.Conv3D), _convolution),
    **dict.fromkeys(
        (convolution.Conv1DTranspose, convolution.Conv2DTranspose, convolution.Conv3DTranspose),
        _convolution,
    ),
    normalization.BatchNormalization: _channel_normalization,
    normalization.GroupNormalization: _channel_normalization,
    normalization.InstanceNormalization: _channel_normalization,
    normalization.LayerNormalization: _last_axes_normalization,
    normalization.RMSNormalization: _last_axes_normalization,
    FullyConnected: _fully_connected,
    GatherElements: _gather_elements,
    GatherND: _gather_nd,
    GRU: _recurrent,
    LSTM: _recurrent,
    RNN: _recurrent,
    DynamicQuantizeLSTM: _recurrent,
    Pad: _pad,
    Quantize: _quantization,
    Dequantize: _quantization,
}
"""The functions that return the conditions of operators' rules."""


def _shape(operand: Operand) -> Shape:
    assert operand.type.shape is not None, "fit_of checks it"
    return operand.type.shape


def _is_known(shape: Shape) -> bool:
    return all(isinstance(size, int) for size in shape)


def _without(shape: Shape, axis: int) -> tuple[Dim, ...]:
    return shape[:axis] + shape[axis + 1 :]
