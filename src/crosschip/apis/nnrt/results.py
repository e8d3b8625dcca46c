"""NNRt's result codes: conversion of exceptions, and the last error's text."""

from __future__ import annotations

import logging

from crosschip.apis.nnrt.enumerations import OH_NN_ReturnCode as Code
from crosschip.apis.results import Failure, Handle, Results, last_error
from crosschip.ir import BudgetError, DeadlineError, DeviceError, Error, InputError

__all__ = [
    "Failure",
    "Handle",
    "failed",
    "forbidden",
    "invalid",
    "last_error",
    "live",
    "returns_code",
    "returns_handle",
    "returns_nothing",
    "returns_value",
]

RESULTS = Results(
    logging.getLogger("crosschip.nnrt"),
    Code.OH_NN_SUCCESS,
    Code.OH_NN_INVALID_PARAMETER,
    (
        (MemoryError, Code.OH_NN_MEMORY_ERROR),
        (BudgetError, Code.OH_NN_MEMORY_ERROR),
        (DeadlineError, Code.OH_NN_TIMEOUT),
        (InputError, Code.OH_NN_INVALID_PARAMETER),
        (DeviceError, Code.OH_NN_UNAVAILABLE_DEVICE),
        (Error, Code.OH_NN_FAILED),
        (Exception, Code.OH_NN_FAILED),
    ),
)

invalid = RESULTS.invalid
live = RESULTS.live
failed = RESULTS.failed
returns_code = RESULTS.returns_code
returns_value = RESULTS.returns_value
returns_handle = RESULTS.returns_handle
returns_nothing = RESULTS.returns_nothing


def forbidden(text: str) -> Failure:
    """Return a failure for a call in the wrong state: too early, too late or repeated."""
    return Failure(Code.OH_NN_OPERATION_FORBIDDEN, text)
