"""Shuffles of channels, which frameworks spell out as a transposition between two reshapes."""

from __future__ import annotations

from math import prod

from crosschip.ir import Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.blocks import ChannelShuffle
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.passes.base import Pass
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewriter import Rewriter

_SWAPPED = (0, 2, 1)
"""The order of the batch, the groups and the channels of a group."""


@dataclass(frozen=True)
class RecognizeShuffles(Pass):
    """Replaces `RESHAPE` → `TRANSPOSE` → `RESHAPE` by `CHANNEL_SHUFFLE`.

    It can be computed with channels last, unlike the reshapes.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for original in model.operations:
            operation = rewriter.resolved(original)
            shuffle = _shuffled(operation, rewriter) if isinstance(operation, Reshape) else None
            if shuffle is None:
                rewriter.keep(operation)
                continue
            inputs = ChannelShuffle.bind(operation.name, shuffle, {})
            output = ChannelShuffle(operation.name, inputs, operation.outputs)
            rewriter.emit(output.standing_for(operation))
        return RemoveUnused().rewrite(rewriter.finish())


def _shuffled(last: Reshape, rewriter: Rewriter) -> tuple[Operand, int] | None:
    """Return the image and the number of groups that a last reshape shuffles, or `None`."""
    middle = rewriter.producer(last.input)
    if not isinstance(middle, Transpose):
        return None
    first = rewriter.producer(middle.input)
    if not isinstance(first, Reshape):
        return None
    image, split = first.input.type.static_shape, middle.input.type.static_shape
    if image is None or split is None or last.outputs[0].type.static_shape != image:
        return None
    if first.input.type.quantization != last.outputs[0].type.quantization or len(image) < 3:
        return None
    groups = split[1] if len(split) > 2 else 0
    rank = len(split)
    perm = tuple(axis % rank for axis in middle.perm)
    pixels = image[2:] if rank == len(image) + 1 else (prod(image[2:]),)
    if split != (image[0], groups, image[1] // max(groups, 1), *pixels):
        return None
    return (first.input, groups) if perm == (*_SWAPPED, *range(3, rank)) else None
