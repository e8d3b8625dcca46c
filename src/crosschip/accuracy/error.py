"""The error of a result against an exact one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array

UNIT = "Euclidean norm of the difference, relative to that of the exact output"
"""The unit of an error, in words."""

_ARRAYS = (np.ndarray, np.generic)

Outputs = Mapping[str, Any]
"""The outputs of one run, by name."""


def error_of(
    results: Sequence[Outputs],
    exact: Sequence[Outputs],
    roundings: Sequence[Mapping[str, float]] = (),
) -> float:
    """The largest relative error of any output in any run.

    Args:
        results: the outputs of each run.
        exact: what they should be.
        roundings: of each run, the difference of an element of each output that rounding explains
            (`crosschip.accuracy.rounding`), in the output's own unit; left out, it is 0.
    """
    explained = roundings or [{}] * len(exact)
    errors = [
        relative_error(outputs[name], value, rounding.get(name, 0.0))
        for outputs, right, rounding in zip(results, exact, explained, strict=True)
        for name, value in right.items()
    ]
    return max(errors, default=0.0)


def relative_error(result: Any, exact: Any, rounding: float = 0.0) -> float:
    """The relative error of one output.

    That of a tensor of reals is |result - exact| / |exact|, with the Euclidean norm over all
    elements: the noise that a computation adds, in units of the signal. Elements that differ by no
    more than `rounding` count as equal. Where `exact` has an element that is not finite, `result`
    must have the same. Integers, and what is no number, count as their share of elements that
    differ; an output that is no array has no error or an infinite one.

    Args:
        result: the output as computed.
        exact: the output as it should be.
        rounding: the difference of an element that rounding explains.

    Returns:
        The error; infinity where the shape differs or `result` is not finite.
    """
    if not isinstance(result, _ARRAYS) or not isinstance(exact, _ARRAYS):
        return 0.0 if equal(result, exact) else math.inf
    computed, right = np.asarray(result), np.asarray(exact)
    if computed.shape != right.shape:
        return math.inf
    if right.dtype.kind not in "fcV":  # NumPy knows bfloat16 and the like as void
        return float(np.mean(computed != right)) if right.size else 0.0
    computed, right = computed.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(computed[~finite], right[~finite], equal_nan=True):
        return math.inf
    difference = computed[finite] - right[finite]
    difference[np.abs(difference) <= rounding] = 0.0
    noise, signal = _norm(difference), _norm(right[finite])
    if not math.isfinite(noise):
        return math.inf
    return noise / signal if signal else (math.inf if noise else 0.0)


def equal(result: Any, exact: Any) -> bool:
    """Tell whether two outputs of any kind are the same."""
    try:
        if isinstance(exact, np.ndarray):
            return bool(np.array_equal(result, exact))
        return bool(result == exact)
    except ValueError:  # arrays in lists, which are compared element by element
        return repr(result) == repr(exact)


def _norm(values: Array) -> float:
    return float(np.sqrt(np.sum(np.square(values))))
