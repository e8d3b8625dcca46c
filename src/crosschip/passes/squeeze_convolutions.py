"""Conversion of two-dimensional convolutions of height 1 to one-dimensional ones."""

from __future__ import annotations

from typing import Any

from crosschip.ir import Model, Operand, Operation, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ir.elements import Computed, Elements
from crosschip.ops import Operator
from crosschip.ops.standard.convolution import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose
from crosschip.ops.standard.layout import Squeeze, Unsqueeze
from crosschip.passes.base import Pass
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewriter import Rewriter

_HEIGHT, _IMAGE_AXES = 2, 4
_PER_AXIS = {"pads": 2, "strides": 1, "dilations": 1, "output_padding": 1, "output_shape": 1}
"""The number of elements per spatial axis in each slot."""


@dataclass(frozen=True)
class SqueezeConvolutions(Pass):
    """Replaces `UNSQUEEZE`, `CONV_2D` and `SQUEEZE` of the height by one `CONV_1D`.

    Transposed convolutions are replaced alike. Paddle exports one-dimensional convolutions in this
    form. The filter must be constant with height 1, the height not padded, and nothing quantized.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for operation in map(rewriter.resolved, model.operations):
            source = _squeezed_convolution(operation, rewriter)
            if source is None:
                rewriter.keep(operation)
                continue
            rewriter.withdraw(source)
            rewriter.emit(_convolution_1d(source, operation, rewriter))
        return RemoveUnused().rewrite(rewriter.finish())


def _squeezed_convolution(
    operation: Operation, rewriter: Rewriter
) -> Conv2D | Conv2DTranspose | None:
    """Return the convolution between an `UNSQUEEZE` and a `SQUEEZE` of the height, or `None`."""
    if not isinstance(operation, Squeeze) or not _affects_height(operation):
        return None
    source = rewriter.producer(operation.input)
    if not isinstance(source, Conv2D | Conv2DTranspose):
        return None
    shape = source.filter.type.static_shape
    if not source.filter.is_constant or shape is None or shape[_HEIGHT] != 1:
        return None
    if not all(o.is_constant for slot, o in source.named_inputs() if slot in _PER_AXIS):
        return None
    if any(source.pads[:2]) or any(o and o.type.quantization for o in source.inputs):
        return None
    image = rewriter.producer(source.input)
    is_flat = isinstance(image, Unsqueeze) and _affects_height(image)
    return source if is_flat and rewriter.used_once(operation.input) else None


def _affects_height(operation: Squeeze | Unsqueeze) -> bool:
    axes = operation.operand("axes")
    is_known = axes is not None and axes.is_constant
    return is_known and [axis % _IMAGE_AXES for axis in operation.axes] == [_HEIGHT]


def _convolution_1d(
    source: Conv2D | Conv2DTranspose, last: Operation, rewriter: Rewriter
) -> Operator:
    """Return the one-dimensional convolution with the outputs of the last operation."""
    image = rewriter.producer(source.input)
    assert isinstance(image, Unsqueeze), "_squeezed_convolution checked it"
    arguments: dict[str, Any] = dict(source.named_inputs())
    arguments |= {"input": image.input, "filter": _without_height(source.filter)}
    for slot, count in _PER_AXIS.items():
        if slot in arguments:
            arguments[slot] = getattr(source, slot)[count:]
    operator = Conv1D if isinstance(source, Conv2D) else Conv1DTranspose
    bound = operator.bind(source.name, (), arguments)
    return operator(source.name, bound, last.outputs).standing_for(source, last)


def _without_height(filter: Operand) -> Operand:
    content, shape = filter.content, filter.type.static_shape
    assert content is not None, "it is constant"
    assert shape is not None, "it is constant"
    if not isinstance(content, Elements):
        return constant(content.squeeze(_HEIGHT), filter.name)
    squeezed = (*shape[:_HEIGHT], *shape[_HEIGHT + 1 :])
    elements = Computed(content.dtype, squeezed, lambda: content.copy().squeeze(_HEIGHT))
    return constant(elements, filter.name)
