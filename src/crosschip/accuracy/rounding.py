"""Differences that rounding explains, from the magnitudes of an operation's operands.

The relative error of a result has no bound even if each step is rounded correctly. The difference
of two numbers near 1 has the absolute error of those, and so has a sigmoid, which is computed from
`1 + exp(-x)`. So a result may differ by a few spacings of its operation's addends or intermediates.
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
"""The allowed difference of a result, in spacings of the operation's intermediates."""

_OUTLIER, _LARGE = 1e3, 9e3
"""The factor to small elements, and the magnitude, above which elements count as a mask's."""

_SUMS = frozenset(
    {
        *("ADD", "SUB", "SUM", "BIAS_ADD", "REDUCE_SUM", "REDUCE_MEAN", "CUM_SUM"),
        *(f"{kind}_POOL_{rank}D" for kind in ("AVERAGE", "ADAPTIVE_AVERAGE") for rank in (1, 2, 3)),
        *("RESIZE_LINEAR", "RESIZE_CUBIC"),
        *("GRID_SAMPLE", "SWISH", "GELU", "MISH", "HARD_SWISH", "ATTENTION"),
        "GROUP_QUERY_ATTENTION",
    }
)
"""The operators whose absolute error is that of their largest operand."""

_PRODUCTS = {
    "MUL": ("input0", "input1"),
    "MAT_MUL": ("x", "y"),
    "FULLY_CONNECTED": ("input", "weight"),
    **{f"CONV_{rank}D": ("input", "filter") for rank in (1, 2, 3)},
    **{f"CONV_{rank}D_TRANSPOSE": ("input", "filter") for rank in (1, 2, 3)},
    "DEFORMABLE_CONV_2D": ("input", "filter"),
}
"""The operators whose absolute error is that of the largest product of these two slots."""

_SIZED_NEAR_ONE = frozenset(
    {
        *("LAYER_NORMALIZATION", "GROUP_NORMALIZATION", "INSTANCE_NORMALIZATION", "RNN", "GRU"),
        *("LSTM", "DYNAMIC_QUANTIZE_LSTM", "MAT_MUL_N_BITS"),
    }
)
"""The operators with intermediates near 1, or larger ones if their operands are larger."""

_NEAR_ONE = _SIZED_NEAR_ONE | {
    *("SIGMOID", "TANH", "HARD_SIGMOID", "SOFTMAX", "LOG_SOFTMAX", "SOFTPLUS", "ERF", "LOG"),
    *("ELU", "SELU", "CELU", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "SINH", "COSH"),
    *("ASINH", "ACOSH", "ATANH", "REDUCE_LOG_SUM", "REDUCE_LOG_SUM_EXP", "YOLO_BOX"),
    "SKIP_LAYER_NORMALIZATION",
}
"""The operators with intermediates near 1."""

_CONTRACTIONS = frozenset(
    {
        *("RELU", "RELU6", "CLIP", "ABS", "NEG", "MAX", "MIN", "REDUCE_MAX"),
        *(f"{kind}_POOL_{rank}D" for kind in ("MAX", "ADAPTIVE_MAX") for rank in (1, 2, 3)),
        *("REDUCE_MIN", "LEAKY_RELU", "ASSIGN"),
    }
)
"""The operators whose absolute error is at most that of their operands."""

Values = Callable[[Operand], Any]
"""Returns the value of an operand in a run; `None` if it is unknown."""


def explained_by_rounding(
    model: Model, output: Operand, values: Values, precision: Precision = Precision.FLOAT32
) -> float:
    """Return the absolute difference of an element of an operand that rounding explains.

    It is `ROUNDINGS` spacings of the largest addend or intermediate of the operation that computes
    the operand. Operations that only move or clip elements are skipped. For other operators, and
    without values, it is 0.

    Args:
        model: the model.
        output: the operand.
        values: the values of operands in the same run.
        precision: the arithmetic for float32.
    """
    return max(
        (
            ROUNDINGS * epsilon_of(output.type, precision) * _magnitude(operation, values)
            for operation in _computing_operations(model, [output])
            if output.type.quantization is None
        ),
        default=0.0,
    )


class RoundingProbe:
    """The operands of a model that determine the rounding errors of its outputs.

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
            for operation in _computing_operations(model, model.outputs.values())
            for _, operand in _size_operands(operation)
            if not operand.is_constant and operand not in inputs
        )
        self._named = {f"operand{index}": operand for index, operand in enumerate(read)}
        self.exposed = (
            Model(model.name, model.inputs, model.operations, self._named) if read else None
        )

    def roundings(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, float]:
        """Return the absolute difference of each output that rounding explains, by name.

        Args:
            inputs: the inputs of a run.
            outputs: the outputs of `exposed` in that run; none if that is `None`.
        """
        values = {operand: inputs[name] for name, operand in self._model.inputs.items()}
        values |= {operand: outputs[name] for name, operand in self._named.items()}
        return {
            name: explained_by_rounding(self._model, operand, values.get)
            for name, operand in self._model.outputs.items()
        }


def is_ordinary(sizes: Array) -> Array:
    """Return which elements are not far larger than small ones, as those of masks are.

    Args:
        sizes: the absolute values of the elements.
    """
    positive = sizes[sizes > 0]
    if not positive.size:
        return np.ones(sizes.shape, bool)
    return np.asarray(sizes <= max(_LARGE, _OUTLIER * float(np.quantile(positive, 0.1))))


def _computing_operations(model: Model, outputs: Iterable[Operand]) -> Sequence[Operation]:
    """Return the operations that compute outputs, before those that only move or clip elements."""
    waiting, visited, computing = list(outputs), set[Operation](), list[Operation]()
    while waiting:
        operation = model.producers.get(waiting.pop())
        if operation is None or operation in visited:
            continue
        visited.add(operation)
        if isinstance(operation, Operator) and (operation.moves or operation.type in _CONTRACTIONS):
            waiting += [o for slot, o in operation.filled() if not slot.parameter]
        else:
            computing.append(operation)
    return computing


def _size_operands(operation: Operation) -> Sequence[tuple[str, Operand]]:
    """Return the tensors whose magnitudes determine the rounding error, with their slots.

    They are floats, except for quantized weights of networks. Most functions with intermediates
    near 1 need none.
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


def _magnitude(operation: Operation, values: Values) -> float:
    """Return the largest addend or intermediate of an operation; 0 if unknown."""
    arrays: dict[str, list[Array]] = {}
    for slot, operand in _size_operands(operation):
        value = operand.value if operand.is_constant else values(operand)
        if value is None:
            return 0.0
        arrays.setdefault(slot, []).append(np.asarray(value))
    if operation.type in _SUMS:
        return _max_abs(*(array for each in arrays.values() for array in each))
    if operation.type in _PRODUCTS:
        x, y = (_max_abs(arrays[slot][0]) for slot in _PRODUCTS[operation.type])
        return max(x * y, _max_abs(*arrays.get("bias", ())))
    if operation.type in _NEAR_ONE:
        assert isinstance(operation, Operator), "extensions have other types"
        return spacings_near_one(operation, arrays)
    return 0.0


def _max_abs(*arrays: Array) -> float:
    """Return the largest absolute value of finite ordinary elements; 0 if there are none."""
    if not arrays:
        return 0.0
    sizes = np.abs(np.concatenate([array.astype(np.float64).ravel() for array in arrays]))
    sizes = sizes[np.isfinite(sizes)]
    return float(sizes[is_ordinary(sizes)].max(initial=0.0))
