"""Memory that a program hands in."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.ir import Array, InputError


def octets(buffer: Any) -> Array:
    """The bytes of what has Python's buffer protocol, shared with it.

    Raises:
        InputError: it has no such protocol, or is not contiguous.
    """
    if isinstance(buffer, np.ndarray) and buffer.flags.c_contiguous:
        return buffer.reshape(-1).view(np.uint8)  # element types that the protocol does not know
    try:
        return np.frombuffer(buffer, np.uint8)
    except (TypeError, ValueError) as error:
        raise InputError(f"{type(buffer).__name__} is no contiguous buffer: {error}") from None
