"""Precisions that this processor's engines may lack, and what a caller is told then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crosschip.hal import Precision
from crosschip.ir import UnsupportedError
from crosschip.runtime.discovery import open_device


def is_offered(device: str, precision: str) -> bool:
    """Tell whether a device computes in a precision on this processor."""
    with open_device(device) as opened:
        return Precision(precision) in opened.capabilities.precisions


def is_refused(device: str, precision: str, compile_model: Callable[[], Any]) -> bool:
    """Assert that a precision that is not offered is refused with its reason.

    Returns:
        Whether it is not offered; a test ends there.
    """
    if is_offered(device, precision):
        return False
    with pytest.raises(UnsupportedError, match=f"computes in float32, not in {precision}"):
        compile_model()
    return True
