"""The error of a result against an exact one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.ir import Array

Outputs = Mapping[str, Array]


def error_of(made: Sequence[Outputs], exact: Sequence[Outputs]) -> float:
    """The largest relative error of any output for any sample.

    That of a tensor of reals is |made - exact| / |exact|, with Euclid's norm over all its elements:
    the noise that the computation adds, in units of the signal. Where `exact` has an element that
    is not finite, `made` must have the same. Integers, and what is no number, count as their share
    of elements that differ.

    Returns:
        The error; infinity where a shape differs or `made` is not finite.
    """
    errors = [
        _of_tensor(np.asarray(ours[name]), np.asarray(right))
        for ours, theirs in zip(made, exact, strict=True)
        for name, right in theirs.items()
    ]
    return max(errors, default=0.0)


def _of_tensor(made: Array, exact: Array) -> float:
    if made.shape != exact.shape:
        return math.inf
    if exact.dtype.kind not in "fcV":  # NumPy knows bfloat16 and the like as void
        return float(np.mean(made != exact)) if exact.size else 0.0
    ours, right = made.astype(np.float64), exact.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(ours[~finite], right[~finite], equal_nan=True):
        return math.inf
    difference, size = _norm(ours[finite] - right[finite]), _norm(right[finite])
    if not math.isfinite(difference):
        return math.inf
    return difference / size if size else (math.inf if difference else 0.0)


def _norm(values: Array) -> float:
    return float(np.sqrt(np.sum(np.square(values))))
