"""Conversion of exceptions to `HdiError` with the codes of versions 2.0 and 2.1."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from crosschip.apis.nnrt.hdi.v1_0 import failures
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.apis.nnrt.hdi.v2_1.types import NNRT_ReturnCode
from crosschip.ir import Error, UnsupportedError

_CODES: Mapping[IntEnum, NNRT_ReturnCode] = {
    ReturnCode.HDF_FAILURE: NNRT_ReturnCode.NNRT_FAILED,
    ReturnCode.HDF_ERR_NOT_SUPPORT: NNRT_ReturnCode.NNRT_NOT_SUPPORT,
    ReturnCode.HDF_ERR_INVALID_PARAM: NNRT_ReturnCode.NNRT_INVALID_PARAMETER,
    ReturnCode.HDF_ERR_INVALID_OBJECT: NNRT_ReturnCode.NNRT_INVALID_MODEL_CACHE,
    ReturnCode.HDF_ERR_MALLOC_FAIL: NNRT_ReturnCode.NNRT_OUT_OF_MEMORY,
    ReturnCode.HDF_ERR_TIMEOUT: NNRT_ReturnCode.NNRT_TIME_OUT,
    ReturnCode.HDF_ERR_DEVICE_BUSY: NNRT_ReturnCode.NNRT_DEVICE_BUSY,
    ReturnCode.HDF_ERR_IO: NNRT_ReturnCode.NNRT_INVALID_BUFFER,
    ReturnCode.HDF_ERR_BAD_FD: NNRT_ReturnCode.NNRT_INVALID_BUFFER,
}
"""The replacements of version 1.0's codes."""


class HdiErrors(failures.HdiErrors):
    """A mixin that converts exceptions to `HdiError` with the codes of versions 2.0 and 2.1."""

    def failure(self, error: Error) -> HdiError:
        if isinstance(error, UnsupportedError):
            return HdiError(NNRT_ReturnCode.NNRT_UNSUPPORTED_OP, str(error))
        failure = super().failure(error)
        return HdiError(_CODES[failure.code], str(failure)) if failure.code in _CODES else failure
