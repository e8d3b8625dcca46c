"""Latitude: how far a device may differ from the reference where a definition leaves it open."""

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
    """The differences from the reference that a definition allows in one run.

    Attributes:
        everything: whether nothing is compared and errors are accepted.
        open: for each output, a mask (broadcastable) of elements that may have any value.
        others: alternative values of the first output's elements; NaN where there is none.
        refusable: whether an error is accepted.
        spacings: the accepted distance of float outputs from the reference, in spacings of the
            type at 1.
    """

    everything: bool = False
    open: Sequence[Array] = ()
    others: Sequence[Array] = ()
    refusable: bool = False
    spacings: float = 1.0

    def specified(self, index: int, actual: Array, wanted: Array) -> Array:
        """Return the device's output with the expected elements wherever it may differ."""
        free = self.open[index] if self.open else np.False_
        if index == 0:
            for other in self.others:
                free = free | (actual == other)
        return np.where(free, wanted, actual).astype(actual.dtype) if np.any(free) else actual


def latitude(model: Model, inputs: Sequence[Array], expected: Sequence[Array]) -> Latitude:
    """Return the latitude of a model of one operation in one run.

    Args:
        model: the model.
        inputs: its inputs.
        expected: the reference's outputs.
    """
    (operation,) = model.operations
    if not isinstance(operation, Operator):
        return Latitude()
    input_arrays = dict(zip(model.inputs.values(), inputs, strict=True))
    known = {o: Operand(o.name, o.type, array) for o, array in input_arrays.items()}
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
        enlarged = np.broadcast_shapes(np.shape(open_), expected[0].shape)
        assert enlarged == expected[0].shape, f"the mask of {operation.type}'s rule has extra axes"
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
    """Return the type whose precision bounds an output: float32 if float64 has float32 weights."""
    if output.element_type is not ElementType.FLOAT64:
        return output
    weighed = operation.type in _WEIGHED_IN_FLOAT32 or (
        isinstance(operation, GridSample) and coordinate_type(operation.grid) is ElementType.FLOAT32
    )
    return replace(output, element_type=ElementType.FLOAT32) if weighed else output


def least_size(model: Model) -> float:
    """Return the magnitude below which the errors of an operation do not decrease.

    In every step of a recurrent network numbers near 1 are multiplied by parameters, and rounding
    errors add up over the steps.
    """
    (operation,) = model.operations
    if not isinstance(operation, Recurrent):
        return 0.0
    return max(map(abs, (1.0, *operation.activation_alpha, *operation.activation_beta)))


_WEIGHED_IN_FLOAT32 = frozenset({"RESIZE_LINEAR", "RESIZE_CUBIC", "ROI_ALIGN"})
