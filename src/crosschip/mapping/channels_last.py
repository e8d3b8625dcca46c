"""Rules that convert between NNRt's channels-last images and channels on axis 1.

They change nothing if `channels_last` of the import or export is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosschip.ir import Builder, Operand, TensorType, constant
from crosschip.ir.dataclass import dataclass
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    rank_of,
    refusal,
)
from crosschip.ops.standard.layout import Transpose


def transpose_type(type_: TensorType, axes: Sequence[int]) -> TensorType:
    """Return a type with permuted axes, also of its quantization."""
    quantization = type_.quantization
    if type_.shape is None:
        return type_
    if quantization is not None and quantization.axis is not None:
        quantization = replace(quantization, axis=tuple(axes).index(quantization.axis))
    return TensorType(type_.element_type, tuple(type_.shape[axis] for axis in axes), quantization)


def transpose(builder: Builder, operand: Operand, axes: Sequence[int]) -> Operand:
    """Permute the axes of an operand; a constant stays a constant."""
    if list(axes) == sorted(axes):
        return operand
    if operand.value is None:
        return builder.add(Transpose, operand, tuple(axes))
    array = np.ascontiguousarray(np.transpose(np.asarray(operand.value), axes))
    return constant(array, operand.name, transpose_type(operand.type, axes).quantization)


def channels_first_axes(rank: int) -> tuple[int, ...]:
    """Return the permutation from channels last to channels on axis 1."""
    return tuple(range(rank)) if rank < 3 else (0, rank - 1, *range(1, rank - 1))


def channels_last_axes(rank: int) -> tuple[int, ...]:
    """Return the permutation from channels on axis 1 to channels last."""
    return tuple(range(rank)) if rank < 3 else (0, *range(2, rank), 1)


@dataclass(frozen=True, slots=True)
class ChannelsLast(Rule):
    """An operand that the other system stores with its channels last.

    Args:
        slot: the slot.
        always: whether to convert it also if `channels_last` is false.
    """

    slot: str
    always: bool = False

    @property
    def text(self) -> str:
        return f"the channels of `{self.slot}` are its last axis"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None and (self.always or ctx.channels_last):
            axes = channels_first_axes(rank_of(operand, self.slot))
            operand = transpose(ctx.builder, operand, axes)
        if operand is not None:
            ctx.slots[self.slot] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        if operand is None:
            raise refusal(ctx, self.slot, "cannot be omitted in the target")
        if operand.type.shape is None:
            raise refusal(ctx, self.slot, "must have a known number of axes in the target")
        if not (self.always or ctx.channels_last):
            return operand
        return transpose(ctx.before, operand, channels_last_axes(len(operand.type.shape)))


class ChannelsLastOutput(Rule):
    """The first output, which the other system stores with its channels last."""

    slot = ""
    text = "the channels of the output are its last axis"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if not ctx.channels_last:
            return
        first, *rest = ctx.declared
        ctx.declared = [transpose_type(first, channels_first_axes(len(first.shape or ()))), *rest]

        def finish(outputs: tuple[Operand, ...]) -> tuple[Operand, ...]:
            axes = channels_last_axes(rank_of(outputs[0], "output"))
            return (transpose(ctx.builder, outputs[0], axes), *outputs[1:])

        ctx.postprocessing.append(finish)

    def export_operand(self, ctx: Export) -> Operand | None:
        type_ = ctx.outputs[0].type
        if type_.shape is None:
            raise refusal(ctx, "output", "must have a known number of axes in the target")
        rank = len(type_.shape)
        if rank > 2 and ctx.channels_last:
            stored = transpose_type(type_, channels_last_axes(rank))
            ctx.replace_output(0, stored, Transpose, channels_first_axes(rank))
        return None
