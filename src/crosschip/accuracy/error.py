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
    """Return the largest relative error of any output in any run.

    Args:
        results: the outputs of each run.
        exact: the exact outputs of each run.
        roundings: for each run, the absolute difference of an element of each output that rounding
            explains (`crosschip.accuracy.rounding`), by name; 0 by default.
    """
    explained = roundings or [{}] * len(exact)
    errors = [
        relative_error(outputs[name], value, rounding.get(name, 0.0))
        for outputs, right, rounding in zip(results, exact, explained, strict=True)
        for name, value in right.items()
    ]
    return max(errors, default=0.0)


def relative_error(result: Any, exact: Any, rounding: float = 0.0) -> float:
    """Return the relative error of one output.

    For floats it is |result - exact| / |exact|, with the Euclidean norm over all elements. Elements
    that differ by at most `rounding` count as equal. Elements that are not finite in `exact` must
    be equal in `result`. For integers and other elements it is the share of different elements. For
    an output that is no array it is 0 or infinite.

    Args:
        result: the computed output.
        exact: the exact output.
        rounding: the absolute difference of an element that rounding explains.

    Returns:
        The error; infinity if the shapes differ or `result` is not finite.
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
    """Return whether two outputs of any kind are equal."""
    try:
        if isinstance(exact, np.ndarray):
            return bool(np.array_equal(result, exact))
        return bool(result == exact)
    except ValueError:  # arrays in lists, which are compared element by element
        return repr(result) == repr(exact)


def _norm(values: Array) -> float:
    return float(np.sqrt(np.sum(np.square(values))))
