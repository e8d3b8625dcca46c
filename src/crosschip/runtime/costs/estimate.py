"""Estimates of what was not measured: a roofline, fitted to what was measured on the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.costs.workload import NOMINAL_BYTES, NOMINAL_MULTIPLY_ADDS, Workload

_NOMINAL = np.array([*[1 / NOMINAL_MULTIPLY_ADDS] * 3, 1 / NOMINAL_BYTES, 1e-6, 1e-5])
"""The seconds per unit of work of a nominal device, in the order of `Workload`, and per block."""

_PRIOR = 0.1
"""The weight of the nominal device's ratios, relative to that of one measured block."""

_LEAST_ERROR = 0.3
UNKNOWN_ERROR = 1.0
"""The relative error of an estimate without any measurement of blocks on the device."""

_SWEEPS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Roofline:
    """The speed of a device by kind of work.

    Attributes:
        rates: the seconds per unit of work, in the order of `Workload`, and per block.
        error: the relative error of estimates.
    """

    rates: Array
    error: float

    @classmethod
    def fit(cls, work: Sequence[Workload], seconds: Sequence[float]) -> Roofline:
        """Fit non-negative rates to measured durations, without launches.

        Relative errors are minimized. Rates that the measurements do not determine are those of
        the nominal device, at the device's mean speed. The error is that of the estimate of each
        block from the others.
        """
        amounts = np.array([_amounts(each) for each in work])
        measured = np.array(seconds)
        prior = _NOMINAL * float(np.exp(np.mean(np.log(measured / (amounts @ _NOMINAL)))))
        rows = np.vstack([amounts / measured[:, None], np.diag(_PRIOR / prior)])
        targets = np.concatenate([np.ones(len(work)), np.full(len(prior), _PRIOR)])
        rates = _non_negative(rows, targets, prior)
        active = rows[:, rates > 0]
        leverage = np.sum(active * np.linalg.pinv(active).T, axis=1)[: len(work)]
        errors = (rows[: len(work)] @ rates - 1) / np.maximum(1 - leverage, 0.1)
        error = float(np.sqrt(np.mean(errors**2)))
        return cls(rates, min(UNKNOWN_ERROR, max(_LEAST_ERROR, error)))

    @classmethod
    def of_whole(cls, work: Workload, seconds: float) -> Roofline:
        """Return the nominal device at the speed of a device that runs all of some work."""
        nominal = float(_amounts(work) @ _NOMINAL)
        return cls(_NOMINAL * (seconds / nominal if nominal else 1.0), UNKNOWN_ERROR)

    def seconds(self, work: Workload) -> float:
        """Return the estimated duration of a block's work, without a launch."""
        return float(_amounts(work) @ self.rates)


NOMINAL = Roofline(_NOMINAL, UNKNOWN_ERROR)
"""The roofline of a device of which nothing is known."""


def _amounts(work: Workload) -> Array:
    """Return the work of a block as a row of the fit."""
    return np.array([*work, 1.0])


def _non_negative(rows: Array, targets: Array, start: Array) -> Array:
    """Return the non-negative solution of a least-squares problem, by coordinate descent."""
    solution = start.copy()
    norms = np.sum(rows**2, axis=0)
    residual = targets - rows @ solution
    for _ in range(_SWEEPS):
        for index in range(len(solution)):
            step = rows[:, index] @ residual / norms[index]
            value = max(0.0, solution[index] + step)
            residual -= rows[:, index] * (value - solution[index])
            solution[index] = value
    return solution
