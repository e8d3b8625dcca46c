"""Results of the functions: a code, alone or with a value, and the text of the last failure.

A function returns its code, or the code and what C stores through a pointer, `None` if it failed.
"""

from __future__ import annotations

import logging

from crosschip.apis.nnadapter.enumerations import NNAdapterResultCode as Code
from crosschip.apis.results import Failure, Handle, Results, last_error
from crosschip.ir import BudgetError, DeviceError, Error, UnsupportedError

__all__ = [
    "Failure",
    "Handle",
    "invalid",
    "last_error",
    "live",
    "misshapen",
    "returns_code",
    "returns_nothing",
    "returns_value",
]

RESULTS = Results(
    logging.getLogger("crosschip.nnadapter"),
    Code.NNADAPTER_NO_ERROR,
    Code.NNADAPTER_INVALID_PARAMETER,
    (
        (MemoryError, Code.NNADAPTER_OUT_OF_MEMORY),
        (BudgetError, Code.NNADAPTER_OUT_OF_MEMORY),
        (UnsupportedError, Code.NNADAPTER_FEATURE_NOT_SUPPORTED),
        (DeviceError, Code.NNADAPTER_DEVICE_INTERNAL_ERROR),
        (Error, Code.NNADAPTER_INVALID_PARAMETER),
        (Exception, Code.NNADAPTER_DEVICE_INTERNAL_ERROR),
    ),
)

invalid = RESULTS.invalid
live = RESULTS.live
returns_code = RESULTS.returns_code
returns_value = RESULTS.returns_value
returns_nothing = RESULTS.returns_nothing


def misshapen(text: str) -> Failure:
    """A failure for sizes that do not fit."""
    return Failure(Code.NNADAPTER_INVALID_DIMENSIONS, text)
