"""Differences that rounding explains, from the sizes of what an operation read.

Relative to itself, a result may be off by any amount although each step was rounded right: a
difference of numbers near 1 is as exact as these, and so is a sigmoid, which is computed from
`1 + exp(-x)`. So besides a part of itself, a result may be off by a few spacings of the numbers
that its operation adds up or goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.accuracy.epsilon import epsilon_of
from crosschip.accuracy.spacings import spacings_near_one
from crosschip.hal import Precision
from crosschip.ir import Array, Model, Operand, Operation
from crosschip.ir.types import ALL_TYPES, FLOATS
from crosschip.ops import Operator

ROUNDINGS = 4
"""The spacings of the numbers that an operation goes through by which its result may be off."""

_OUTLIER, _LARGE = 1e3, 9e3
"""Elements that are so many times the small ones, and above this, are those of masks."""

_SUMS = frozenset(
    {
        *("ADD", "SUB", "SUM", "BIAS_ADD", "REDUCE_SUM", "REDUCE_MEAN", "CUM_SUM"),
        *(f"{kind}_POOL_{rank}D" for kind in ("AVERAGE", "ADAPTIVE_AVERAGE") for rank in (1, 2, 3)),
        *("RESIZE_LINEAR", "RESIZE_CUBIC"),
        *("GRID_SAMPLE", "SWISH", "GELU", "MISH", "HARD_SWISH", "ATTENTION"),
        "GROUP_QUERY_ATTENTION",
    }
)
"""The operators whose result is as exact as the largest number that they read."""

_PRODUCTS = {
    "MUL": ("input0", "input1"),
    "MAT_MUL": ("x", "y"),
    "FULLY_CONNECTED": ("input", "weight"),
    **{f"CONV_{rank}D": ("input", "filter") for rank in (1, 2, 3)},
    **{f"CONV_{rank}D_TRANSPOSE": ("input", "filter") for rank in (1, 2, 3)},
    "DEFORMABLE_CONV_2D": ("input", "filter"),
}
"""The operators whose result is as exact as the largest product of their factors, with these."""

_SIZED_NEAR_ONE = frozenset(
    {
        *("LAYER_NORMALIZATION", "GROUP_NORMALIZATION", "INSTANCE_NORMALIZATION", "RNN", "GRU"),
        *("LSTM", "DYNAMIC_QUANTIZE_LSTM", "MAT_MUL_N_BITS"),
    }
)
"""The operators that go through numbers near 1, and through larger ones if they read such."""

_NEAR_ONE = _SIZED_NEAR_ONE | {
    *("SIGMOID", "TANH", "HARD_SIGMOID", "SOFTMAX", "LOG_SOFTMAX", "SOFTPLUS", "ERF", "LOG"),
    *("ELU", "SELU", "CELU", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "SINH", "COSH"),
    *("ASINH", "ACOSH", "ATANH", "REDUCE_LOG_SUM", "REDUCE_LOG_SUM_EXP", "YOLO_BOX"),
    "SKIP_LAYER_NORMALIZATION",
}
"""The operators that go through numbers near 1, whatever they read."""

_CONTRACTIONS = frozenset(
    {
        *("RELU", "RELU6", "CLIP", "ABS", "NEG", "MAX", "MIN", "REDUCE_MAX"),
        *(f"{kind}_POOL_{rank}D" for kind in ("MAX", "ADAPTIVE_MAX") for rank in (1, 2, 3)),
        *("REDUCE_MIN", "LEAKY_RELU", "ASSIGN"),
    }
)
"""The operators whose result is off by no more than what they read, besides those that move it."""

Values = Callable[[Operand], Any]
"""The value of an operand in a run; `None` where it is not known."""


def explained_by_rounding(
    model: Model, output: Operand, values: Values, precision: Precision = Precision.FLOAT32
) -> float:
    """The difference of any element of an operand that rounding explains, in its own unit.

    It is `ROUNDINGS` spacings of the largest number that the operation that makes it adds up, or of
    1 where it goes through that; what only moves elements or cuts them off is looked through. Other
    operators are as exact as their result, and so are operators of which nothing is known: 0.

    Args:
        model: the model.
        output: the operand.
        values: of operands that operations read, in the same run.
        precision: the arithmetic for float32.
    """
    return max(
        (
            ROUNDINGS * epsilon_of(output.type, precision) * _size(operation, values)
            for operation in _computing(model, [output])
            if output.type.quantization is None
        ),
        default=0.0,
    )


class RoundingProbe:
    """The operands of a model that tell what rounding explains of its outputs.

    Args:
        model: the model.

    Attributes:
        exposed: the model with these operands as its outputs; `None` if there are none.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        inputs = set(model.inputs.values())
        read = dict.fromkeys(
            operand
            for operation in _computing(model, model.outputs.values())
            for _, operand in _sized(operation)
            if not operand.is_constant and operand not in inputs
        )
        self._named = {f"operand{index}": operand for index, operand in enumerate(read)}
        self.exposed = (
            Model(model.name, model.inputs, model.operations, self._named) if read else None
        )

    def roundings(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, float]:
        """The difference of each output of the model that rounding explains, by name.

        Args:
            inputs: of a run.
            outputs: of `exposed` in that run; without any where that is `None`.
        """
        values = {operand: inputs[name] for name, operand in self._model.inputs.items()}
        values |= {operand: outputs[name] for name, operand in self._named.items()}
        return {
            name: explained_by_rounding(self._model, operand, values.get)
            for name, operand in self._model.outputs.items()
        }


def ordinary(sizes: Array) -> Array:
    """Tell which elements are not far larger than the small ones, as those of masks are.

    Args:
        sizes: the elements' absolute values.
    """
    positive = sizes[sizes > 0]
    if not positive.size:
        return np.ones(sizes.shape, bool)
    return np.asarray(sizes <= max(_LARGE, _OUTLIER * float(np.quantile(positive, 0.1))))


def _computing(model: Model, outputs: Iterable[Operand]) -> Sequence[Operation]:
    """The operations that compute what outputs hold, behind those that move it or cut it off."""
    waiting, seen, computing = list(outputs), set[Operation](), list[Operation]()
    while waiting:
        operation = model.producers.get(waiting.pop())
        if operation is None or operation in seen:
            continue
        seen.add(operation)
        if isinstance(operation, Operator) and (operation.moves or operation.type in _CONTRACTIONS):
            waiting += [o for slot, o in operation.filled() if not slot.parameter]
        else:
            computing.append(operation)
    return computing


def _sized(operation: Operation) -> Sequence[tuple[str, Operand]]:
    """The tensors whose sizes tell what rounding explains of a result, with their slots.

    They are of reals, but for the weights of networks in few bits. Of most functions that go
    through numbers near 1 no sizes are needed.
    """
    if not isinstance(operation, Operator):
        return ()
    if operation.type in _SIZED_NEAR_ONE:
        types = ALL_TYPES
    elif operation.type in _SUMS or operation.type in _PRODUCTS:
        types = FLOATS
    else:
        return ()
    return [
        (slot.name, operand)
        for slot, operand in operation.filled()
        if not slot.parameter and operand.type.element_type in types
    ]


def _size(operation: Operation, values: Values) -> float:
    """The largest number that an operation adds up or goes through; 0 if that is not known."""
    arrays: dict[str, list[Array]] = {}
    for slot, operand in _sized(operation):
        value = operand.value if operand.is_constant else values(operand)
        if value is None:
            return 0.0
        arrays.setdefault(slot, []).append(np.asarray(value))
    if operation.type in _SUMS:
        return _largest(*(array for each in arrays.values() for array in each))
    if operation.type in _PRODUCTS:
        one, other = (_largest(arrays[slot][0]) for slot in _PRODUCTS[operation.type])
        return max(one * other, _largest(*arrays.get("bias", ())))
    if operation.type in _NEAR_ONE:
        assert isinstance(operation, Operator), "those of the table are"
        return spacings_near_one(operation, arrays)
    return 0.0


def _largest(*arrays: Array) -> float:
    """The largest ordinary element of all arrays that is finite, by size; 0 if there is none."""
    if not arrays:
        return 0.0
    sizes = np.abs(np.concatenate([array.astype(np.float64).ravel() for array in arrays]))
    sizes = sizes[np.isfinite(sizes)]
    return float(sizes[ordinary(sizes)].max(initial=0.0))
