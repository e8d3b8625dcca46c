"""Access to buffers that a program passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.ir import Array, InputError


def byte_view(buffer: Any) -> Array:
    """Return the bytes of an object with Python's buffer protocol, without a copy.

    Raises:
        InputError: the object has no such protocol, or is not contiguous.
    """
    if isinstance(buffer, np.ndarray) and buffer.flags.c_contiguous:
        return buffer.reshape(-1).view(np.uint8)  # the protocol does not know bfloat16 and the like
    try:
        return np.frombuffer(buffer, np.uint8)
    except (TypeError, ValueError) as error:
        raise InputError(f"{type(buffer).__name__} is no contiguous buffer: {error}") from None
