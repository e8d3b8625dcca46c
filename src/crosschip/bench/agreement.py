"""Comparison of the outputs of timed engines."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crosschip.accuracy.error import error_of
from crosschip.accuracy.rounding import RoundingProbe
from crosschip.ir import Array, Error, Model

logger = logging.getLogger("crosschip")

_DOUBTFUL = 1e-5
"""The error above which a further compilation determines what rounding explains of it."""

RunOnce = Callable[[Model], Mapping[str, Any]]
"""Compiles a model and runs it on the inputs of the measurement."""


def errors_against(
    engines: Mapping[str, Sequence[Array]],
    outputs: Mapping[str, Any],
    model: Model,
    inputs: Mapping[str, Any],
    run_once: RunOnce,
) -> dict[str, float]:
    """Return the error of outputs against each engine's, in `crosschip.accuracy.error.UNIT`.

    If the error exceeds a threshold, the operands of the model's last operations are computed once
    more, and differences that rounding explains count as 0.

    Args:
        engines: the outputs of each engine, by its name, in the model's order.
        outputs: the outputs to compare with them, by name.
        model: the model.
        inputs: the inputs of the runs.
        run_once: runs a model with the same inputs and other outputs.
    """
    roundings: list[Mapping[str, float]] = []
    errors = {}
    for engine, arrays in engines.items():
        exact = [dict(zip(outputs, arrays, strict=True))]
        error = error_of([outputs], exact)
        if _DOUBTFUL < error < math.inf:
            roundings = roundings or [_roundings(model, inputs, run_once)]
            error = error_of([outputs], exact, roundings)
        errors[engine] = error
    return errors


def _roundings(model: Model, inputs: Mapping[str, Any], run_once: RunOnce) -> Mapping[str, float]:
    probe = RoundingProbe(model)
    try:
        outputs = {} if probe.exposed is None else run_once(probe.exposed)
    except Error as error:
        logger.warning("%s: how much rounding explains is not known: %s", model.name, error)
        return {}
    return probe.roundings(inputs, outputs)
