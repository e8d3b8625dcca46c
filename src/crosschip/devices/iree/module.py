"""The form of saved modules: element types at their border."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crosschip.ir.types import NARROW_INTEGERS

MAGIC = b"CHIPIRE1"

_CARRIERS: Mapping[np.dtype[Any], np.dtype[Any]] = {
    element_type.dtype: np.dtype(np.uint8 if element_type.value.startswith("u") else np.int8)
    for element_type in NARROW_INTEGERS
}


def carrier(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which a module takes and returns elements.

    IREE packs integers of fewer than 8 bits, which NumPy stores in bytes.
    """
    return _CARRIERS.get(np.dtype(dtype), np.dtype(dtype))
