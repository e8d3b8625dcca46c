"""Integers of fewer than 8 bits, which a function computes as 8-bit integers.

XLA does not support narrower ones, and some end the process (its quirk `joined-int2`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from crosschip.ir.types import NARROW_INTEGERS

_WIDER: Mapping[np.dtype[Any], np.dtype[Any]] = {
    element_type.dtype: np.dtype(np.uint8 if element_type.value.startswith("u") else np.int8)
    for element_type in NARROW_INTEGERS
}


def inner(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a tensor inside a function: 8 bits for narrower integers."""
    return _WIDER.get(dtype, dtype)


def entering(value: Any) -> Any:
    """Convert a tensor to its type inside a function."""
    return value.astype(inner(value.dtype))


def as_type(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a tensor to the inner form of a type; narrow integers keep the low bits."""
    wide = _WIDER.get(dtype)
    if wide is None:
        return value.astype(dtype)
    spare = np.array(8 - jnp.iinfo(dtype).bits, wide)
    return jnp.right_shift(jnp.left_shift(value.astype(wide), spare), spare)
