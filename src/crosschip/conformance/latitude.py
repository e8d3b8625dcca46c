"""Latitude of definitions: how far a device may differ from the reference in one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosschip.conformance.tolerance import epsilon
from crosschip.conformance.unspecified import (
    REFUSABLE,
    RULES,
    WEIGHTS,
    Arrays,
    alternatives,
    is_real,
)
from crosschip.ir import Array, ElementType, Model, Operand, Operation, TensorType
from crosschip.ops import Operator
from crosschip.ops.numerics.bilinear import type_of_places
from crosschip.ops.standard.activation import Celu, Elu, Selu
from crosschip.ops.standard.matrix import MatMulNBits
from crosschip.ops.standard.normalization import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
)
from crosschip.ops.standard.recurrent import DynamicQuantizeLSTM, Recurrent
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
            spacings = _spacings(operation, arrays)
            return Latitude(False, masks, others, refusable, spacings)
    return Latitude(open=masks, refusable=refusable)


def counted_in(operation: Operation, output: TensorType) -> TensorType:
    """An output's type as to its precision: float32 where no more is asked of the weights."""
    if output.element_type is not ElementType.FLOAT64:
        return output
    weighed = operation.type in _WEIGHED_IN_FLOAT32 or (
        isinstance(operation, GridSample) and type_of_places(operation.grid) is ElementType.FLOAT32
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


_STEPS = 4.0
"""The roundings of numbers near 1 in one step of a recurrent network."""

_WEIGHED_IN_FLOAT32 = frozenset({"RESIZE_LINEAR", "RESIZE_CUBIC", "ROI_ALIGN"})
_GATED = frozenset({"SWISH", "GELU", "MISH"})

Normalization = LayerNormalization | GroupNormalization | InstanceNormalization


def _spacings(operation: Operator, arrays: Arrays) -> float:
    """The spacings by which a result may be off, whatever its size.

    One, and where a factor of the input, or what a parameter is multiplied by, is as exact as 1, as
    many as these are large. A step of a recurrent network adds and multiplies several such numbers
    and its weights.
    A variance that is computed in one pass has lost some digits, times what scales it. A factor
    that may be held in fewer bits is off by half a step of them.
    """
    if isinstance(operation, Elu | Celu | Selu):
        gamma = operation.gamma if isinstance(operation, Selu) else 1.0
        return max(1.0, abs(operation.alpha * gamma))
    if isinstance(operation, DynamicQuantizeLSTM):
        return max(1.0, _byte_steps(arrays))
    if isinstance(operation, Recurrent):
        weights = (_largest(a) for slot in WEIGHTS for a in arrays.get(slot, ()))
        return _STEPS * max([1.0, *weights])
    if operation.type in _GATED:
        return max([1.0, *(_largest(array) for each in arrays.values() for array in each)])
    if isinstance(operation, Normalization):
        scales = (_largest(array) for array in arrays.get("scale", ()))
        return max([1.0, *scales]) * max(1.0, _lost(operation, arrays["input"][0]))
    if isinstance(operation, MatMulNBits):
        return max(1.0, _coarse(operation, arrays))
    return 1.0


def _byte_steps(arrays: Arrays) -> float:
    """The error of gates where all that goes into them is a step of a byte off, in spacings."""
    given = (array for slot in ("input", "initial_hidden") for array in arrays.get(slot, ()))
    reals = max([1.0, *map(_largest, given)])
    weights = max(
        255 * _largest(arrays[f"{slot}_scale"][0]) for slot in ("weight", "recurrence_weight")
    )
    steps, _, size = arrays["input"][0].shape
    terms = size + arrays["recurrence_weight"][0].shape[2]
    return float(steps * terms * weights * 2 * reals / 255 / epsilon(ElementType.FLOAT32))


def _coarse(operation: MatMulNBits, arrays: Arrays) -> float:
    """The error of a product whose one factor is held in as few bits as it may, in spacings."""
    step = {2: 2.0**-10, 3: 2.0**-7, 4: 1 / 127}.get(operation.accuracy_level, 0.0)
    x = arrays["x"][0]
    zeros = arrays.get("zero_point", ())
    furthest = float(2**operation.bits) + (_largest(zeros[0]) if zeros else 0.0)
    weight = furthest * _largest(arrays["scale"][0])
    error = step / 2 * _largest(x) * weight * operation.size
    return error / epsilon(operation.outputs[0].type.element_type)


def _lost(operation: Normalization, input: Array) -> float:
    """The digits lost in a variance that is computed as `mean(x * x) - mean(x) ** 2`, at most."""
    if isinstance(operation, LayerNormalization):
        rows = math.prod(input.shape[: operation.begin_norm_axis % input.ndim])
    else:
        each = operation.groups if isinstance(operation, GroupNormalization) else input.shape[1]
        rows = input.shape[0] * each
    if input.size == 0:
        return 1.0
    groups = input.astype(np.float64).reshape(rows, -1)
    return _largest(np.square(groups).max(1) / (groups.var(1) + operation.epsilon))


def _largest(array: Array) -> float:
    """The largest of the finite numbers, by size."""
    wide = np.abs(array.astype(np.float64))
    return float(wide[np.isfinite(wide)].max(initial=0.0))
