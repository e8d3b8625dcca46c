"""NNAdapter's result codes: conversion of exceptions, and the last error's text.

A function returns a code, or a code and the value that C stores through a pointer, `None` on
failure.
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
    "invalid_dimensions",
    "last_error",
    "live",
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


def invalid_dimensions(text: str) -> Failure:
    """Return a failure for invalid dimensions."""
    return Failure(Code.NNADAPTER_INVALID_DIMENSIONS, text)
