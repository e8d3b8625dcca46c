"""Two answers to the same question: how far they lie apart, and how far they may.

An answer is what an engine returned for each output: an array, or what is no tensor (a sequence, a
map, a list of maps), which is taken apart into arrays first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array

_FLOAT32 = 1e-3
"""Of the largest value that is expected."""

_FLOAT16_STEPS = 4
"""Steps of the type's precision that shorter types may differ by."""

_ROUNDED_TWICE = float(np.finfo(np.float32).eps)
"""What two products of float32 differ by that are the same real number, as a share of it."""

_SPREAD = 2.0
"""Two computations that each lie within a spread of the truth lie within twice it."""


def flat(answer: Any) -> list[Array]:
    """The arrays that an output consists of; a map gives its keys and its values."""
    if isinstance(answer, Mapping):
        return [np.array(list(answer)), np.array(list(answer.values()))]
    if isinstance(answer, list) and answer and isinstance(answer[0], Mapping):
        return [
            np.array([list(one) for one in answer]),
            np.array([list(one.values()) for one in answer]),
        ]
    if isinstance(answer, list | tuple):
        return [array for one in answer for array in flat(one)]
    array = np.asarray(answer)
    return [array.astype(str) if array.dtype.kind == "O" else array]


def difference(computed: Sequence[Array], expected: Sequence[Array]) -> list[float]:
    """How far each array lies from the expected one.

    Returns:
        For real numbers the largest difference as a share of the largest value, for integers of
        eight bits the largest one, for all else the share of the elements that differ; infinite
        if the shapes differ, or if one is not a number and the other is.
    """
    if len(computed) != len(expected):
        return [math.inf] * max(len(expected), 1)
    return list(map(_apart, computed, expected))


def tolerance(
    array: Array, *, quantized: bool, spread: float, reals: str = "float32", step: float = 0.0
) -> float:
    """How far an array may lie from the expected one, measured as `difference` does.

    Args:
        array: the expected one.
        quantized: the model computes with few bits.
        reals: the shortest type of real numbers that the model computes with.
        step: what one step is of the integers of eight bits that the array is dequantized from.
        spread: how far the engine itself lies apart if it computes the same in another order;
            nothing is left open by one that is infinite, as where the sizes of outputs differ.
    """
    spread = spread if math.isfinite(spread) else 0.0
    if array.dtype.kind in "fV":
        precision = _FLOAT32
        for dtype in (array.dtype, np.dtype(reals)):
            if dtype.itemsize < 4:
                rounding = float(np.spacing(np.ones((), dtype)))
                precision = max(precision, _FLOAT16_STEPS * rounding)
        scale = float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) or 1.0
        of_a_step = step / scale + _ROUNDED_TWICE if step else 0.0
        return max(precision, _SPREAD * spread, of_a_step)
    steps = 1.0 if quantized and array.dtype in (np.int8, np.uint8) else 0.0
    return max(steps, _SPREAD * spread)


def _apart(computed: Array, expected: Array) -> float:
    if computed.shape != expected.shape:
        return math.inf
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind in "fV":
        a, b = computed.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return math.inf
        scale = np.abs(b[finite]).max(initial=0.0) or 1.0
        apart = np.abs(a[finite] - b[finite]).max(initial=0.0) / scale
        return float(apart) if np.isfinite(apart) else math.inf
    if expected.dtype in (np.int8, np.uint8) and computed.dtype.kind in "iu":
        return float(np.abs(computed.astype(np.int64) - expected.astype(np.int64)).max())
    return float(np.mean(computed != expected))
