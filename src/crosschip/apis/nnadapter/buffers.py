"""Memory that a program hands in."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.apis.nnadapter.results import invalid
from crosschip.ir import Array


def octets(buffer: Any) -> Array:
    """The bytes of what has Python's buffer protocol, shared with it.

    Raises:
        Failure: it has no such protocol, or is not contiguous.
    """
    if isinstance(buffer, np.ndarray) and buffer.flags.c_contiguous:
        return buffer.reshape(-1).view(np.uint8)  # element types that the protocol does not know
    try:
        return np.frombuffer(buffer, np.uint8)
    except (TypeError, ValueError) as error:
        raise invalid(f"{type(buffer).__name__} is no contiguous buffer: {error}") from None
