"""Comparison of the outputs of timed engines."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from crosschip.accuracy.error import error_of
from crosschip.accuracy.rounding import RoundingProbe
from crosschip.ir import Error, Model

logger = logging.getLogger("crosschip")

_DOUBTFUL = 1e-5
"""The error above which a further compilation determines what rounding explains of it."""

RunOnce = Callable[[Model], Mapping[str, Any]]
"""Compiles a model and runs it on the inputs of the measurement."""


class ErrorMeasure:
    """The error of outputs, in which differences that rounding explains count as 0.

    If an error exceeds a threshold, the operands of the model's last operations are computed, once
    for all outputs.

    Args:
        model: the model.
        inputs: the inputs of the runs.
        run_once: runs a model with the same inputs and other outputs.
    """

    def __init__(self, model: Model, inputs: Mapping[str, Any], run_once: RunOnce) -> None:
        self._model = model
        self._inputs = inputs
        self._run_once = run_once
        self._roundings: Mapping[str, float] | None = None

    def error(self, outputs: Mapping[str, Any], exact: Mapping[str, Any]) -> float:
        """Return the error of outputs against exact ones, in `crosschip.accuracy.error.UNIT`.

        Args:
            outputs: the outputs, by name.
            exact: the exact ones.
        """
        error = error_of([outputs], [exact])
        if not _DOUBTFUL < error < math.inf:
            return error
        if self._roundings is None:
            self._roundings = self._explained()
        return error_of([outputs], [exact], [self._roundings])

    def _explained(self) -> Mapping[str, float]:
        probe = RoundingProbe(self._model)
        try:
            outputs = {} if probe.exposed is None else self._run_once(probe.exposed)
        except Error as error:
            logger.warning(
                "%s: how much rounding explains is not known: %s", self._model.name, error
            )
            return {}
        return probe.roundings(self._inputs, outputs)
