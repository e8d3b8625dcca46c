"""Latitude of definitions: how far a device may differ from the reference in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosschip.accuracy.spacings import spacings_near_one
from crosschip.conformance.unspecified import (
    REFUSABLE,
    RULES,
    alternatives,
    is_real,
)
from crosschip.ir import Array, ElementType, Model, Operand, Operation, TensorType
from crosschip.ops import Operator
from crosschip.ops.numerics.bilinear import coordinate_type
from crosschip.ops.standard.recurrent import Recurrent
from crosschip.ops.standard.sampling import GridSample


@dataclass(frozen=True, slots=True)
class Latitude:
    """Freedom that a definition leaves to the device in one run.

    Attributes:
        everything: whether nothing is compared, and an error will do as well.
        open: of each output, the elements that may be anything: a mask that broadcasts to it.
        others: what the elements of the first output may be instead; NaN where they may not.
        refusable: whether an error will do as well.
        spacings: how far from the reference any element of an output of reals may be, in spacings
            of its type at 1.
    """

    everything: bool = False
    open: Sequence[Array] = ()
    others: Sequence[Array] = ()
    refusable: bool = False
    spacings: float = 1.0

    def specified(self, index: int, made: Array, wanted: Array) -> Array:
        """The output that a device made, with what is expected where it may differ from that."""
        free = self.open[index] if self.open else np.False_
        if index == 0:
            for other in self.others:
                free = free | (made == other)
        return np.where(free, wanted, made).astype(made.dtype) if np.any(free) else made


def latitude(model: Model, inputs: Sequence[Array], expected: Sequence[Array]) -> Latitude:
    """The freedom of a device that runs a model of one operation.

    Args:
        model: the model.
        inputs: its inputs.
        expected: what the reference makes of them.
    """
    (operation,) = model.operations
    if not isinstance(operation, Operator):
        return Latitude()
    given = dict(zip(model.inputs.values(), inputs, strict=True))
    known = {o: Operand(o.name, o.type, array) for o, array in given.items()}
    operation = operation.with_inputs(tuple(o and known.get(o, o) for o in operation.inputs))
    arrays: dict[str, list[Array]] = {}
    for slot, operand in operation.filled():
        assert operand.value is not None, "it is known in a run"
        arrays.setdefault(slot.name, []).append(operand.value)
    with np.errstate(all="ignore"):
        rule = RULES.get(operation.type)
        open_ = False if rule is None else rule(operation, arrays, expected[0])
        if open_ is True:
            return Latitude(everything=True)
        masks = [np.asarray(open_)] * len(expected)
        may_refuse = REFUSABLE.get(operation.type)
        refusable = may_refuse is not None and may_refuse(operation, arrays, expected[0])
        if is_real(expected[0]):
            others, lost = alternatives(operation, arrays, expected[0])
            masks[1:] = [mask | lost for mask in masks[1:]]
            spacings = spacings_near_one(operation, arrays)
            return Latitude(False, masks, others, refusable, spacings)
    return Latitude(open=masks, refusable=refusable)


def counted_in(operation: Operation, output: TensorType) -> TensorType:
    """An output's type as to its precision: float32 where no more is asked of the weights."""
    if output.element_type is not ElementType.FLOAT64:
        return output
    weighed = operation.type in _WEIGHED_IN_FLOAT32 or (
        isinstance(operation, GridSample) and coordinate_type(operation.grid) is ElementType.FLOAT32
    )
    return replace(output, element_type=ElementType.FLOAT32) if weighed else output


def least_size(model: Model) -> float:
    """The size up to which all numbers of an operation's inputs are as exact as that one.

    The functions of a recurrent network go through numbers near 1 in every step, which are
    multiplied by their parameters, and each step adds to what the one before has made of that.
    """
    (operation,) = model.operations
    if not isinstance(operation, Recurrent):
        return 0.0
    return max(map(abs, (1.0, *operation.activation_alpha, *operation.activation_beta)))


_WEIGHED_IN_FLOAT32 = frozenset({"RESIZE_LINEAR", "RESIZE_CUBIC", "ROI_ALIGN"})
