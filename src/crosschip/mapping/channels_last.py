"""Channels that NNRt stores last; models here have them on axis 1.

Where a use says that its images have their channels on axis 1 too, nothing is done to them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, Operand, Quantization, TensorType, constant
from crosschip.ir.dataclass import dataclass
from crosschip.mapping.rules import rank_of
from crosschip.mapping.translation import Export, Import, Rule, refusal
from crosschip.ops.standard.layout import Transpose


def permuted(type_: TensorType, axes: Sequence[int]) -> TensorType:
    """A type with its axes in another order."""
    quantization = type_.quantization
    if type_.shape is None:
        return type_
    if quantization is not None and quantization.axis is not None:
        quantization = Quantization(
            quantization.scale, quantization.zero_point, tuple(axes).index(quantization.axis)
        )
    return TensorType(type_.element_type, tuple(type_.shape[axis] for axis in axes), quantization)


def transposed(builder: Builder, operand: Operand, axes: Sequence[int]) -> Operand:
    """An operand with its axes in another order; a constant stays one."""
    if list(axes) == sorted(axes):
        return operand
    if operand.value is None:
        return builder.add(Transpose, operand, tuple(axes))
    array = np.ascontiguousarray(np.transpose(np.asarray(operand.value), axes))
    return constant(array, operand.name, permuted(operand.type, axes).quantization)


def first_order(rank: int) -> tuple[int, ...]:
    """The axes of what has its channels last, in the order with channels on axis 1."""
    return tuple(range(rank)) if rank < 3 else (0, rank - 1, *range(1, rank - 1))


def last_order(rank: int) -> tuple[int, ...]:
    """The axes of what has its channels on axis 1, in the order with channels last."""
    return tuple(range(rank)) if rank < 3 else (0, *range(2, rank), 1)


@dataclass(frozen=True, slots=True)
class ChannelsLast(Rule):
    """An operand whose channels are its last axis there.

    Args:
        slot: the slot.
        always: whether they are so whatever the order of images is.
    """

    slot: str
    always: bool = False

    @property
    def text(self) -> str:
        return f"the channels of `{self.slot}` are its last axis"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None and (self.always or use.channels_last):
            axes = first_order(rank_of(operand, self.slot))
            operand = transposed(use.builder, operand, axes)
        if operand is not None:
            use.slots[self.slot] = operand

    def export_operand(self, use: Export) -> Operand | None:
        operand = use.operation.operand(self.slot)
        if operand is None:
            raise refusal(use, self.slot, "cannot be left out there")
        if operand.type.shape is None:
            raise refusal(use, self.slot, "must have a known number of axes there")
        if not (self.always or use.channels_last):
            return operand
        return transposed(use.before, operand, last_order(len(operand.type.shape)))


class ChannelsLastOutput(Rule):
    """The first output, whose channels are its last axis there."""

    slot = ""
    text = "the channels of the output are its last axis"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if not use.channels_last:
            return
        first, *rest = use.declared
        use.declared = [permuted(first, first_order(len(first.shape or ()))), *rest]

        def finish(outputs: tuple[Operand, ...]) -> tuple[Operand, ...]:
            axes = last_order(rank_of(outputs[0], "output"))
            return (transposed(use.builder, outputs[0], axes), *outputs[1:])

        use.finishing.append(finish)

    def export_operand(self, use: Export) -> Operand | None:
        type_ = use.outputs[0].type
        if type_.shape is None:
            raise refusal(use, "output", "must have a known number of axes there")
        rank = len(type_.shape)
        if rank > 2 and use.channels_last:
            stored = permuted(type_, last_order(rank))
            use.follow(0, stored, Transpose, first_order(rank))
        return None
