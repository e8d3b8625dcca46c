"""The outputs that count as exact, and the errors of others against them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.bench.agreement import ErrorMeasure
from crosschip.ir import Array, Error, Model
from crosschip.progress import task
from crosschip.runtime.compile.front_door import compile as compile_model
from crosschip.runtime.placement.log_messages import SLOWEST

logger = logging.getLogger("crosschip")

REFERENCE_SECONDS = 30.0
"""The longest estimated run of the reference."""

_REFERENCE = "the reference (NumPy)"

_MULTIPLY_ADDS_PER_SECOND, _BYTES_PER_SECOND = 1e9, 1e8
"""The least speeds of the reference on a current processor, for large convolutions and for
elementwise operations.
"""


class Oracle:
    """The outputs that count as exact: those of the reference, if it is fast enough.

    Otherwise, or if the reference lacks an operator, they are those of the first competitor.

    Args:
        model: the model.
        inputs: the inputs of all runs, by name.
        outputs: the outputs of each competitor, by its label.
        devices: the devices that compute more outputs without the reference.

    Attributes:
        name: what computed the exact outputs; empty if there are none.
    """

    def __init__(
        self,
        model: Model,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Mapping[str, Any]],
        devices: Sequence[str],
    ) -> None:
        shapes = {name: np.shape(value) for name, value in inputs.items()}

        def run_once(model: Model, devices: Sequence[str]) -> Mapping[str, Any]:
            with compile_model(model, devices, shapes=shapes, cache=False) as compiled:
                return compiled.run(inputs)

        exact = None
        if estimated_seconds(model, shapes) <= REFERENCE_SECONDS:
            with task("computing exact outputs"):
                try:
                    exact = run_once(model, [SLOWEST])
                except Error as error:
                    logger.warning(
                        "%s: the reference computes no exact outputs: %s", model.name, error
                    )
        self.name = next(iter(outputs), "") if exact is None else _REFERENCE
        self.outputs = outputs.get(self.name, {}) if exact is None else exact
        able = devices if exact is None else [SLOWEST]
        self._measure = ErrorMeasure(model, inputs, lambda other: run_once(other, able))

    def error(self, outputs: Mapping[str, Any]) -> float:
        """Return the error of outputs, in which differences that rounding explains count as 0."""
        return self._measure.error(outputs, self.outputs)

    def largest_difference(self, outputs: Mapping[str, Any]) -> float:
        """Return the largest absolute difference of an element of any output that is a number."""
        return largest_difference(outputs, self.outputs)


def estimated_seconds(model: Model, shapes: Mapping[str, Sequence[int]]) -> float:
    """Return how long a run of the reference takes, by multiply-adds and bytes of results.

    What depends on data counts as nothing.
    """
    summary = model.summary(shapes)
    known = (summary.multiply_adds.known, summary.activations.known)
    count, size = (number if isinstance(number, int) else 0 for number in known)
    return count / _MULTIPLY_ADDS_PER_SECOND + size / _BYTES_PER_SECOND


def largest_difference(outputs: Mapping[str, Any], exact: Mapping[str, Any]) -> float:
    """Return the largest absolute difference of an element of any output that is a number.

    Elements that are not finite in both count as equal. It is infinite if shapes differ.
    """
    return max(
        (
            _difference(np.asarray(outputs[name]), right)
            for name, right in exact.items()
            if isinstance(right, np.ndarray) and right.dtype.kind in "biufcV"
        ),
        default=0.0,
    )


def _difference(computed: Array, exact: Array) -> float:
    if computed.shape != exact.shape:
        return float("inf")
    wide = computed.astype(np.float64), exact.astype(np.float64)
    same = ~(np.isfinite(wide[0]) | np.isfinite(wide[1]))
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        differences = np.abs(wide[0] - wide[1])[~same]
    return float(np.nan_to_num(differences, nan=np.inf).max(initial=0.0))
