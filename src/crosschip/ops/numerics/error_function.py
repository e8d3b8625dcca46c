"""The error function of arrays."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array

_SMALL, _LARGE, _ONE = 0.46875, 4.0, 6.0
"""The limits between approximations; beyond the last one, the result is 1 in float64."""

_NEAR = (
    (
        1.85777706184603153e-1,
        3.16112374387056560,
        1.13864154151050156e2,
        3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (
        1.0,
        2.36012909523441209e1,
        2.44024637934444173e2,
        1.28261652607737228e3,
        2.84423683343917062e3,
    ),
)
_MIDDLE = (
    (
        2.15311535474403846e-8,
        5.64188496988670089e-1,
        8.88314979438837594,
        6.61191906371416295e1,
        2.98635138197400131e2,
        8.81952221241769090e2,
        1.71204761263407058e3,
        2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0,
        1.57449261107098347e1,
        1.17693950891312499e2,
        5.37181101862009858e2,
        1.62138957456669019e3,
        3.29079923573345963e3,
        4.36261909014324716e3,
        3.43936767414372164e3,
        1.23033935480374942e3,
    ),
)
_FAR = (
    (
        1.63153871373020978e-2,
        3.05326634961232344e-1,
        3.60344899949804439e-1,
        1.25781726111229246e-1,
        1.60837851487422766e-2,
        6.58749161529837803e-4,
    ),
    (
        1.0,
        2.56852019228982242,
        1.87295284992346047,
        5.27905102951428412e-1,
        6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)


def error_function(x: Array) -> Array:
    """Compute `2 / sqrt(pi)` times the integral of `exp(-t * t)` from 0 to `x`, in float64.

    The error is at most five units in the last place. W. J. Cody, Rational Chebyshev approximations
    for the error function, Mathematics of Computation 23 (1969), 631-637.
    """
    x = x.astype(np.float64)
    size = np.abs(x)
    result = np.where(np.isnan(x), x, np.copysign(1.0, x))
    near = size <= _SMALL
    result[near] = x[near] * _ratio(_NEAR, np.square(x[near]))
    middle = (size > _SMALL) & (size <= _LARGE)
    y = size[middle]
    result[middle] = np.copysign(1 - np.exp(-y * y) * _ratio(_MIDDLE, y), x[middle])
    far = (size > _LARGE) & (size < _ONE)
    y = size[far]
    tail = (1 / np.sqrt(np.pi) - _ratio(_FAR, 1 / (y * y)) / (y * y)) / y
    result[far] = np.copysign(1 - np.exp(-y * y) * tail, x[far])
    return result


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], at: Array) -> Array:
    """Return the quotient of two polynomials; coefficients are ordered from the highest power."""
    above, below = (np.polyval(np.array(part), at) for part in coefficients)
    return np.asarray(above / below)
